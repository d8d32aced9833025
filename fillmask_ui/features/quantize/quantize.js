// The Quantize tab: a row chooses the variant of the panel below the table.
(() => {
  const page = (window.fillmask ??= {});
  const place = () => document.getElementById("diagnose");
  const KEPT = "fillmask-diagnosed"; // of this page, for a reload
  const made = new Set();
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
      for (const piece of place().querySelectorAll("[data-piece]")) piece.replaceChildren();
    }
    chosen = host.model = variant;
    place().hidden = false;
    for (const [control, value] of Object.entries({ variant, baseline, name })) {
      for (const own of place().querySelectorAll(`form [name="${control}"]`)) own.value = value;
    }
    page.keep(KEPT, variant, "sessionStorage");
    page.figures.refresh(host);
  }

  // A page that is loaded anew goes on with its diagnosis once the rows are there.
  function go_on() {
    const variant = page.recall(KEPT, "sessionStorage");
    const rows = document.getElementById("quantize-rows");
    const watcher = new MutationObserver(look);
    function look() {
      const found = rows.querySelector(`[data-diagnose="${CSS.escape(variant)}"]`);
      if (chosen === "" && !found) return;
      watcher.disconnect();
      if (chosen === "") diagnose(found);
    }
    if (!variant) return;
    watcher.observe(rows, { childList: true, subtree: true });
    look();
  }

  document.addEventListener("click", ({ target }) => {
    const button = target.closest?.("#quantize-rows [data-diagnose]");
    if (!button) return;
    diagnose(button);
    page.reveal(place());
  });

  page.quantize = {
    begin(server, measure) {
      host.server = server;
      go_on();
      // A variant that a panel has made is a row at once.
      document.addEventListener("fillmask:figure", () => {
        const path = place().querySelector("[data-made]")?.dataset.made;
        if (!path || made.has(path)) return;
        made.add(path);
        measure();
      });
    },
    use(model, plain) {
      page.change_address({ quantize_model: !model || model === plain ? null : model });
    },
  };
})();
