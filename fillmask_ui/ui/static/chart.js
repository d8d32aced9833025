// Every update mounts a new chart: hook each one once, and describe it to screen readers.
const host = () => document.getElementById("CHART_ID");

function hook() {
  const chart = host()?.querySelector(".js-plotly-plot");
  if (!chart?.on || chart.dataset.hooked) return;
  chart.dataset.hooked = "yes";
  chart.setAttribute("role", "img");
  chart.setAttribute("aria-label", chart.layout?.meta?.description ?? "Chart");
  chart.on("plotly_click", ({ points }) => {
    const key = points?.[0]?.customdata;
    if (key !== undefined && key !== null) trigger("mark", { key: String(key) });
  });
}

new MutationObserver(hook).observe(document.body, { childList: true, subtree: true });
hook();
