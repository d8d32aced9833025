// Sets of example sentences: one set is shown, a click on a sentence asks about it, and its question
// to the class stays while the page shows this sentence or what was made of it word by word.
const tabs = [...element.querySelectorAll('[role="tab"]')];
const chips = [...element.querySelectorAll(".fm-chip")];
const question = element.querySelector(".fm-question");
const states = new Map(chips.map((chip) => [chip, JSON.parse(chip.dataset.state)]));
let chosen = null;

function open(tab) {
  for (const other of tabs) {
    const here = other === tab;
    other.setAttribute("aria-selected", String(here));
    other.tabIndex = here ? 0 : -1;
    document.getElementById(other.getAttribute("aria-controls")).hidden = !here;
  }
}

function choose(chip) {
  if (chip === chosen) return; // another set may be looked through meanwhile
  chosen = chip;
  for (const other of chips) other.setAttribute("aria-pressed", String(other === chip));
  question.textContent = chip?.dataset.question ?? "";
  if (chip) open(document.getElementById(chip.parentElement.getAttribute("aria-labelledby")));
}

// Words hidden or filled in leave their number as it is, and most of them the same.
function made_of(text, example) {
  const [now, then] = [text.split(" "), example.split(" ")];
  const same = now.filter((word, index) => word === then[index]);
  return now.length === then.length && 2 * same.length >= now.length;
}

element.addEventListener("click", (event) => {
  const tab = event.target.closest('[role="tab"]');
  if (tab) open(tab);
  const chip = event.target.closest(".fm-chip");
  if (!chip) return;
  choose(chip);
  window.fillmask.explore.change(states.get(chip), { push: true });
});

element.addEventListener("keydown", (event) => {
  const here = tabs.indexOf(event.target);
  if (here < 0) return;
  const last = tabs.length - 1;
  const to = { ArrowRight: here + 1, ArrowLeft: here - 1, Home: 0, End: last }[event.key];
  if (to === undefined) return;
  event.preventDefault();
  const tab = tabs[(to + tabs.length) % tabs.length];
  open(tab);
  tab.focus();
});

// The sentence can also come from a link, from Back, or be typed.
document.addEventListener("fillmask:answer", () => {
  const { text, other } = window.fillmask.explore.state;
  const shown = (state) => state.text === text && (!other || state.other === other);
  const same = chips.filter((chip) => shown(states.get(chip)));
  if (same.length) choose(same.includes(chosen) ? chosen : same[0]);
  else if (chosen && !made_of(text, states.get(chosen).text)) choose(null);
});
