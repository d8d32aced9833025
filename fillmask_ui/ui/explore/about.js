// The card and the graph of the model, asked for once the fold is open.
(() => {
  const page = window.fillmask;
  const WAIT_MS = 500; // while the model is loaded
  const fold = () => document.getElementById("about-model");

  async function show() {
    const { model } = page.explore.state;
    const place = fold().lastElementChild;
    const answer = await page.explore.call("about").catch(() => null);
    if (model !== page.explore.state.model || !fold().open) return;
    if (answer?.kind === "busy") setTimeout(show, WAIT_MS);
    else if (answer?.html) place.innerHTML = answer.html;
    else place.textContent = answer?.notice ?? "The page cannot reach its server.";
  }

  // `toggle` does not bubble.
  document.addEventListener(
    "toggle",
    ({ target }) => {
      if (target === fold() && target.open) show();
    },
    true,
  );
  document.addEventListener("fillmask:choice", ({ target }) => {
    if (target.closest("#explore") && target.dataset.choice === "model") fold().open = false;
  });
})();
