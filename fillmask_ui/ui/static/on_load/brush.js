// Charts of the Evaluate tab. Each is described to screen readers. A stretch of one that can be
// dragged across is chosen by that, or by a click on a bar, as the event `range`; a double click
// takes the choice back. Every update mounts a new chart: hook each one once, and press the button
// of its axis that was pressed last.
let clicked_at = 0;
let axis = 0;

function describe(chart) {
  // Not the chart as a whole: its buttons are no part of an image.
  const [image, ...others] = chart.querySelectorAll("svg.main-svg");
  image.setAttribute("role", "img");
  image.setAttribute("aria-label", chart.layout?.meta?.description ?? "Chart");
  for (const other of others) other.setAttribute("aria-hidden", "true");
}

// The tokens that were chosen stand right below the main chart; those of any other, in the table.
function range(chart, low, high) {
  trigger("range", { low, high });
  const worst = document.getElementById("evaluate-worst");
  if (chart.closest("#box-main")) window.fillmask.reveal(worst, "nearest");
  else window.fillmask.unfold("evaluate-tokens");
}

function choose(chart) {
  chart.on("plotly_click", ({ points }) => {
    const [low, high] = String(points?.[0]?.customdata ?? "").split(":");
    clicked_at = Date.now();
    if (high === undefined) return;
    // The last bar has no end: it also holds what lies beyond.
    range(chart, Number(low), high ? Number(high) : null);
  });
  chart.on("plotly_selected", (event) => {
    const [low, high] = event?.range?.x ?? [];
    if (high !== undefined) range(chart, low, high);
  });
  // A click on a bar may count as one that takes an earlier choice back.
  chart.on("plotly_deselect", () =>
    setTimeout(() => {
      if (Date.now() - clicked_at > 400) trigger("range", { low: null, high: null });
    }, 150),
  );
  chart.on("plotly_buttonclicked", ({ active }) => (axis = active));
  if (axis) chart.querySelectorAll(".updatemenu-button")[axis]?.dispatchEvent(new Event("click"));
}

document.addEventListener("click", (event) => {
  if (event.target.closest?.("[data-any-loss]")) trigger("range", { low: null, high: null });
});

// A chart that is drawn before its place has a width has Plotly's own, until it hears of a change.
function fit(chart, tries = 20) {
  const place = chart.closest(".fm-chart");
  if (!tries || !(chart.querySelector(".main-svg")?.clientWidth > place?.clientWidth)) return;
  window.dispatchEvent(new Event("resize"));
  setTimeout(fit, 200, chart, tries - 1);
}

function hook() {
  for (const chart of document.querySelectorAll(".fm-chart .js-plotly-plot")) {
    if (!chart.on || !chart.querySelector(".main-svg") || chart.dataset.hooked) continue;
    chart.dataset.hooked = "yes";
    describe(chart);
    new ResizeObserver(() => fit(chart)).observe(chart.querySelector(".main-svg"));
    if (chart.layout?.dragmode === "select") choose(chart);
  }
}

new MutationObserver(hook).observe(document.body, { childList: true, subtree: true });
hook();
