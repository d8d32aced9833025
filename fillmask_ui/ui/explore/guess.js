// Guess first: while it is on, what the model expects is absent until the class has guessed.
(() => {
  const page = window.fillmask;
  const byId = (id) => document.getElementById(id);
  const panel = (selector) => byId("guess").querySelector(selector);
  const blank = () => ({ guesses: [], percent: false, truth: "", revealed: false });

  // `masks` has the guesses for each mask of one sentence, by the number of the mask.
  const guessing = { sentence: "", masks: {} };
  const titles = new Map(); // masks of the strip -> the title that names the hidden word
  let work = Promise.resolve(); // what was typed is read in the order in which it was typed

  let answer = null; // the latest that shows a sentence
  const here = () => (guessing.masks[answer?.selected ?? 0] ??= blank());

  // ---- What is typed

  // As it is typed, for the server to read.
  function listed({ guesses, percent }) {
    return guesses.map(({ word, amount }) => `${word} ${amount}${percent ? "%" : ""}`).join("\n");
  }

  function error(text) {
    panel(".fm-guess-error").textContent = text;
  }

  async function ask(name, values) {
    try {
      return await page.explore.call(name, values);
    } catch {
      return { error: "The page cannot reach its server. Try again." };
    }
  }

  function add(typed, done = () => {}) {
    const record = here();
    work = work.then(async () => {
      const found = await ask("guesses", { guesses: `${listed(record)}\n${typed}` });
      error(found.error);
      if (found.error) return;
      Object.assign(record, { guesses: found.guesses, percent: found.percent });
      done();
      show();
    });
  }

  async function reveal() {
    await work;
    const record = here();
    const values = { guesses: listed(record), truth: record.truth };
    const found = await ask("guess", values);
    if (record !== here()) return; // another mask or sentence by now
    error(found.error);
    if (found.error) return;
    const figure = panel(".fm-guess-result");
    figure.innerHTML = found.html;
    document.dispatchEvent(new CustomEvent("fillmask:figure", { detail: { figure } }));
    const first = !record.revealed;
    record.revealed = true;
    show();
    if (first) panel(".fm-guess-result").focus({ preventScroll: true });
  }

  // ---- What is shown

  function number(value, percent) {
    return `${Number(value.toPrecision(6))}${percent ? "%" : ""}`;
  }

  function chips({ guesses, percent }) {
    const made = guesses.map(({ word, amount }) => {
      const chip = byId("guess-chip").content.firstElementChild.cloneNode(true);
      chip.querySelector("bdi").textContent = word;
      chip.querySelector("b").textContent = number(amount, percent);
      chip.querySelector('[data-guess="remove"] .fm-sr').textContent = `remove ${word}`;
      return chip;
    });
    const list = panel(".fm-guess-list");
    const { activeElement } = document;
    const focused = [...list.querySelectorAll("button")].indexOf(activeElement);
    list.replaceChildren(...made);
    if (focused < 0) return;
    const buttons = list.querySelectorAll("button");
    (buttons[Math.min(focused, buttons.length - 1)] ?? panel('[name="word"]')).focus();
  }

  function count({ guesses, percent }) {
    const total = guesses.reduce((sum, { amount }) => sum + amount, 0);
    if (!total) return "";
    if (percent) return `${number(Math.max(0, 100 - total), true)} of the class made no guess.`;
    return total === 1 ? "1 guess" : `${number(total)} guesses`;
  }

  // The strip names hidden words; students hover, too.
  function show() {
    const stage = byId("stage");
    const on = page.explore.mode() === "guess";
    const record = here();
    const hides = on && !record.revealed;
    for (const [mask, title] of titles) mask.title = title;
    titles.clear();
    stage.classList.toggle("fm-guessing", hides);
    panel(".fm-guess-panel").hidden = !on;
    if (!on) return;
    panel(".fm-guess-entry").hidden = record.revealed;
    panel(".fm-guess-shown").hidden = !record.revealed;
    panel(".fm-guess-truth").hidden = Boolean(answer.hidden?.[answer.selected]);
    panel('[name="truth"]').value = record.truth;
    chips(record);
    byId("guess-count").textContent = count(record);
    if (!hides) return;
    for (const mask of stage.querySelectorAll(".fm-mask-word")) {
      titles.set(mask, mask.title);
      mask.title = "a hidden word";
    }
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

  const acts = {
    reveal,
    more: (button) => {
      const { word } = here().guesses[place(button)];
      add(`${word} 1${here().percent ? "%" : ""}`);
    },
    remove: (button) => {
      const record = here();
      record.guesses.splice(place(button), 1);
      error("");
      show();
    },
    clear: () => {
      guessing.masks[answer.selected] = blank();
      error("");
      show();
      panel('[name="word"]').focus();
    },
    again: () => {
      here().revealed = false;
      show();
      panel('[name="word"]').focus();
    },
  };
  const place = (button) => {
    const chip = button.closest("li");
    return [...chip.parentElement.children].indexOf(chip);
  };

  document.addEventListener("click", (event) => {
    const button = event.target.closest?.("#guess button[data-guess]");
    if (button) acts[button.dataset.guess](button);
  });

  document.addEventListener("submit", (event) => {
    const form = event.target.closest?.("#guess form");
    if (!form) return;
    event.preventDefault();
    const fields = form.elements;
    const typed = fields.list ? fields.list.value : `${fields.word.value} ${fields.amount.value}`;
    if (typed.trim()) add(typed, () => form.reset());
    (fields.list ?? fields.word).focus();
  });

  document.addEventListener("input", (event) => {
    if (event.target.matches?.('#guess [name="truth"]')) here().truth = event.target.value;
  });

  page.explore.guessing = guessing;
})();
