// The Quantize tab: a row chooses the variant of the panel below the table.
(() => {
  const page = (window.fillmask ??= {});
  const panel = () => document.getElementById("diagnose");
  const STORED = "fillmask-diagnosed"; // of this page, for a reload
  const announced = new Set();
  let chosen = "";
  const host = page.figures.host({
    root: "diagnose",
    parameter: "diagnose",
    model: "",
    server: null,
    open: () => chosen !== "",
    linked: () => false, // a link names no file of a disk
  });

  function diagnose(button) {
    const { diagnose: variant, baseline, name } = button.dataset;
    if (chosen !== variant) {
      for (const piece of panel().querySelectorAll("[data-piece]")) piece.replaceChildren();
    }
    chosen = host.model = variant;
    panel().hidden = false;
    for (const [control, value] of Object.entries({ variant, baseline, name })) {
      for (const field of panel().querySelectorAll(`form [name="${control}"]`)) field.value = value;
    }
    page.keep(STORED, variant, "sessionStorage");
    page.figures.refresh(host);
  }

  // A page that is loaded anew goes on with its diagnosis once the rows are there.
  function resume() {
    const variant = page.recall(STORED, "sessionStorage");
    const rows = document.getElementById("quantize-rows");
    const watcher = new MutationObserver(look);
    function look() {
      const button = rows.querySelector(`[data-diagnose="${CSS.escape(variant)}"]`);
      if (chosen === "" && !button) return;
      watcher.disconnect();
      if (chosen === "") diagnose(button);
    }
    if (!variant) return;
    watcher.observe(rows, { childList: true, subtree: true });
    look();
  }

  document.addEventListener("click", ({ target }) => {
    const button = target.closest?.("#quantize-rows [data-diagnose]");
    if (!button) return;
    diagnose(button);
    page.reveal(panel());
  });

  page.quantize = {
    begin(server, measure) {
      host.server = server;
      resume();
      // A variant is a model at hand.
      const tell = () => document.dispatchEvent(new CustomEvent("fillmask:models"));
      new MutationObserver(tell).observe(document.getElementById("quantize-rows"), { childList: true, subtree: true });
      // A variant that a panel has made is a row at once.
      document.addEventListener("fillmask:figure", () => {
        const path = panel().querySelector("[data-made]")?.dataset.made;
        if (!path || announced.has(path)) return;
        announced.add(path);
        measure();
      });
    },
    use(model, plain) {
      page.change_address({ quantize_model: !model || model === plain ? null : model });
    },
  };
})();
