// Presenting: the result fills the screen, and keys go through sentences of the lecturer's own,
// or the examples where there are none. The strip and the bars are the same as on the page, so
// that a click on a word hides it there, too. The sentences stay in this browser and its address.
(() => {
  const page = (window.fillmask ??= {});
  const BARS = 5;
  const MOST_SENTENCES = 500;
  const OWN = "fillmask-sentences";
  const HIDE = "fillmask-hide-answers";
  const READY_TRIES = 300; // every 100 ms, while the page loads
  const ENDS = [0.04, 0.08, 0.2, 0.4, 0.8, 1]; // of the axis; a quarter of each is a round number
  const by_id = (id) => document.getElementById(id);
  const stage = () => by_id("stage");
  const foot = () => by_id("fm-present-foot");

  let active = false;
  let filled = false; // whether it has the whole screen
  let panel = null; // `.fm-present`
  let examples = []; // of the page: { state, question }
  let own = []; // sentences of the reader's own
  let place = -1; // of the sentence shown, in `sentences()`; -1 where it is none of them
  let hiding = page.recall(HIDE) ?? "known"; // whether an answer waits for Space: yes, no, or where the word is known
  let revealed = null; // the sentence whose answer was shown
  let open_rows = 0; // of the bars of a sentence whose answer waits
  let losing = false; // whether the loss is shown, word by word
  let end = null; // brings the rest of the page back
  let timer = 0;

  // What the state of Explore becomes for each; a word in brackets is hidden.
  const slide = (line) => {
    const [, before, word, after] = line.match(/^([^[\]]*)\[([^[\]]+)\]([^[\]]*)$/) ?? [];
    if (!word?.trim() || /^\s*mask\s*$/i.test(word)) return { text: line };
    return { text: `${before}[MASK]${after}`, hidden: [word.trim()] };
  };
  const slides = () => (own.length ? own.map(slide) : examples.map(({ state }) => state));
  const sentences = () => slides().map(({ text }) => text);
  const lines = (text) => {
    const all = text.split(/\r\n|\r|\n/).map((line) => line.trim());
    return all.filter(Boolean).slice(0, MOST_SENTENCES);
  };

  const most = () => Number(panel.dataset.mostCharacters);
  const link = () => {
    const value = own.join("\n");
    return value && value.length <= most() ? value : null;
  };

  // ---- The mode

  const ready = () => panel && page.explore?.answer && stage()?.checkVisibility();

  // From any tab, and from a link before its first answer.
  function open(tries = READY_TRIES) {
    if (active) return;
    if (ready()) return start();
    if (tries === READY_TRIES && stage()?.checkVisibility() === false) page.follow("tab=explore");
    if (tries > 0) setTimeout(() => open(tries - 1), 100);
  }

  function start() {
    active = true;
    revealed = null;
    open_rows = 0;
    filled = false; // the end of a full screen before this one may still be told
    end = page.alone(stage());
    stage().prepend(document.querySelector(".fm-question"));
    stage().append(by_id("fm-present-wait"), foot());
    stage().querySelector('[data-pane=""]').append(by_id("fm-present-loss"));
    foot().hidden = false;
    document.body.classList.add("fm-presenting");
    document.dispatchEvent(new CustomEvent("fillmask:presenting"));
    Object.assign(page.explore.overrides, { top_k: BARS, zoom: 1 });
    page.explore.change(known_words());
    shown();
    wake();
    page.open_class?.(); // a feature
  }

  function leave() {
    if (!active) return;
    active = false;
    document.body.classList.remove("fm-presenting", "fm-veiled", "fm-awake", "fm-losing", "fm-covering");
    document.querySelector(".fm-try").append(document.querySelector(".fm-question"));
    panel.append(by_id("fm-present-wait"), by_id("fm-present-loss"), foot());
    for (const part of panel.querySelectorAll("[id^=fm-present]")) part.hidden = true;
    end();
    page.explore.overrides = {};
    page.explore.change({});
    page.change_address({ present: null });
    by_id("present").focus({ preventScroll: true });
  }

  // An example that stands on the page as it opens brings its hidden word along.
  function known_words() {
    const { text, hidden } = page.explore.state;
    const slide = slides().find((other) => other.text === text);
    return slide?.hidden?.some(Boolean) && !hidden?.some(Boolean) ? { base: text, hidden: slide.hidden } : {};
  }

  function go(to) {
    const slide = slides()[to];
    if (!slide) return;
    if (by_id("strip").contains(document.activeElement)) document.activeElement.blur();
    place = to;
    revealed = null;
    open_rows = 0;
    page.explore.change({ selected: 0, other: "", ...slide }, { push: true });
    veil();
    wake();
  }

  // ---- What an answer is shown with

  const TITLED = ":is(#strip, [data-pane], #lens) [title]";

  const hides = () =>
    hiding === "yes" || (hiding === "known" && Boolean(page.explore.state.hidden?.some(Boolean)));

  function veil() {
    const veiled = active && hides() && revealed !== page.explore.state.text;
    document.body.classList.toggle("fm-veiled", veiled);
    document.body.classList.toggle("fm-losing", losing);
    by_id("fm-present-wait").hidden = !veiled;
    rows().forEach((row, place) => {
      const out = veiled && place >= open_rows;
      row.classList.toggle("fm-out", out);
      if (row.querySelector("button")) row.firstElementChild.ariaLabel = out ? "a hidden word" : null;
    });
    show_loss();
    // What a pointer that rests would open, and what names a word.
    for (const titled of active ? stage().querySelectorAll(TITLED) : []) titled.removeAttribute("title");
    for (const told of foot().querySelectorAll("b")) {
      told.textContent = (told.dataset.of === "h" ? hides() : losing) ? "on" : "off";
    }
    foot().querySelector(".fm-present-arrows").textContent = mode().arrows ?? "words";
    const count = foot().querySelector(".fm-present-count");
    count.textContent = `${place < 0 ? "–" : place + 1} / ${sentences().length}`;
    return veiled;
  }

  const rows = () => [...by_id("bars").querySelectorAll(".fm-bar-row")];

  // All at once, or where the loss is shown one word after the other.
  function reveal() {
    if (!veiled()) return mode().reveal?.();
    open_rows = losing ? open_rows + 1 : Infinity;
    if (open_rows >= rows().length) revealed = page.explore.state.text;
    veil();
  }

  // The words on the curve of -ln p, as far as they are revealed.
  function show_loss() {
    const card = by_id("fm-present-loss");
    const { mask, truth } = page.explore.answer;
    card.hidden = !active || !losing || !mask;
    if (card.hidden) return;
    const names = rows().map((row) => row.querySelector(".fm-row-name").textContent);
    const points = mask.candidates.map((own, place) => ({ ...own, word: names[place] }));
    const right = truth?.rank === 1;
    if (points[truth?.rank - 1]) Object.assign(points[truth.rank - 1], { truth: true, right });
    else if (truth) points.push({ ...truth, truth: true });
    const shown = rows().map((row) => !row.classList.contains("fm-out"));
    card.replaceChildren(page.loss_card(points, points.filter((_, place) => shown[place]), page.explore.state.unit));
  }

  // The axis of the bars ends where the longest does.
  function fit_axis() {
    const most = Math.max(0, ...rows().filter((row) => !row.matches(".fm-rest")).map((row) => row.dataset.value));
    const end = ENDS.find((own) => own >= most) ?? 1;
    by_id("bars").style.setProperty("--fit", 1 / end);
    by_id("bars").querySelectorAll(".fm-row-axis > *").forEach((tick, place) => {
      tick.textContent = `${Number((25 * end * place).toPrecision(3))}%`;
    });
  }

  // The largest letters with which the sentence leaves half of the screen to the bars.
  function fit() {
    const strip = by_id("strip");
    const { classList } = document.body;
    const covered = ["fm-veiled", "fm-covering"].filter((name) => classList.contains(name));
    classList.remove(...covered); // the letters stay as large once the answer is shown
    const fits = (size) => {
      stage().style.setProperty("--fm-fit", size);
      return strip.scrollHeight <= strip.clientHeight && strip.scrollWidth <= strip.clientWidth;
    };
    let [low, high] = [0, 1];
    for (let round = 0; round < 7 && !fits(high); round++) {
      const middle = (low + high) / 2;
      if (fits(middle)) low = middle;
      else high = middle;
    }
    fits(fits(high) ? high : low);
    classList.add(...covered);
    page.explore.show_mask();
  }

  function shown() {
    const text = page.explore.state.text;
    if (sentences()[place] !== text) {
      const found = sentences().indexOf(text);
      if (found >= 0) place = found;
    }
    // Back may have come to an address from before the mode.
    page.change_address({ present: "1", list: link() });
    fit_axis();
    veil();
    page.explore.fit_names();
    fit();
  }

  // The keys are named for a while after each of them.
  function wake() {
    document.body.classList.add("fm-awake");
    clearTimeout(timer);
    timer = setTimeout(() => document.body.classList.remove("fm-awake"), 6_000);
  }

  // ---- The list

  function keep(text, { store }) {
    own = lines(text);
    place = sentences().indexOf(page.explore.state.text);
    const value = own.join("\n");
    const kept = !store || page.keep(OWN, value || null);
    page.change_address({ list: link() });
    const count = own.length === 1 ? "1 sentence" : `${own.length.toLocaleString("en")} sentences`;
    by_id("fm-own-said").textContent = !own.length
      ? "None yet: the examples are shown."
      : [
          own.length === MOST_SENTENCES ? `The first ${count}.` : `${count}.`,
          kept ? "" : "This browser blocks storage: they last until the page is closed.",
          link() ? "" : `Too long for the link: ${value.length} characters, at most ${most()}.`,
        ].join(" ");
  }

  // As UTF-8, or as an editor of an older Windows writes it.
  async function read(file) {
    const bytes = await file.arrayBuffer();
    try {
      return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    } catch {
      return new TextDecoder("windows-1252").decode(bytes);
    }
  }

  async function take_file(input) {
    const [file] = input.files;
    if (!file) return;
    by_id("fm-own-text").value = lines(await read(file)).join("\n");
    input.value = "";
    keep(by_id("fm-own-text").value, { store: true });
  }

  function set_hiding(choice) {
    hiding = choice;
    revealed = null;
    open_rows = 0;
    page.keep(HIDE, choice === "known" ? null : choice);
    by_id("fm-own-hide").checked = choice !== "no";
    if (active) veil();
  }

  // ---- Keys and clicks

  const WRITING =
    "textarea, select, [contenteditable], input:not([type=radio], [type=checkbox], [type=range])";

  // What the script of the mode shown adds.
  const mode = () => page.explore.modes[page.explore.mode()] ?? {};

  // The words of the strip take the arrow keys up and down, unless the mode's script does: left and
  // right turn pages.
  function move(by) {
    const words = [...by_id("strip").querySelectorAll("button")];
    const to = words.indexOf(document.activeElement) + by;
    words[Math.max(0, Math.min(words.length - 1, to))]?.focus();
  }

  const KEYS = {
    Escape: leave,
    p: leave,
    h: () => set_hiding(hides() ? "no" : "yes"),
    l: () => {
      losing = !losing;
      veil();
      fit();
    },
    ArrowRight: () => go(place + 1),
    PageDown: () => go(place + 1),
    ArrowLeft: () => go(place - 1),
    PageUp: () => go(place - 1),
    ArrowDown: () => mode().move?.(1) || move(1),
    ArrowUp: () => mode().move?.(-1) || move(-1),
    " ": reveal,
  };

  const BUTTONS = { back: KEYS.ArrowLeft, next: KEYS.ArrowRight, loss: KEYS.l, leave };

  const veiled = () => document.body.classList.contains("fm-veiled");

  page.keys((event) => {
    if (event.target.matches?.(WRITING)) return null;
    // Also while the page loads: it then presents as soon as it can.
    if (!active) return (stage() ? stage().checkVisibility() : document.readyState === "loading") && { p: () => open() };
    wake();
    // Nothing to show: Space presses the button that has the focus.
    const covers = veiled() || document.body.classList.contains("fm-covering");
    return event.key === " " && !covers ? null : KEYS;
  });

  function clicked(event) {
    if (event.target.closest?.("#present")) return page.learn?.visible() ? page.learn.project() : open();
    const button = event.target.closest?.("[data-present]");
    if (button) return BUTTONS[button.dataset.present]();
    // A tap on what is hidden shows it, and chooses no word unseen.
    if (veiled() && event.target.closest?.("#bars")) {
      event.stopPropagation();
      reveal();
    }
  }

  document.addEventListener("click", clicked, true);
  document.addEventListener("mousemove", () => active && wake(), { passive: true });
  document.addEventListener("fillmask:answer", () => active && shown());
  document.addEventListener("fillmask:found", () => active && veil());
  window.addEventListener("resize", () => active && fit());
  // Escape leaves the full screen without telling the page of the key.
  document.addEventListener("fullscreenchange", () => {
    if (!document.fullscreenElement && filled) leave();
    filled = Boolean(document.fullscreenElement);
  });
  page.on("change", "#fm-own-file", take_file);
  page.on("change", "#fm-own-hide", ({ checked }) => set_hiding(checked ? "yes" : "no"));
  let typing = 0;
  page.on("input", "#fm-own-text", ({ value }) => {
    clearTimeout(typing);
    typing = setTimeout(() => keep(value, { store: true }), 250);
  });

  page.presenting = {
    own: () => own,
    // The sentences with one gap, for a class.
    for_class: () =>
      slides()
        .map(({ text, hidden }, place) => ({
          text,
          truth: hidden?.[0] ?? "",
          question: own.length ? "" : examples[place].question,
        }))
        .filter(({ truth }) => own.length || truth)
        .filter(({ text }) => text.match(/\[mask\]|<mask>|_{3,}/gi)?.length === 1),
    // The list of a link is shown and not stored: it is another's until it is changed.
    mount(element, sets) {
      examples = sets;
      panel = element.querySelector(".fm-present");
      const asked = new URL(location.href).searchParams;
      const linked = asked.get("list");
      by_id("fm-own-text").value = linked ?? page.recall(OWN) ?? "";
      keep(by_id("fm-own-text").value, { store: false });
      set_hiding(hiding);
      if (asked.get("present")) open();
    },
  };
})();
