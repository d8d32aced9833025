// A class before its wall: students guess on their phones, the presentation shows the split and the
// losses. This browser leads, by a secret of the room that it keeps until it is closed.
(() => {
  const page = (window.fillmask ??= {});
  const ROOM = "fillmask-class"; // code and secret, in this tab alone
  const KEY = "fillmask-class-key"; // of the lecturer's link, for the sentences with their hidden words
  const PAUSE = 400; // milliseconds between two looks at the room
  const by_id = (id) => document.getElementById(id);
  const wall = () => by_id("fm-present-class");
  const part = (name) => wall().querySelector(`[data-class="${name}"]`);

  let on = false;
  let room = null; // { code, secret }
  let slides = []; // { text, truth, question }
  let position = -1; // of the sentence shown, in `slides`
  let state = { phase: "waiting", version: -1 };
  let hiding = true; // whether the words wait while students answer
  let losing = true; // the losses stand on the curve once they are known
  let chosen = ""; // the word that had the focus last
  let timer = 0;
  let work = Promise.resolve(); // what the lecturer does, one after the other

  // ---- The room

  const base = () => new URL("class/", new URL("./", location.href));

  async function call(path, body) {
    const options = { headers: { "x-class-secret": room?.secret ?? "" }, cache: "no-store" };
    if (body) Object.assign(options, { method: "POST", body: JSON.stringify(body) });
    const response = await fetch(new URL(path, base()), options);
    if (response.status === 204) return null;
    const answer = response.headers.get("content-type")?.startsWith("text/csv") ? { csv: await response.text() } : await response.json();
    if (!response.ok) throw Object.assign(new Error(answer.error ?? answer.detail), { status: response.status });
    return answer;
  }

  async function enter() {
    const before = JSON.parse(page.recall(ROOM, "sessionStorage") ?? "{}");
    const key = page.recall(KEY, "sessionStorage") ?? "";
    const answer = await call("", { base: base().href, model: page.explore.state.model, key, ...before });
    room = { code: answer.code, secret: answer.secret };
    page.keep(ROOM, JSON.stringify(room), "sessionStorage");
    slides = answer.slides.length ? answer.slides : page.presenting.for_class();
    by_id("fm-class-join").innerHTML = answer.join;
    by_id("fm-class-about").innerHTML = answer.about;
    state.version = -1;
  }

  function complain(error) {
    const text = error.status ? error.message : "The wall cannot reach its server. Trying again…";
    by_id("fm-class-notice").replaceChildren(page.notice({ kind: text ? "error" : "", notice: text }));
  }

  async function look() {
    clearTimeout(timer);
    if (!on) return;
    try {
      if (!room) await enter();
      const answer = await call(`${room.code}/wall?v=${state.version}`);
      if (answer) show(answer);
      if (by_id("fm-class-notice").textContent.startsWith("The wall cannot")) by_id("fm-class-notice").replaceChildren();
    } catch (error) {
      if (error.status === 404) room = null; // of a page that has started anew
      else complain(error);
      if (error.status === 403) return; // of a wrong link
    }
    clearTimeout(timer);
    timer = setTimeout(look, PAUSE);
  }

  function lead(action) {
    work = work.then(async () => {
      try {
        by_id("fm-class-notice").replaceChildren();
        show(await call(`${room.code}/lead`, action));
      } catch (error) {
        complain(error);
      }
    });
    return work;
  }

  // ---- What is shown

  const STEPS = { waiting: "First sentence", open: "Close", closed: "Show the model", revealed: "Next sentence", ended: "Continue" };

  function show(answer) {
    if (answer.version < state.version && answer.phase === state.phase) return; // overtaken
    // What is typed into the wall stays.
    const typing = wall().querySelector("#fm-class-main input:focus");
    state = answer;
    for (const [piece, html] of Object.entries(answer.html)) {
      if (!(typing && piece === "main")) page.put(by_id(`fm-class-${piece}`), html);
    }
    wall().dataset.phase = answer.phase;
    const index = slides.findIndex(({ text }) => text === answer.text);
    if (index >= 0) position = index;
    draw();
  }

  function draw() {
    wall().classList.toggle("fm-class-hiding", hiding && state.phase === "open");
    part("hide").setAttribute("aria-pressed", hiding);
    part("loss").setAttribute("aria-pressed", losing);
    const last = state.phase === "revealed" && position === slides.length - 1;
    part("step").textContent = last ? "Result" : unanswered() ? "Open again" : STEPS[state.phase];
    wall().querySelector(".fm-class-count").textContent = `${position < 0 ? "–" : position + 1} / ${slides.length}`;
    const card = by_id("fm-class-loss");
    card.hidden = !(losing && state.losses && state.phase === "revealed");
    wall().classList.toggle("fm-class-losing", !card.hidden);
    if (card.hidden) return;
    const names = { people: "class", student: "a student", model: "model" };
    const points = Object.entries(state.losses)
      .filter(([, nats]) => nats !== null)
      .map(([name, nats]) => ({
        word: names[name],
        role: name === "model" ? "reference" : "candidate",
        nll_nats: nats,
        probability: Math.exp(-nats),
      }));
    card.replaceChildren(page.loss_card(points, points, "nats", "Loss on the hidden word"));
  }

  function ask(to) {
    const slide = slides[to];
    if (!slide) return;
    position = to;
    chosen = "";
    lead({ do: "ask", ...slide });
  }

  const unanswered = () => state.phase === "closed" && !state.answered;

  function step() {
    if (unanswered()) ask(position);
    else if (state.phase === "open") lead({ do: "close" });
    else if (state.phase === "closed") lead({ do: "reveal" });
    else if (state.phase === "revealed" && position === slides.length - 1) lead({ do: "end" });
    else ask(state.phase === "ended" ? Math.max(0, position) : position + 1);
  }

  function move(by) {
    const rows = [...wall().querySelectorAll("[data-strike]")].filter((row) => row.checkVisibility());
    const to = rows.findIndex((row) => row.dataset.strike === chosen) + by;
    rows[Math.max(0, Math.min(rows.length - 1, to))]?.focus();
  }

  function strike() {
    document.activeElement.blur(); // else the next word would have the focus
    if (chosen) lead({ do: "strike", text: chosen });
    chosen = "";
  }

  async function save() {
    try {
      page.save(`class-${room.code}.csv`, "text/csv", (await call(`${room.code}/rounds.csv`)).csv);
    } catch (error) {
      complain(error);
    }
  }

  function type() {
    const form = wall().querySelector('[data-class-form="ask"]');
    form.hidden = !form.hidden;
    if (!form.hidden) form.querySelector("input").focus();
  }

  // ---- The mode

  function open() {
    if (on) return;
    on = true;
    const stage = by_id("stage");
    stage.append(wall());
    for (const other of stage.children) if (other !== wall()) other.inert = true;
    wall().hidden = false;
    page.change_address({ class: "1" });
    draw();
    look();
  }

  function leave() {
    if (!on) return;
    on = false;
    clearTimeout(timer);
    for (const other of by_id("stage").children) other.inert = false;
    wall().hidden = true;
    document.querySelector(".fm-present").append(wall());
    page.change_address({ class: null });
  }

  const ACTS = {
    hide: () => ((hiding = !hiding), draw()),
    loss: () => ((losing = !losing), draw()),
    step,
    strike,
    type,
    leave,
    back: () => ask(position - 1),
    next: () => ask(position + 1),
    end: () => lead({ do: "end" }),
    csv: save,
  };
  const KEYS = {
    Escape: leave,
    c: leave,
    " ": step,
    h: ACTS.hide,
    l: ACTS.loss,
    x: strike,
    t: type,
    e: ACTS.end,
    ArrowRight: ACTS.next,
    PageDown: ACTS.next,
    ArrowLeft: ACTS.back,
    PageUp: ACTS.back,
    ArrowDown: () => move(1),
    ArrowUp: () => move(-1),
  };

  // Before the keys of the presentation, whose script comes later.
  page.keys((event) => {
    const writing = event.target.matches?.("input, textarea, select");
    if (!on) return !writing && document.body.classList.contains("fm-presenting") && { c: open };
    event.stopImmediatePropagation();
    if (writing) return { Escape: () => quit(event.target) };
    const pressing = event.key === " " && event.target.closest?.("button:not([data-strike])");
    return pressing ? null : KEYS;
  });

  function quit(field) {
    field.blur();
    field.closest('[data-class-form="ask"]')?.toggleAttribute("hidden", true);
  }

  page.on("click", "[data-open-class]", open);
  page.on("click", "[data-class]", (button) => ACTS[button.dataset.class]());
  page.on("focusin", "[data-strike]", (row) => (chosen = row.dataset.strike));
  page.on("submit", "[data-class-form]", (form, event) => {
    event.preventDefault();
    const input = form.querySelector("input");
    const text = input.value.trim();
    if (!text) return;
    input.blur();
    if (form.dataset.classForm === "truth") return lead({ do: "truth", text });
    slides.splice(position + 1, 0, { text, truth: "", question: "" });
    position += 1;
    lead({ do: "ask", text }).then(() => {
      if (!state.text) return;
      slides[position].text = state.text; // as the room reads it, without the word in brackets
      input.value = "";
      form.hidden = true;
      draw();
    });
  });
  document.addEventListener("fullscreenchange", () => document.fullscreenElement || leave());

  // From a link, as soon as the page presents.
  const link = new URL(location.href).searchParams;
  page.class_asked = link.get("class") === "1";
  if (link.get("key")) {
    page.keep(KEY, link.get("key"), "sessionStorage");
    page.change_address({ key: null }); // the wall may show its address
  }
  page.open_class = () => {
    if (page.class_asked) open();
    page.class_asked = false;
  };
})();
