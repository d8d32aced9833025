// What stands below the sentence in each mode: the words that mattered, how surprising each word is,
// two sentences, two models. Each is one function of the server whose answer is HTML; some come
// window by window. They follow the answers of the tab, and give up when it asks the next question.
(() => {
  const AGAIN_MS = 400; // while a model loads
  const page = (window.fillmask ??= {});
  const byId = (id) => document.getElementById(id);
  const state = () => page.explore.state;

  // The function that the chosen mode asks about an answer; blank where it asks nothing.
  function wanted({ mask, measurable }) {
    const mode = page.explore.mode();
    if (mode === "models" && !state().compare) return "";
    const { masked, whole } = document.querySelector(`#modes [data-mode="${mode}"]`).dataset;
    return mask ? masked : measurable ? whole : "";
  }

  // ---- Answers that come window by window, with a bar, Stop and Go on while there is more

  function windows(id, what) {
    let turn = 0; // number of the latest call; what began before gives up
    let stopped = false;

    function tell({ known, total, next }) {
      const [bar, text, button] = byId(id).children;
      byId(id).hidden = next == null;
      bar.max = total ?? 1;
      bar.value = known ?? 0;
      text.textContent = `${known} of ${total} ${what}`;
      button.textContent = stopped ? "Go on" : "Stop";
    }

    async function ask(name, values, show, start = 0) {
      const mine = ++turn;
      let found = {};
      byId(id).lastElementChild.onclick = () => {
        stopped = !stopped;
        turn += 1;
        if (stopped) tell(found);
        else ask(name, values, show, found.next);
      };
      for (let at = start; at !== null; ) {
        const answer = await page.explore.call(name, { ...values(), start: at }).catch(() => null);
        if (mine !== turn) return;
        found = answer ?? { kind: "error", notice: "The page cannot reach its server." };
        show(found, at);
        if (found.kind === "busy") {
          await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
          if (mine !== turn) return;
        } else {
          tell(found);
          at = stopped ? null : (found.next ?? null);
        }
      }
    }

    return {
      ask,
      begin(...question) {
        stopped = false;
        return ask(...question);
      },
      end() {
        turn += 1;
        if (byId(id)) byId(id).hidden = true; // a page that opened at another tab has none yet
      },
    };
  }

  function notice(place, { kind, notice, fraction }) {
    place.replaceChildren(...(notice ? [page.notice({ kind, notice, fraction })] : []));
  }

  // ---- What is shown of the sentence

  const words = windows("growth", "words");
  let seen = { name: "", version: "", tints: new Map() }; // token -> what is known of its word

  function show(found, start) {
    notice(byId("found-notice"), found);
    if (found.kind === "busy") return; // what stood there before stays
    for (const word of found.words ?? []) seen.tints.set(String(word.token), word);
    byId("stage").dataset.lens = found.tint && found.tint !== "difference" ? "surprise" : seen.name;
    paint();
    const { story = found.html, table = "" } = found.html ?? {};
    page.put(byId("found"), story ?? "");
    document.dispatchEvent(new CustomEvent("fillmask:found", { detail: seen.version }));
    byId("said").textContent = byId("found").querySelector(".fm-say")?.textContent ?? "";
    const body = start && byId("lens-table").querySelector("tbody");
    const piece = document.createRange().createContextualFragment(table);
    if (body) body.append(...piece.querySelectorAll("tbody tr"));
    else byId("lens-table").replaceChildren(piece);
  }

  function clear() {
    seen = { name: "", version: "", tints: new Map() };
    delete byId("stage").dataset.lens;
    for (const id of ["found", "found-notice", "lens-table", "said"]) byId(id).replaceChildren();
    words.end();
  }

  const buttons = () => document.querySelectorAll('#strip button[data-action="hide"]');

  function paint() {
    for (const button of buttons()) {
      const word = seen.tints.get(button.dataset.token);
      if (!word) continue;
      Object.assign(button.dataset, { level: word.level, sign: word.sign ?? "", apart: word.label ?? "" });
      button.removeAttribute("title"); // the tooltip says more
      if (button.matches(":focus-visible")) tip.show(button);
    }
  }

  document.addEventListener("fillmask:stale", () => words.end());

  document.addEventListener("fillmask:answer", ({ detail: answer }) => {
    tip.hide();
    models_changed();
    if (answer.kind === "error" && !answer.mask) return; // what stood there before stays
    const [name, version] = [wanted(answer), answer.version];
    if (!name || name !== seen.name || version !== seen.version) clear();
    if (!name) return;
    Object.assign(seen, { name, version });
    paint();
    words.begin(name, () => ({}), show);
  });

  const tip = page.beside(
    () => byId("lens-pop"),
    ({ type, target }) => {
      const word = target.closest?.('#strip button[data-action="hide"]');
      return type !== "click" && (type !== "focusin" || word?.matches(":focus-visible")) && word;
    },
    (button) => {
      const html = seen.tints.get(button.dataset.token)?.html;
      if (!html) return false;
      document.querySelector('[aria-describedby="lens-pop"]')?.removeAttribute("aria-describedby");
      button.setAttribute("aria-describedby", "lens-pop");
      byId("lens-pop").innerHTML = html;
      return true;
    },
  );

  // ---- Where two models differ: texts are searched once it is asked for

  const search = windows("search-growth", "sentences");
  const asked = { order: "kl", bin: -1 };
  let where = ""; // blank for the page's texts, or `own`
  let pair = ""; // the models that the search is of

  const values = () => ({ ...asked, sentences: where ? [...page.presenting.own()] : undefined });

  function show_search(found) {
    notice(byId("search-notice"), found);
    if (found.kind === "busy") return;
    page.put(byId("search-found"), found.html ?? "");
    mark();
  }

  // The sentence that is open is marked in the list.
  function mark() {
    for (const button of byId("search-found").querySelectorAll("[data-set]")) {
      button.ariaCurrent = JSON.parse(button.dataset.set).text === state().text || null;
    }
  }

  function toggle(open) {
    byId("search").hidden = !open;
    byId("search-open").setAttribute("aria-expanded", String(open));
    search.end();
    byId("search-found").replaceChildren();
    if (open) search.begin("parting", values, show_search);
  }

  function models_changed() {
    const both = JSON.stringify([state().model, state().compare, state().unit]);
    byId("search-open").hidden = page.explore.mode() !== "models" || !state().compare || page.explore.replayed();
    if (byId("search-open").hidden || both !== pair) toggle(false);
    pair = both;
    mark();
  }

  document.addEventListener("change", ({ target }) => {
    if (["fm-own-text", "fm-own-file"].includes(target.id) && where && !byId("search").hidden) toggle(true);
  });

  // ---- Clicks

  page.on("click", "#stage [data-set]", (button) => {
    page.explore.change(JSON.parse(button.dataset.set), { push: true });
    if (button.closest(".fm-search-list")) byId("strip").scrollIntoView({ block: "nearest" });
  });
  page.on("click", "#search-open", (button) => {
    toggle(byId("search").hidden);
    if (!byId("search").hidden) button.scrollIntoView({ block: "start" });
  });
  page.on("click", "#search [data-where]", (chosen) => {
    where = chosen.dataset.where;
    for (const choice of chosen.parentElement.children) choice.ariaChecked = String(choice === chosen);
    asked.bin = -1;
    toggle(true);
  });
  page.on("click", "#search :is([data-bin], [data-order])", ({ dataset: { order, bin } }) => {
    if (order) asked.order = order;
    else asked.bin = Number(bin) === asked.bin ? -1 : Number(bin);
    search.ask("parting", values, show_search);
  });

  // ---- A token of a run: the line below its sentence is about the token under the pointer or the
  // focus, else the chosen one.

  function tell(event) {
    const strip = document.querySelector("#strip .fm-reading");
    if (!strip) return;
    const there = event.target.closest?.("#strip .fm-reading button");
    const button = there ?? strip.querySelector('[aria-pressed="true"]');
    const line = strip.parentElement.querySelector(".fm-read-line");
    line.textContent = `${button.dataset.shown}: ${button.querySelector(".fm-read-about").textContent}`;
  }
  document.addEventListener("mouseover", tell);
  document.addEventListener("focusin", tell);

  // ---- All masks filled together: asked for once an answer stands for a moment, as it takes longer.

  const PAUSE_MS = 250;
  let pausing = 0;
  let joined = ""; // the text, models and unit of the table on the page

  document.addEventListener("fillmask:stale", () => clearTimeout(pausing));
  document.addEventListener("fillmask:answer", ({ detail: answer }) => {
    clearTimeout(pausing);
    const { unit, run, compare } = state();
    const mode = page.explore.mode();
    const wanted = answer.mask && !run && answer.masks > 1 && ["", "models"].includes(mode);
    const question = JSON.stringify([answer.version, answer.model, unit, mode && compare]);
    if (wanted && question === joined) return;
    joined = "";
    byId("joint").replaceChildren();
    if (!wanted) return;
    pausing = setTimeout(async () => {
      // What fails is asked again by the next answer.
      const found = await page.explore.call("joint").catch(() => null);
      if (page.explore.answer !== answer || !found?.html) return;
      joined = question;
      byId("joint").innerHTML = found.html;
    }, PAUSE_MS);
  });
})();
