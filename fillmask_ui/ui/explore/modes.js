// What stands below the sentence in each mode: the answer of one function of the server as HTML, for
// some window by window. It follows the answers of the tab, and gives up when the next is asked.
(() => {
  const AGAIN_MS = 400; // while a model loads
  const page = (window.fillmask ??= {});
  const byId = (id) => document.getElementById(id);

  // The function that the chosen mode asks about an answer; blank where it asks nothing.
  function wanted({ mask, measurable }) {
    const { masked, whole, replayed, hasSentence } = page.explore.row();
    if (page.explore.replayed()) return replayed;
    if (hasSentence !== undefined) return masked;
    return mask ? masked : measurable ? whole : "";
  }

  // ---- Answers that come window by window, with a bar, Stop and Go on while there is more

  page.explore.windows = (id, what) => {
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
  };

  page.explore.notify = (place, { kind, notice, fraction }) =>
    place.replaceChildren(...(notice ? [page.notice({ kind, notice, fraction })] : []));

  // ---- What is shown of the sentence

  const words = page.explore.windows("growth", "words");
  let seen = { name: "", version: "", tints: new Map() }; // token -> what is known of its word

  function show(found, start) {
    page.explore.notify(byId("found-notice"), found);
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
    const [name, version] = [wanted(answer), answer.version];
    const { hasSentence } = page.explore.row();
    // What stood there before stays.
    if (answer.kind === "error" && !answer.mask && hasSentence === undefined) return;
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

  page.on("click", "#stage [data-set]", ({ dataset }) => page.explore.change(JSON.parse(dataset.set), { push: true }));

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
    const { unit, run, compare } = page.explore.state;
    const { mode, joint } = page.explore.row();
    const wanted = answer.mask && !run && answer.masks > 1 && joint !== undefined;
    const question = JSON.stringify([answer.version, answer.model, unit, mode, compare]);
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
