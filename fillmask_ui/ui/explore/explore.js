// The Explore tab in the browser: its state, its questions to the server, its history.
//
// One question is on its way at a time; what changes meanwhile is asked next, and only as it is
// then, so that no question is asked whose answer nobody would see. Clicks wait for their turn, so
// that none is lost.
(() => {
  const page = (window.fillmask ??= {});
  // Field of the state -> parameter of a link.
  const LINK = {
    ...{ text: "text", model: "model", compare: "compare", top_k: "k", words: "words", unit: "unit" },
    ...{ hidden: "hidden", selected: "mask", zoom: "zoom", other: "with", mode: "mode", tint: "tint", by: "by" },
    ...{ run: "run", run_b: "run_b", example: "example", token: "token", side: "side", alone: "alone" },
  };
  // Without a token of a run: what another sentence or model has none of.
  const NO_RUN = { run: "", run_b: "", example: "", token: "", side: "", alone: "" };
  // What these fields may be; a link that says something else says nothing.
  const KNOWN = {
    ...{ unit: ["nats", "bits"], zoom: [1, 10, 100], tint: ["difference", "a", "b"], by: ["change", "probability"] },
    mode: [], // those of the page
  };
  const MOST_CHARACTERS = 2_000; // servers and chat programs cut addresses at about 8,000
  const PIECES = ["replay", "strip", "tokens", "bars", "stats", "candidates", "scored", "details"];
  const SLOW_MS = 700;
  const MOST_TRIES = 4;
  const UNREACHABLE = "The page cannot reach its server. Trying again…";
  const BROKEN = "The server could not answer. Change the sentence or reload the page; the server's log has the reason.";

  let plain = {}; // the state as the page opens
  let server = null;
  let stage = null;
  let dirty = false; // whether the state is not asked about yet
  let asked = 0; // number of the latest question
  let sent_at = 0; // when it went, 0 when nothing is on its way
  let shown = 0; // number of the question whose answer stands on the page
  let failed = 0; // questions in a row that nobody answered
  let typed_at = 0;
  let hidden_word = false; // whether the sentence on the page has one
  let stepped_at = 0; // when the latest step of the history was made
  const clicks = [];

  // What a mode of the page asks with, whatever the state holds, is in `overrides`.
  // `modes` has what the script of a mode adds, by its name: `begin()`, changes of the state as it is
  // chosen; `move(by)` and `arrows`, what the arrow keys up and down do while presenting.
  const explore = (page.explore = { state: {}, answer: null, overrides: {}, modes: {} });
  const byId = (id) => document.getElementById(id);

  // ---- The state, from links, fields and clicks

  // A text that is new as a whole brings the words behind its masks along, or knows none.
  function merge(changes) {
    const fresh = "text" in changes && changes.text !== explore.state.text;
    const words = fresh ? { base: changes.text, hidden: [] } : {};
    const run = "text" in changes || "run" in changes ? NO_RUN : {};
    // A field that one mode alone has shows that mode; blank, it ends it.
    const changed = rows().find(({ mode, stateField: field }) =>
      changes[field] || (field in changes && mode === explore.state.mode));
    const shown = changed ? { mode: changes[changed.stateField] ? changed.mode : "" } : {};
    Object.assign(explore.state, words, run, shown, changes);
  }

  // A whole number within bounds; `otherwise` for what is none.
  const whole = (value, least, most, otherwise) => {
    const number = Number(value);
    return Number.isInteger(number) ? Math.max(least, Math.min(most, number)) : otherwise;
  };

  const mode_of = (fields) => rows().find(({ stateField }) => fields[stateField])?.mode;

  function from_link(parameters) {
    const found = {};
    for (const [field, name] of Object.entries(LINK)) {
      if (parameters[name] !== undefined) found[field] = parameters[name];
    }
    if ("hidden" in found) {
      try {
        found.hidden = JSON.parse(found.hidden);
      } catch {
        delete found.hidden;
      }
      if (!Array.isArray(found.hidden)) delete found.hidden;
      else found.hidden = found.hidden.map((word) => (typeof word === "string" && word ? word : null));
    }
    // A link that names no mode has that of what it brings.
    found.mode ??= mode_of(found);
    if ("selected" in found) found.selected = whole(found.selected, 1, 1_000_000, 1) - 1;
    if ("top_k" in found) found.top_k = whole(found.top_k, 1, 100, plain.top_k);
    if ("zoom" in found) found.zoom = Number(found.zoom);
    for (const [field, known] of Object.entries(KNOWN)) {
      if (!known.includes(found[field])) delete found[field];
    }
    if (found.model?.trim() === "") delete found.model;
    return found;
  }

  // Fields that a mode adds to the state: name -> value at first.
  const added_fields = ({ fields }) => JSON.parse(fields);

  // The fields that belong to one mode are as at first in the others, which keep them for a return.
  const of_mode = (state) => {
    const with_field = rows().filter(({ stateField }) => stateField);
    const chosen = rows().find(({ mode }) => mode === state.mode);
    const shows = ({ mode, stateField }) =>
      mode === state.mode || (stateField === "compare" && chosen?.twoModels !== undefined);
    const value = (row) => (shows(row) ? state[row.stateField]?.trim() ?? "" : "");
    const added = rows().map((row) => (row.mode === state.mode ? {} : added_fields(row)));
    return Object.assign(Object.fromEntries(with_field.map((row) => [row.stateField, value(row)])), ...added);
  };

  function to_link(state) {
    const link = {};
    const linked = { ...state, ...of_mode(state) };
    for (const [field, name] of Object.entries(LINK)) link[name] = String(linked[field] ?? "");
    link.hidden = state.hidden?.some(Boolean) ? JSON.stringify(state.hidden) : "";
    link.mask = state.selected ? String(state.selected + 1) : "";
    link.zoom = state.zoom > 1 ? String(state.zoom) : "";
    return link;
  }

  function remember(push) {
    if (push) stepped_at = Date.now();
    const step = (history.state?.step ?? 0) + (push ? 1 : 0);
    const state = { ...history.state, step, explore: { ...explore.state } };
    try {
      page.remember(to_link(explore.state), to_link(plain), MOST_CHARACTERS, state, push);
    } catch {
      // some browsers take only so many steps in a minute
    }
  }

  // Puts the state into the fields.
  function apply() {
    for (const field of document.querySelectorAll("#explore [data-field]")) {
      const value = String(explore.state[field.dataset.field]);
      if (field.type === "radio") field.checked = field.value === value;
      else if (field.value !== value) field.value = value;
    }
    for (const box of document.querySelectorAll("#explore [data-choice]"))
      page.set_choice(box, explore.state[box.dataset.choice]);
  }

  // Sets fields of the state, as a click or a link does; `push` makes a step to come back from.
  explore.change = (changes, { push = false } = {}) => {
    merge(changes);
    if (push) remember(true);
    apply();
    stale();
    pump();
  };

  // What a field holds, after every key.
  function typed(values) {
    const state = explore.state;
    const changed = Object.keys(values).filter((name) => (values[name] ?? "") !== state[name]);
    if (!changed.length) return;
    for (const name of changed) state[name] = values[name] ?? "";
    if (changed.includes("text") || changed.includes("model")) Object.assign(state, NO_RUN);
    else if (state.run && (changed.includes("words") || (changed.includes("compare") && state.compare))) {
      state.alone = "1"; // it scores no other words and has no other models
    }
    if (changed.includes("text")) typed_at = Date.now();
    remember(false); // a page that is loaded again at once has the latest key
    stale();
    pump();
  }

  page.on("input", "#explore [data-field]", ({ dataset: { field }, value }) =>
    typed({ [field]: typeof plain[field] === "number" ? Number(value) : value }),
  );

  document.addEventListener("fillmask:choice", ({ target, detail }) => {
    if (target.closest("#explore")) typed({ [target.dataset.choice]: detail });
  });

  document.addEventListener("fillmask:models", async () => {
    if (!server) return;
    const { html } = await explore.call("models").catch(() => ({}));
    for (const box of document.querySelectorAll("#explore [data-choice]")) if (html) page.set_choices(box, html);
  });

  // A click on the strip, a bar or a row; it counts even where others are still being answered.
  explore.click = (action) => {
    clicks.push(action);
    pump();
  };

  explore.call = (name, values = {}) =>
    server[name]({ ...question(), visitor: page.visitor(), ...values });

  function chosen_fields(state) {
    const chosen = rows().find(({ mode }) => mode === state.mode);
    const names = chosen ? Object.keys(added_fields(chosen)) : [];
    return Object.fromEntries(names.map((name) => [name, String(state[name])]));
  }

  // The state as the server reads it.
  function question() {
    const { base, hidden, model, top_k, ...state } = { ...explore.state, ...explore.overrides };
    const { run, run_b, example, token, side, alone, ...others } = state;
    const numbers = [example, token].every((number) => /^\d{1,9}$/.test(number));
    const place = { run, other: run_b, example: Number(example), position: Number(token) };
    return {
      ...others,
      ...of_mode(state),
      fields: chosen_fields(state),
      model: model?.trim() ?? "",
      top_k: whole(top_k || plain.top_k, 1, 100, plain.top_k),
      draft: { text: base ?? "", hidden: hidden ?? [] },
      run: run && numbers ? { ...place, side: side === "B" ? 1 : 0 } : null,
      alone: Boolean(alone),
    };
  }

  // ---- Questions

  function stale() {
    dirty = true;
    if (!stage) return; // a link may come before the tab
    stage.classList.add("fm-stale");
    stage.setAttribute("aria-busy", "true");
    document.dispatchEvent(new CustomEvent("fillmask:stale"));
  }

  function pump() {
    if (!server || sent_at) return;
    if (dirty) return send(null);
    while (clicks.length) {
      const action = aimed(clicks.shift());
      if (action) return send(action);
    }
  }

  // The click as one on the words that stand there now, which an earlier click may have moved.
  function aimed(click) {
    const version = explore.answer?.version;
    if (click.version === version) return click;
    const there = byId("strip").querySelector(
      `[data-place="${click.place}"][data-action="${click.do}"]`,
    );
    if (!there || (click.do === "hide" && there.textContent !== click.shown)) return null;
    return { ...click, version, token: Number(there.dataset.token) };
  }

  async function send(action) {
    const number = ++asked;
    const { text, run, token, side } = explore.state;
    dirty = false;
    sent_at = Date.now();
    let answer = null;
    try {
      answer = await explore.call(question().run && !action ? "replay" : "answer", { action });
    } catch {
      // what to do about it is below
    }
    if (number === asked) sent_at = 0;
    if (number < shown) return;
    failed = answer?.kind ? 0 : failed + 1;
    if (failed > MOST_TRIES) return notice({ kind: "error", notice: BROKEN });
    if (failed || answer.kind === "busy") {
      notice(failed ? { kind: "error", notice: UNREACHABLE } : answer);
      if (number !== asked) return;
      if (action) clicks.unshift(action);
      else dirty = true;
      setTimeout(pump, failed ? 1_000 * failed : 400);
      return;
    }
    shown = number;
    const untouched = explore.state.text === text;
    const answered = "base" in answer; // else the question could not be read
    if (answered) Object.assign(explore.state, { base: answer.base, hidden: answer.hidden });
    if (answered && untouched) explore.state.selected = answer.selected;
    if (action && answered && untouched && answer.text !== text) explore.state.text = answer.text;
    if (action) Object.assign(explore.state, NO_RUN);
    // A token of a run brings its sentence and model along.
    const now = explore.state;
    const same = now.run === run && now.token === token && now.side === side;
    const set = untouched && same && answer.set;
    if (set) Object.assign(explore.state, set);
    show(answer, action);
    if (action || set) apply();
    if (untouched) remember(Boolean(action));
    pump();
  }

  // A question that takes long says so, and no longer holds up the next one.
  setInterval(() => {
    if (!sent_at || Date.now() - sent_at < SLOW_MS) return;
    if (!byId("notice").textContent.startsWith("Working")) {
      notice({ kind: "busy", notice: "Working…" });
    }
    if (!dirty) return;
    sent_at = 0;
    pump();
  }, 100);

  // ---- Answers

  const notice = (answer) => byId("notice").replaceChildren(page.notice(answer));
  explore.notice = notice;

  function show(answer, action) {
    const held = document.activeElement;
    const place = focused(action);
    explore.answer = answer;
    notice(answer);
    // An error about the sentence leaves what was there before, marked as that.
    const kept = answer.kind === "error" && !answer.mask;
    for (const piece of PIECES) {
      const html = answer.html[piece];
      if (html === undefined && kept) continue;
      page.put(byId(piece), html ?? "");
    }
    if (!kept) {
      hidden_word = Boolean(answer.mask);
      byId("downloads").hidden = !hidden_word;
    }
    stage.classList.toggle("fm-stale", dirty || kept);
    stage.setAttribute("aria-busy", String(dirty));
    stage.dataset.model = answer.model;
    show_mode();
    document.dispatchEvent(new CustomEvent("fillmask:answer", { detail: answer }));
    if (held?.isConnected || place === undefined) return;
    const again = [...byId("strip").querySelectorAll(`[data-place="${place}"]`)].at(-1);
    again?.focus({ preventScroll: true });
  }

  // ---- Modes: one is chosen, and its pane shown

  // What a run saw is another text than the one in the box.
  explore.replayed = () => Boolean(explore.state.run && !explore.state.alone);

  const modes = () => [...(byId("modes")?.children ?? [])];
  const rows = () => modes().map(({ dataset }) => dataset);
  // The first shows whatever there is.
  const possible = ({ mode, replayed, needsMask }) =>
    !mode || (explore.replayed() ? replayed : hidden_word || needsMask === undefined);

  // The row of the mode shown: the one chosen, or the first where that one has nothing to show.
  explore.row = () => {
    const chosen = rows().find(({ mode }) => mode === explore.state.mode);
    return chosen && possible(chosen) ? chosen : rows()[0];
  };
  explore.mode = () => explore.row().mode;

  function show_mode() {
    const mode = explore.mode();
    stage.dataset.mode = mode;
    stage.toggleAttribute("data-two-models", explore.row().twoModels !== undefined);
    stage.toggleAttribute("data-has-sentence", explore.row().hasSentence !== undefined);
    for (const button of modes()) {
      const here = button.dataset.mode === mode;
      button.setAttribute("aria-checked", String(here));
      button.setAttribute("aria-disabled", String(!possible(button.dataset)));
      button.tabIndex = here ? 0 : -1;
      // On a phone the row scrolls: the mode shown is in sight.
      if (here) byId("modes").scrollLeft = button.offsetLeft - byId("modes").offsetLeft - 40;
    }
    for (const pane of stage.querySelectorAll("[data-pane]")) pane.hidden = pane.dataset.pane !== mode;
    document.dispatchEvent(new CustomEvent("fillmask:mode", { detail: mode }));
  }

  function choose(button) {
    if (!possible(button.dataset)) return;
    const { mode } = button.dataset;
    explore.change({ ...explore.modes[mode]?.begin?.(), mode }, { push: true });
    show_mode();
    button.focus();
  }

  page.on("click", "#modes [role=radio]", choose);

  // Arrow keys, Home and End move within what is one stop of Tab; they choose a radio or a tab, too.
  const GROUPS = "#explore :is([role=radiogroup], [role=tablist], [role=toolbar])";
  page.on("keydown", GROUPS, (group, event) => {
    const all = [...group.querySelectorAll("button:not([aria-disabled=true])")];
    const here = all.indexOf(event.target);
    const [line, column] = [group.role === "toolbar", group.role === "radiogroup"];
    const by = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: column && 1, ArrowUp: column && -1 }[event.key];
    const to = { Home: 0, End: all.length - 1 }[event.key] ?? (by && here + by);
    if (here < 0 || to === undefined || to === false || (line && !all[to])) return;
    event.preventDefault();
    const next = all.at(to % all.length);
    next.focus();
    if (!line) next.click();
  });

  // Number in the strip of the word that has the focus, or is written into the mask that had it.
  function focused(action) {
    const element = document.activeElement?.closest?.("#stage [data-place], #stage button");
    if (!element || action?.do !== "fill") return element?.dataset.place;
    const mask = Number(action.key.split(":")[0]) || 0; // all masks begin with the first
    return byId("strip").querySelectorAll(".fm-mask-word")[mask]?.dataset.place;
  }

  // ---- The strip of words: one tab stop, arrow keys move inside, a click or Enter acts

  const WORD = "#strip button[data-token]";
  const words = () => [...document.querySelectorAll(WORD)];

  function enter(button) {
    for (const other of words()) other.tabIndex = other === button ? 0 : -1;
  }

  page.on("click", WORD, (button) => {
    if (button.dataset.action === "look") {
      explore.change({ token: button.dataset.token }, { push: true });
      return;
    }
    button.classList.add("fm-pressed");
    explore.click({
      do: button.dataset.action,
      token: Number(button.dataset.token),
      place: Number(button.dataset.place),
      shown: button.textContent,
      version: button.closest("[data-version]").dataset.version,
    });
  });

  page.on("focusin", WORD, enter);

  document.addEventListener("fillmask:answer", () => {
    const all = words();
    if (all.length && !all.includes(document.activeElement)) enter(all[0]);
  });

  // ---- Clicks on what an answer shows

  page.on("click", "#explore :is(#bars, #found, #candidates, #scored, #joint) [data-key]", (row) => {
    if (page.text_marked()) return;
    const [version, ...key] = row.dataset.key.split(":");
    explore.click({ do: "fill", version, key: key.join(":") });
  });

  page.on("click", "#explore .fm-unfold", (button) => {
    const part = byId(button.getAttribute("aria-controls"));
    button.ariaExpanded = String(!part.toggleAttribute("hidden"));
    if (!part.hidden) part.scrollIntoView({ block: "nearest" });
  });

  // A mode names the view that gives its file.
  page.on("click", "[data-download]", async ({ dataset }) => {
    const file = await explore.call(dataset.view ?? "download", { label: dataset.download });
    if (file.error) notice({ kind: "error", notice: file.error });
    else page.save(file.name, file.type, file.text);
  });

  // ---- History and links

  // The step before, from Back or Ctrl+Z; a text field undoes its own typing first.
  window.addEventListener("popstate", (event) => {
    const link = Object.fromEntries(new URLSearchParams(window.location.search));
    page.select_tab(link);
    explore.change({ ...plain, base: "", hidden: [], ...(event.state?.explore ?? from_link(link)) });
  });

  document.addEventListener("keydown", (event) => {
    const undo = (event.ctrlKey || event.metaKey) && !event.shiftKey && event.key === "z";
    if (!undo || !history.state?.step || stage?.offsetParent === null) return;
    if (event.target.matches?.("textarea, input") && typed_at > stepped_at) return;
    event.preventDefault();
    history.back();
  });

  page.take_links?.("explore", (parameters) => {
    const changes = from_link(parameters);
    if (Object.keys(changes).length) explore.change(changes, { push: true });
  });

  explore.begin = (element, functions) => {
    stage = element;
    server = functions;
    KNOWN.mode = rows().map(({ mode }) => mode);
    plain = { ...JSON.parse(stage.dataset.plain), hidden: [], selected: 0, zoom: 1, other: "", mode: "", tint: "difference", by: "change", ...NO_RUN };
    for (const row of rows()) {
      const added = added_fields(row);
      Object.assign(plain, added);
      for (const name of Object.keys(added)) LINK[name] = name;
    }
    // A page loaded again goes on where it was; the link may lag behind by a key.
    const before = history.state?.explore;
    const link = from_link(Object.fromEntries(new URLSearchParams(window.location.search)));
    const brought = before ?? link;
    // A link that was followed before the modes were there has named none.
    explore.state = { ...plain, base: "", ...brought, mode: brought.mode ?? mode_of(brought) ?? "" };
    if (!before && link.hidden) explore.state.base = explore.state.text;
    const opened = Object.keys(plain).every((name) => explore.state[name] === plain[name]);
    const first = opened && JSON.parse(stage.dataset.first ?? "null");
    dirty = !first;
    if (first) show(first);
    apply();
    pump();
  };
})();
