// Lenses over the sentence: how surprising each word is, which words mattered, and a second sentence
// beside it. They follow the answers of the Explore tab, and give up when it asks the next question.
(() => {
  const page = (window.fillmask ??= {});
  const byId = (id) => document.getElementById(id);
  const state = () => page.explore.state;
  const words = () => [...document.querySelectorAll('#strip button[data-action="hide"]')];

  let turn = 0; // number of the latest answer or question; what began before gives up
  let seen = null; // what the lens has shown: { key, next, words: token -> { tint, html } }

  // ---- Words, some at a time

  function lens_of(answer) {
    const mode = page.explore.mode();
    if (answer.measurable) return mode === "models" && state().compare ? "apart" : mode ? "" : "surprise";
    return mode === "mattered" ? "mattered" : "";
  }

  function clear() {
    seen = null;
    delete byId("stage").dataset.lens;
    byId("apart-tints").hidden = true;
    for (const id of ["lens-story", "lens-table"]) byId(id).replaceChildren();
    byId("lens-progress").hidden = true;
    close();
  }

  async function look(lens, answer) {
    const own = turn;
    const first = lens === "apart" ? await second_model(own, answer) : null;
    if (own !== turn || first?.error) return;
    show_lens(lens, answer, first);
    await go_on(lens, own, 0, first);
  }

  function show_lens(lens, answer, first) {
    const parts = [lens, answer.version, answer.model, answer.selected, answer.truth?.word];
    const key = [...parts, first && state().compare, first?.tint].join("\n");
    if (seen?.key !== key) seen = { key, words: new Map() };
    byId("stage").dataset.lens = lens;
    byId("stage").dataset.tint = first?.tint ?? "";
    byId("apart-tints").hidden = lens !== "apart";
    for (const button of byId("apart-tints").children) {
      button.setAttribute("aria-pressed", String(button.dataset.tint === first?.tint));
    }
    paint();
  }

  // The first words under both models. Until the second one is there, and where it cannot be had,
  // the lens shows the first one alone.
  async function second_model(own, answer) {
    let alone = false;
    while (own === turn) {
      const found = await asked("apart", 0);
      if (own !== turn) break;
      if (!found.waiting && !found.error) {
        if (alone) page.explore.notice({ kind: "none" });
        return found;
      }
      page.explore.notice(found.waiting ?? { kind: "error", notice: found.error });
      if (!alone) {
        alone = true;
        show_lens("surprise", answer, null);
        await go_on("surprise", own, 0);
      }
      if (found.error) return found;
      await new Promise((resolve) => setTimeout(resolve, 400));
    }
    return null;
  }

  async function asked(lens, from) {
    try {
      return await page.explore.call(lens, { start: from });
    } catch {
      return { error: "The page cannot reach its server." };
    }
  }

  async function go_on(lens, own, from, first = null) {
    const mine = seen;
    byId("lens-stop").onclick = () => {
      turn += 1;
      progress(mine, true);
      byId("lens-stop").onclick = () => go_on(lens, ++turn, mine.next);
    };
    let table = from === 0 ? null : byId("lens-table").querySelector("tbody");
    while (from !== null) {
      const found = first ?? (await asked(lens, from));
      first = null;
      if (own !== turn) return;
      if (found.error) {
        clear();
        return page.explore.notice({ kind: "error", notice: found.error });
      }
      for (const word of found.words) mine.words.set(String(word.token), word);
      Object.assign(mine, { known: found.known, total: found.total, next: found.next });
      paint();
      byId("lens-story").innerHTML = found.html.story;
      const piece = document.createElement("template");
      piece.innerHTML = found.html.table;
      if (table) {
        table.append(...piece.content.querySelectorAll("tbody tr"));
      } else {
        byId("lens-table").replaceChildren(piece.content);
        table = byId("lens-table").querySelector("tbody");
      }
      progress(mine, false);
      from = found.next;
    }
  }

  function progress({ known, total, next }, stopped) {
    const box = byId("lens-progress");
    box.hidden = next === null;
    byId("lens-story").setAttribute("aria-busy", String(next !== null && !stopped));
    const bar = box.querySelector("progress");
    bar.max = total;
    bar.value = known;
    box.querySelector("span").textContent = `${known} of ${total} words`;
    byId("lens-stop").textContent = stopped ? "Go on" : "Stop";
  }

  function paint() {
    for (const button of words()) {
      const word = seen.words.get(button.dataset.token);
      if (!word) continue;
      button.style.setProperty("--tint", word.tint);
      Object.assign(button.dataset, { apart: word.label ?? "", sign: word.sign ?? "" });
      button.removeAttribute("title"); // the tooltip of the lens says more
      if (button.matches(":focus-visible")) open(button);
    }
  }

  // ---- What stands beside a word while it is pointed at or has the focus

  let anchor = null;
  let closing = 0;

  function open(button) {
    clearTimeout(closing);
    const html = seen?.words.get(button.dataset.token)?.html;
    if (!html || byId("stage").classList.contains("fm-guessing")) return close();
    if (anchor !== button) close();
    anchor = button;
    anchor.setAttribute("aria-describedby", "lens-pop");
    const pop = byId("lens-pop");
    pop.innerHTML = html;
    if (!pop.matches(":popover-open")) pop.showPopover();
    const at = button.getBoundingClientRect();
    const room = document.documentElement.clientWidth - pop.offsetWidth - 8;
    const below = at.bottom + pop.offsetHeight + 6 < window.innerHeight;
    pop.style.left = `${Math.max(8, Math.min(at.left, room))}px`;
    pop.style.top = `${Math.max(8, below ? at.bottom + 4 : at.top - pop.offsetHeight - 4)}px`;
  }

  function close() {
    clearTimeout(closing);
    anchor?.removeAttribute("aria-describedby");
    anchor = null;
    const pop = byId("lens-pop");
    if (pop?.matches(":popover-open")) pop.hidePopover();
  }

  // A moment to move the pointer from the word to what stands beside it.
  function close_soon() {
    clearTimeout(closing);
    closing = setTimeout(close, 150);
  }

  const tinted = (event) => event.target.closest?.('#strip button[data-action="hide"]');
  document.addEventListener("pointerover", (event) => {
    if (event.pointerType === "touch" || !seen) return;
    if (tinted(event)) open(tinted(event));
    else if (event.target.closest?.("#lens-pop")) clearTimeout(closing);
    else if (anchor && !anchor.matches(":focus-visible")) close_soon();
  });
  document.addEventListener("focusin", (event) => {
    if (tinted(event)?.matches(":focus-visible")) open(tinted(event));
    else close();
  });
  document.addEventListener("focusout", close);
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") close();
  });
  document.addEventListener("scroll", close, { capture: true, passive: true });
  window.addEventListener("resize", close);

  // ---- Two sentences

  async function compare() {
    const own = turn;
    const box = byId("other");
    if (box !== document.activeElement) box.value = state().other;
    if (page.explore.mode() !== "sentences") return show_pair({});
    let found;
    try {
      found = await page.explore.call("pair");
    } catch {
      return; // the answer itself says that the server cannot be reached
    }
    if (own === turn) show_pair(found);
  }

  function show_pair({ html = "", hint = "", error = "" }) {
    byId("pair-hint").textContent = hint || error;
    const view = byId("pair-view");
    const zoom = view.contains(document.activeElement) && document.activeElement.dataset.zoom;
    view.innerHTML = html;
    if (zoom) view.querySelector(`[data-zoom="${zoom}"]`)?.focus({ preventScroll: true });
  }

  document.addEventListener("click", (event) => {
    const zoom = event.target.closest?.("#pair-view [data-zoom]")?.dataset.zoom;
    const tint = event.target.closest?.("#apart-tints [data-tint]")?.dataset.tint;
    if (tint) page.explore.change({ tint }, { push: true });
    if (zoom) page.explore.change({ zoom: Number(zoom) });
  });

  document.addEventListener("input", (event) => {
    if (event.target.id === "other") page.explore.change({ other: event.target.value, mode: "sentences" });
  });

  // ---- Answers

  document.addEventListener("fillmask:stale", () => {
    turn += 1;
  });

  document.addEventListener("fillmask:answer", ({ detail: answer }) => {
    turn += 1;
    close();
    if (answer.kind === "error" && !answer.mask) return; // what stood there before stays
    const lens = lens_of(answer);
    if (lens) look(lens, answer);
    else clear();
    compare();
  });
})();
