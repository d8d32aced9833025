// Attention: arrow keys move through the grid of heads, also while presenting; a file of all heads.
(() => {
  const page = window.fillmask;
  const tiles = () => [...document.querySelectorAll("#found .fm-head")];

  // The answer to a chosen head replaces the grid; until then the tile is marked here.
  function choose(tile) {
    for (const other of tiles()) {
      other.setAttribute("aria-pressed", String(other === tile));
      other.tabIndex = other === tile ? 0 : -1;
    }
    page.explore.change(JSON.parse(tile.dataset.set));
  }

  const STEPS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

  page.on("keydown", ".fm-head", (tile, event) => {
    const [down, along] = STEPS[event.key] ?? [];
    if (down === undefined) return;
    event.preventDefault();
    const row = tile.closest("table").rows[tile.closest("tr").rowIndex + down];
    const next = row?.cells[tile.parentElement.cellIndex + along]?.querySelector(".fm-head");
    if (!next) return;
    next.focus();
    choose(next);
  });

  page.on("click", "[data-attention-file]", async () => {
    const file = await page.explore.call("attention_file");
    if (file.error) page.explore.notice({ kind: "error", notice: file.error });
    else page.save(file.name, file.type, file.text);
  });

  page.explore.modes.attention = {
    arrows: "heads",
    // The next head, row by row; whether there are any.
    move(by) {
      const all = tiles();
      const next = all[all.findIndex((tile) => tile.ariaPressed === "true") + by];
      if (next) choose(next);
      return all.length > 0;
    },
  };
})();
