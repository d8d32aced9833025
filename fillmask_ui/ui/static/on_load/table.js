// A click anywhere in a row counts as a click on its button; selecting text to copy does not.
// Chips are rows of their own.
element.addEventListener("click", (event) => {
  const row = event.target.closest("[data-key]");
  if (!row || window.fillmask.text_marked()) return;
  trigger("row", { key: row.dataset.key });
});
