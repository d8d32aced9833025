// A click on an example opens its sentence.
element.addEventListener("click", (event) => {
  const chip = event.target.closest("button[data-key]");
  if (!chip) return;
  const text = chip.textContent;
  window.fillmask.explore.change({ text, hidden: [], selected: 0 }, { push: true });
});
