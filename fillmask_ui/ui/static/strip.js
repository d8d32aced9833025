// A toolbar of tokens: one tab stop, arrow keys move inside, a click or Enter acts.
const buttons = () => [...element.querySelectorAll("button[data-token]")];
let focused = null;

function enter(button) {
  for (const other of buttons()) other.tabIndex = other === button ? 0 : -1;
}

element.addEventListener("click", (event) => {
  const button = event.target.closest("button[data-token]");
  if (!button) return;
  focused = Number(button.dataset.place);
  trigger("token", {
    token: Number(button.dataset.token),
    action: button.dataset.action,
    version: button.closest("[data-version]").dataset.version,
  });
});

element.addEventListener("focusin", (event) => {
  const button = event.target.closest("button[data-token]");
  if (button) enter(button);
});

element.addEventListener("keydown", (event) => {
  const all = buttons();
  const here = all.indexOf(event.target.closest("button[data-token]"));
  if (here < 0) return;
  const to = { ArrowRight: here + 1, ArrowLeft: here - 1, Home: 0, End: all.length - 1 }[event.key];
  if (to === undefined || !all[to]) return;
  event.preventDefault();
  all[to].focus();
});

// A new strip replaces the old one: whoever moved by keyboard stays at the same place.
watch("value", () => {
  const all = buttons();
  if (!all.length) return;
  enter(all[0]);
  if (focused === null) return;
  const lost = document.activeElement === document.body || document.activeElement === null;
  const same = all.filter((button) => Number(button.dataset.place) === focused).at(-1);
  if (lost) (same ?? all.at(-1)).focus({ preventScroll: true });
  focused = null;
});
if (buttons().length) enter(buttons()[0]);
