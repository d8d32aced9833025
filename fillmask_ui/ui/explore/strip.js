// The strip of words: one tab stop, arrow keys move inside, a click or Enter acts.
(() => {
  const page = (window.fillmask ??= {});
  const buttons = () => [...document.querySelectorAll("#strip button[data-token]")];
  const pressed = (event) => event.target.closest?.("#strip button[data-token]");

  function enter(button) {
    for (const other of buttons()) other.tabIndex = other === button ? 0 : -1;
  }

  document.addEventListener("click", (event) => {
    const button = pressed(event);
    if (!button) return;
    if (button.dataset.action === "look") {
      page.explore.change({ token: button.dataset.token }, { push: true });
      return;
    }
    button.classList.add("fm-pressed");
    page.explore.click({
      do: button.dataset.action,
      token: Number(button.dataset.token),
      place: Number(button.dataset.place),
      shown: button.textContent,
      version: button.closest("[data-version]").dataset.version,
    });
  });

  document.addEventListener("focusin", (event) => {
    if (pressed(event)) enter(pressed(event));
  });

  document.addEventListener("keydown", (event) => {
    const all = buttons();
    const here = all.indexOf(pressed(event));
    if (here < 0) return;
    const to = { ArrowRight: here + 1, ArrowLeft: here - 1, Home: 0, End: all.length - 1 }[event.key];
    if (to === undefined || !all[to]) return;
    event.preventDefault();
    all[to].focus();
  });

  document.addEventListener("fillmask:answer", () => {
    const all = buttons();
    if (all.length && !all.includes(document.activeElement)) enter(all[0]);
  });
})();
