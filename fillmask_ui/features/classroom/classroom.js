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
  let place = -1; // of the sentence shown, in `slides`
  let now = { phase: "waiting", version: -1 };
  let hiding = true; // whether the words wait while students answer
  let losing = false;
  let chosen = ""; // the word that had the focus last
  let timer = 0;
  let work = Promise.resolve(); // what the lecturer does, one after the other

  // ---- The room

  const base = () => new URL("class/", new URL("./", location.href));

  async function call(path, body) {
    const options = { headers: { "x-class-secret": room?.secret ?? "" }, cache: "no-store" };
    if (body) Object.assign(options, { method: "POST", body: JSON.stringify(body) });
    const answer = await fetch(new URL(path, base()), options);
    if (answer.status === 204) return null;
    const told = answer.headers.get("content-type")?.startsWith("text/csv") ? { csv: await answer.text() } : await answer.json();
    if (!answer.ok) throw Object.assign(new Error(told.error ?? told.detail), { status: answer.status });
    return told;
  }

  async function enter() {
    const before = JSON.parse(page.recall(ROOM, "sessionStorage") ?? "{}");
    const key = page.recall(KEY, "sessionStorage") ?? "";
    const told = await call("", { base: base().href, model: page.explore.state.model, key, ...before });
    room = { code: told.code, secret: told.secret };
    page.keep(ROOM, JSON.stringify(room), "sessionStorage");
    slides = told.slides.length ? told.slides : page.presenting.for_class();
    by_id("fm-class-join").innerHTML = told.join;
    by_id("fm-class-about").innerHTML = told.about;
    now.version = -1;
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
      const told = await call(`${room.code}/wall?v=${now.version}`);
      if (told) show(told);
      if (by_id("fm-class-notice").textContent.startsWith("The wall cannot")) by_id("fm-class-notice").replaceChildren();
    } catch (error) {
      if (error.status === 404) room = null; // of a page that has started anew
      else complain(error);
      if (error.status === 403) return; // of a wrong link
    }
    clearTimeout(timer);
    timer = setTimeout(look, PAUSE);
  }

  function lead(what) {
    work = work.then(async () => {
      try {
        by_id("fm-class-notice").replaceChildren();
        show(await call(`${room.code}/lead`, what));
      } catch (error) {
        complain(error);
      }
    });
    return work;
  }

  // ---- What is shown

  const STEPS = { waiting: "First sentence", open: "Close", closed: "Show the model", revealed: "Next sentence", ended: "Continue" };

  function show(told) {
    if (told.version < now.version && told.phase === now.phase) return; // overtaken
    // What is typed into the wall stays.
    const typing = wall().querySelector("#fm-class-main input:focus");
    now = told;
    for (const [piece, html] of Object.entries(told.html)) {
      if (!(typing && piece === "main")) page.put(by_id(`fm-class-${piece}`), html);
    }
    wall().dataset.phase = told.phase;
    const found = slides.findIndex(({ text }) => text === told.text);
    if (found >= 0) place = found;
    draw();
  }

  function draw() {
    wall().classList.toggle("fm-class-hiding", hiding && now.phase === "open");
    part("hide").setAttribute("aria-pressed", hiding);
    part("loss").setAttribute("aria-pressed", losing);
    const last = now.phase === "revealed" && place === slides.length - 1;
    part("step").textContent = last ? "Result" : unanswered() ? "Open again" : STEPS[now.phase];
    wall().querySelector(".fm-class-count").textContent = `${place < 0 ? "–" : place + 1} / ${slides.length}`;
    const card = by_id("fm-class-loss");
    card.hidden = !(losing && now.losses && now.phase === "revealed");
    wall().classList.toggle("fm-class-losing", !card.hidden);
    if (card.hidden) return;
    const names = { people: "class", student: "a student", model: "model" };
    const points = Object.entries(now.losses)
      .filter(([, nats]) => nats !== null)
      .map(([name, nats]) => ({ word: names[name], nll_nats: nats, probability: Math.exp(-nats) }));
    card.replaceChildren(page.loss_card(points, points, "nats"));
    card.querySelector("h2").textContent = "Loss on the hidden word, in nats";
  }

  function ask(to) {
    const slide = slides[to];
    if (!slide) return;
    place = to;
    chosen = "";
    lead({ do: "ask", ...slide });
  }

  const unanswered = () => now.phase === "closed" && !now.answered;

  function step() {
    if (unanswered()) ask(place);
    else if (now.phase === "open") lead({ do: "close" });
    else if (now.phase === "closed") lead({ do: "reveal" });
    else if (now.phase === "revealed" && place === slides.length - 1) lead({ do: "end" });
    else ask(now.phase === "ended" ? Math.max(0, place) : place + 1);
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
    back: () => ask(place - 1),
    next: () => ask(place + 1),
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
    slides.splice(place + 1, 0, { text, truth: "", question: "" });
    place += 1;
    lead({ do: "ask", text }).then(() => {
      if (!now.text) return;
      slides[place].text = now.text; // as the room reads it, without the word in brackets
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
