// Guess first: while it is on, what the model expects is absent until the class has guessed.
(() => {
  const page = window.fillmask;
  const byId = (id) => document.getElementById(id);
  const panel = (selector) => byId("guess").querySelector(selector);
  const blank = () => ({ guesses: [], html: "", count: "", percent: false, truth: "", revealed: false });

  // `masks` has the guesses for each mask of one sentence, by the number of the mask.
  const guessing = { sentence: "", masks: {} };
  let work = Promise.resolve(); // what was typed is read in the order in which it was typed

  let answer = null; // the latest that shows a sentence
  const here = () => (guessing.masks[answer?.selected ?? 0] ??= blank());

  // ---- What is typed

  // As it is typed, for the server to read.
  const listed = ({ guesses, percent }) =>
    guesses.map(({ word, amount }) => `${word} ${amount}${percent ? "%" : ""}`).join("\n");
  const error = (text) => (panel(".fm-guess-error").textContent = text);

  async function ask(name, values) {
    const failed = { error: "The page cannot reach its server. Try again." };
    const found = await page.explore.call(name, values).catch(() => failed);
    error(found.error);
    return found.error ? null : found;
  }

  function add(typed, done = () => {}) {
    const record = here();
    work = work.then(async () => {
      const found = await ask("guesses", { guesses: `${listed(record)}\n${typed}` });
      if (!found) return;
      Object.assign(record, found);
      done();
      show();
    });
  }

  async function reveal() {
    await work;
    const record = here();
    const found = await ask("guess", { guesses: listed(record), truth: record.truth });
    if (!found || record !== here()) return; // another mask or sentence by now
    const figure = panel(".fm-guess-result");
    figure.innerHTML = found.html;
    document.dispatchEvent(new CustomEvent("fillmask:figure", { detail: { figure } }));
    const first = !record.revealed;
    record.revealed = true;
    show();
    if (first) figure.focus({ preventScroll: true });
  }

  // ---- What is shown

  function show() {
    const stage = byId("stage");
    const on = page.explore.mode() === "guess";
    const record = here();
    const hides = on && !record.revealed;
    stage.classList.toggle("fm-guessing", hides);
    panel(".fm-guess-panel").hidden = !on;
    if (!on) return;
    panel(".fm-guess-entry").hidden = record.revealed;
    panel(".fm-guess-shown").hidden = !record.revealed;
    panel(".fm-guess-truth").hidden = Boolean(answer.hidden?.[answer.selected]);
    panel('[name="truth"]').value = record.truth;
    const held = panel(".fm-guess-list").contains(document.activeElement);
    page.put(panel(".fm-guess-list"), record.html);
    if (held && !record.html) panel('[name="word"]').focus();
    byId("guess-count").textContent = record.count;
  }

  document.addEventListener("fillmask:answer", ({ detail }) => {
    // An error leaves what was there before, which stays hidden.
    if (detail.kind !== "error" || detail.mask) answer = detail;
    if (!answer) return;
    // Another model writes its masks otherwise.
    const sentence = (answer.base ?? "").replace(/\[MASK\]|<mask>/gi, "[MASK]");
    if (sentence !== guessing.sentence) {
      Object.assign(guessing, { sentence, masks: {} });
      error("");
    }
    show();
    if (page.explore.mode() === "guess" && here().revealed) reveal();
  });

  // Nothing may be read between the choice of this mode and the next answer.
  document.addEventListener("fillmask:mode", () => answer && show());

  // ---- Clicks and keys

  function anew(changes) {
    Object.assign(here(), changes);
    error("");
    show();
    panel('[name="word"]').focus();
  }

  const acts = {
    reveal,
    clear: () => anew(blank()),
    again: () => anew({ revealed: false }),
    more: (place) => add(`${here().guesses[place].word} 1${here().percent ? "%" : ""}`),
    remove: (place) => {
      here().guesses.splice(place, 1);
      add("");
    },
  };

  page.on("click", "#guess button[data-guess]", ({ dataset }) => acts[dataset.guess](Number(dataset.number)));

  page.on("submit", "#guess form", (form, event) => {
    event.preventDefault();
    const fields = form.elements;
    const typed = fields.list ? fields.list.value : `${fields.word.value} ${fields.amount.value}`;
    if (typed.trim()) add(typed, () => form.reset());
    (fields.list ?? fields.word).focus();
  });

  page.on("input", '#guess [name="truth"]', ({ value }) => (here().truth = value));

  page.explore.guessing = guessing;
})();
