// Slots: arrow keys move in the heat map, which is one stop of Tab.
(() => {
  const page = window.fillmask;

  const STEPS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

  page.on("keydown", ".fm-heat-cell", (cell, event) => {
    const step = STEPS[event.key];
    if (!step) return;
    event.preventDefault();
    const column = cell.parentElement.cellIndex + step[1];
    const row = cell.closest("tbody").rows[cell.closest("tr").sectionRowIndex + step[0]];
    row?.cells[column]?.querySelector(".fm-heat-cell")?.focus();
  });

  page.on("focusin", ".fm-heat-cell", (cell) => {
    for (const other of cell.closest("table").querySelectorAll(".fm-heat-cell")) {
      other.tabIndex = other === cell ? 0 : -1;
    }
  });
})();
