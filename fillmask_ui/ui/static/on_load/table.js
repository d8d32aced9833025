// A click anywhere in a row counts as a click on its button; selecting text to copy does not.
// Chips are rows of their own.
element.addEventListener("click", (event) => {
  const row = event.target.closest("[data-key]");
  if (!row || window.fillmask.text_marked() || event.target.closest("input, label, a")) return;
  const { key, confirm: question, ask, value: before } = row.dataset;
  if (question && !window.confirm(question)) return;
  const value = ask ? window.prompt(ask, before) : "";
  if (value !== null) trigger("row", { key, value });
});
