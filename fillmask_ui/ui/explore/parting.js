// Where do two models part? The sentences of the page's texts, or of the visitor's own, on which
// they differ most. Python looks at some sentences a call; the list is kept here, and to stop is not
// to ask on.
(() => {
  const MOST = 20; // sentences in the list
  const SENT = 8; // sentences of the visitor's own in a call
  const page = (window.fillmask ??= {});
  const byId = (id) => document.getElementById(id);
  const state = () => page.explore.state;

  let turn = 0; // number of the search that goes on; what began before gives up
  let pair = ""; // the models that the list is of
  let sums = null; // of the sentences looked at; null before a search
  const rows = new Map(); // button of the list -> what was found

  const own = () => byId("parting").querySelector('input[value="own"]').checked;
  const models = () => [state().model, state().compare];
  const key = () => JSON.stringify([...models(), state().unit]);
  const several = (count, word) => `${count.toLocaleString("en")} ${word}${count === 1 ? "" : "s"}`;

  function reset() {
    turn += 1;
    sums = null;
    rows.clear();
    byId("parting-list").replaceChildren();
    byId("parting-models").hidden = true;
    tell("");
    buttons(false);
  }

  function buttons(running) {
    const submit = byId("parting").querySelector("[type=submit]");
    const stop = byId("parting-stop");
    const held = [submit, stop].includes(document.activeElement);
    const over = sums && sums.next === null;
    submit.textContent = sums && !over ? "Go on" : "Search";
    submit.hidden = running || Boolean(over);
    stop.hidden = !running;
    byId("parting-progress").hidden = !running;
    const shown = running ? stop : submit;
    if (held) (shown.hidden ? byId("parting-open") : shown).focus({ preventScroll: true });
  }

  function tell(text) {
    byId("parting-story").textContent = text;
  }

  function progress(text = "") {
    const bar = byId("parting-progress").querySelector("progress");
    bar.max = sums.total ?? 1;
    bar.value = sums.next ?? bar.max;
    const flips = sums.flipped ? `; first word flipped in ${sums.flipped}` : "";
    bar.nextElementSibling.textContent =
      text || `${sums.next ?? sums.total} of ${several(sums.total, "sentence")}${flips}`;
  }

  // ---- The search

  async function search() {
    const mine = ++turn;
    const lines = own() ? [...page.presenting.own()] : null;
    if (lines && !lines.length) {
      return tell("There are none yet: write some under “Your sentences”, beside the examples.");
    }
    show(true);
    sums ??= { next: 0, total: lines?.length, looked: 0, left_out: 0, words: 0, parted: 0, flipped: 0 };
    tell("");
    buttons(true);
    progress("Searching…");
    while (sums.next !== null) {
      const sentences = lines?.slice(sums.next, sums.next + SENT);
      let found;
      try {
        found = await page.explore.call("parting", { start: sums.next, sentences });
      } catch {
        found = { error: "The page cannot reach its server." };
      }
      if (mine !== turn) return;
      if (found.error) {
        stop();
        return tell(found.error);
      }
      if (found.busy) {
        progress(found.busy);
        await new Promise((done) => setTimeout(done, 400));
        if (mine !== turn) return;
      } else {
        take(found);
        progress();
      }
    }
    stop();
  }

  function take(found) {
    sums.total = found.total ?? sums.total;
    const next = sums.next + found.done;
    sums.next = next < sums.total ? next : null;
    sums.looked += found.done - found.left_out;
    sums.left_out += found.left_out;
    sums.words += found.words;
    sums.parted += found.found.length;
    sums.flipped += found.found.filter((one) => one.flipped).length;
    found.found.forEach(insert);
  }

  const above = (one, other) =>
    one.flipped === other.flipped ? one.change > other.change : one.flipped;

  function insert(found) {
    const list = byId("parting-list");
    const button = document.createElement("button");
    button.type = "button";
    button.innerHTML = found.html;
    const row = document.createElement("li");
    row.append(button);
    rows.set(button, found);
    const before = [...list.children].find((other) => above(found, rows.get(other.firstChild)));
    list.insertBefore(row, before ?? null);
    if (list.children.length > MOST) {
      rows.delete(list.lastChild.firstChild);
      list.lastChild.remove();
    }
    byId("parting-models").hidden = false;
  }

  function stop() {
    turn += 1;
    buttons(false);
    mark();
    const { looked, left_out, words, parted, flipped } = sums;
    const where = several(looked, "sentence");
    const short = left_out ? `; left out as too short or too long: ${left_out}` : "";
    const hidden = `(${several(words, "word")} hidden${short})`;
    if (sums.next === 0) tell("");
    else if (!looked) tell("No sentence was looked at: they are too short or too long.");
    else if (!parted) tell(`They never part on these ${where} ${hidden}.`);
    else tell(`They put another word first in ${flipped} of ${where} ${hidden}.`);
  }

  // ---- What stands on the page

  function mark() {
    for (const [button, { state: asked }] of rows) {
      if (asked.text === state().text) button.setAttribute("aria-current", "true");
      else button.removeAttribute("aria-current");
    }
  }

  function show(open) {
    byId("parting").hidden = !open;
    byId("parting-open").setAttribute("aria-expanded", String(open));
    if (!open) return;
    const count = page.presenting?.own().length;
    byId("parting-own").textContent = count ? `(${count})` : "(none yet)";
    const names = byId("parting-models").querySelectorAll("b");
    models().forEach((name, number) => (names[number].textContent = name));
  }

  document.addEventListener("click", (event) => {
    const at = (selector) => event.target.closest?.(selector);
    if (at("#parting-open")) show(byId("parting").hidden);
    if (at("#parting-stop") || (at("#parting-open") && !byId("parting-stop").hidden)) stop();
    else if (rows.has(at("#parting-list button"))) {
      const found = rows.get(at("#parting-list button"));
      page.explore.change({ ...found.state, other: "" }, { push: true });
      byId("strip").scrollIntoView({ block: "nearest" });
    }
  });

  document.addEventListener("submit", (event) => {
    if (!event.target.matches(".fm-parting-form")) return;
    event.preventDefault();
    search();
  });

  document.addEventListener("change", (event) => {
    const lines = ["fm-own-text", "fm-own-file"].includes(event.target.id) && own();
    if (event.target.name === "parting-where" || lines) reset();
  });

  document.addEventListener("fillmask:answer", () => {
    if (key() !== pair) reset();
    pair = key();
    const compared = Boolean(state().compare) && !page.explore.replayed();
    byId("parting-open").hidden = !compared;
    show(compared && !byId("parting").hidden);
    mark();
  });
})();
