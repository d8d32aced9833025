// A stretch of the chart inside #CHART_ID chosen by dragging, as the event `range`. A click on the
// background chooses all again. Every update mounts a new chart: hook each one once.
const host = () => document.getElementById("CHART_ID");

function hook() {
  const chart = host()?.querySelector(".js-plotly-plot");
  if (!chart?.on || chart.dataset.brushed) return;
  chart.dataset.brushed = "yes";
  chart.on("plotly_selected", (event) => {
    const [low, high] = event?.range?.x ?? [null, null];
    trigger("range", { low, high });
  });
  chart.on("plotly_deselect", () => trigger("range", { low: null, high: null }));
}

new MutationObserver(hook).observe(document.body, { childList: true, subtree: true });
hook();
