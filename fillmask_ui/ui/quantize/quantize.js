// The Quantize tab: rows open the other tabs, and choose the variant of the panels below the table.
(() => {
  const page = (window.fillmask ??= {});
  const place = () => document.getElementById("diagnose");
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
    if (chosen !== button.dataset.diagnose) {
      for (const piece of place().querySelectorAll("[data-piece]")) piece.replaceChildren();
    }
    chosen = host.model = button.dataset.diagnose;
    const { baseline } = button.dataset;
    place().hidden = false;
    for (const name of ["variant", "baseline", "name"]) {
      const value = { variant: chosen, baseline, name: button.dataset.name }[name];
      for (const control of place().querySelectorAll(`form [name="${name}"]`)) control.value = value;
    }
    document.dispatchEvent(new CustomEvent("fillmask:diagnose", { detail: { variant: chosen, baseline } }));
    page.figures.refresh(host);
    page.reveal(place());
  }

  document.addEventListener("click", (event) => {
    const target = event.target.closest?.(
      "#quantize-rows [data-follow], #quantize-rows [data-diagnose], #diagnose [data-follow]",
    );
    if (!target) return;
    if (target.dataset.diagnose) return diagnose(target);
    if (event.ctrlKey || event.metaKey || event.shiftKey) return; // another window
    event.preventDefault();
    page.follow(target.dataset.follow);
  });

  page.quantize = {
    begin(server, measure) {
      host.server = server;
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
