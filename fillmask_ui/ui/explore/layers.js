// How the guess forms: the grid of layers shows the bars of the cell that is pointed at or has the
// focus. In a lecture the layers are covered but for the lowest, and keys uncover them, one by one;
// until the last is uncovered, nothing tells the hidden word or the model's answer.
(() => {
  const page = window.fillmask;
  const found = () => document.getElementById("found");
  // The embeddings first.
  const rows = () => [...found().querySelectorAll(".fm-layers tbody tr")].reverse();
  let open = 1; // layers uncovered
  let sentence = ""; // that they are of

  function show(cell) {
    const lens = cell.closest(".fm-lens");
    for (const other of lens.querySelectorAll(".fm-layer")) {
      other.classList.toggle("fm-here", other === cell);
      other.tabIndex = other === cell ? 0 : -1;
    }
    lens.querySelector("figcaption").textContent = cell.dataset.title;
    const bars = JSON.parse(cell.dataset.bars);
    lens.querySelectorAll(".fm-bar-row").forEach((row, place) => {
      const [name, share, text, true_word] = bars[place] ?? ["", 0, "", false];
      row.classList.toggle("fm-hidden", true_word);
      row.querySelector(".fm-row-fill").classList.toggle("fm-truth", true_word);
      row.querySelector(".fm-row-name").textContent = name;
      row.querySelector(".fm-row-fill").style.setProperty("--p", share);
      row.querySelector(".fm-row-value").textContent = text;
    });
    page.explore.fit_names();
  }

  for (const kind of ["focusin", "click"]) page.on(kind, ".fm-layer", show);
  page.on_move(({ target }) => {
    const cell = target.closest?.(".fm-layer:not(.fm-here)");
    if (cell) show(cell);
  });

  // Beside a cell of a whole sentence, which leaves the bars no room of their own.
  const none = document.createElement("div");
  page.beside(
    () => document.querySelector(".fm-lens-tokens > .fm-pop") ?? none,
    ({ target }) => target.closest?.(".fm-lens-tokens .fm-layer"),
    () => true,
  );

  const STEPS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

  page.on("keydown", ".fm-layer", (cell, event) => {
    const [down, along] = STEPS[event.key] ?? [];
    if (down === undefined) return;
    const place = cell.parentElement.cellIndex + along;
    const row = cell.closest("table").rows[cell.closest("tr").rowIndex + down];
    const next = row?.cells[place]?.querySelector(".fm-layer");
    event.preventDefault();
    next?.focus();
  });

  // ---- In a lecture

  function cover() {
    const all = rows();
    all.forEach((row, place) => row.classList.toggle("fm-out", place >= open));
    found().classList.toggle("fm-growing", open < all.length);
    const covers = open < all.length && document.body.classList.contains("fm-presenting");
    document.body.classList.toggle("fm-covering", covers);
    if (document.body.classList.contains("fm-presenting")) {
      show(all[open - 1].querySelector(".fm-layer"));
      // Of many layers some are out of sight; the story of all is above the last.
      if (open < all.length) all[open - 1].scrollIntoView({ block: "nearest" });
      else document.getElementById("lens").scrollTop = 0;
    }
  }

  document.addEventListener("fillmask:found", ({ detail }) => {
    found().classList.remove("fm-growing"); // which another mode has none of
    document.body.classList.remove("fm-covering");
    if (!found().querySelector(".fm-layers")) return;
    if (detail !== sentence) open = 1;
    sentence = detail;
    cover();
  });

  document.addEventListener("fillmask:mode", ({ detail }) => {
    if (detail !== "layers") document.body.classList.remove("fm-covering");
  });

  page.explore.modes.layers = {
    arrows: "layers",
    // Space uncovers the next layer, too; whether there is one.
    reveal: () => document.body.classList.contains("fm-covering") && page.explore.modes.layers.move(-1),
    // Uncovers one more layer, or covers one; whether there are any.
    move(by) {
      if (!found()?.querySelector(".fm-layers")) return false;
      open = Math.max(1, Math.min(rows().length, open - by));
      cover();
      return true;
    },
  };
})();
