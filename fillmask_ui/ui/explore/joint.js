// All masks filled together: asked for once an answer stands for a moment, since it takes longer.
(() => {
  const PAUSE_MS = 250;
  const page = (window.fillmask ??= {});
  const byId = (id) => document.getElementById(id);
  let timer = null;
  let shown = ""; // the text, models and unit of the table on the page

  document.addEventListener("fillmask:stale", () => clearTimeout(timer));

  document.addEventListener("fillmask:answer", ({ detail: answer }) => {
    clearTimeout(timer);
    const { unit, run } = page.explore.state;
    const mode = page.explore.mode();
    const compare = mode === "models" && page.explore.state.compare;
    const wanted = answer.mask && !run && answer.masks > 1 && ["", "models"].includes(mode);
    const question = JSON.stringify([answer.version, answer.model, unit, compare]);
    if (wanted && question === shown) return;
    shown = "";
    byId("joint").replaceChildren();
    if (wanted) timer = setTimeout(() => ask(question, answer), PAUSE_MS);
  });

  async function ask(question, answer) {
    let found;
    try {
      found = await page.explore.call("joint");
    } catch {
      return; // the next answer asks again
    }
    if (page.explore.answer !== answer || !found?.html) return;
    shown = question;
    byId("joint").innerHTML = found.html;
  }
})();
