// Figures: what a form holds goes to the server, and its pieces of HTML come back. One question per
// figure is on its way at a time; the next one takes the latest values.
//
// A tab that has figures is their host: an object with the id of its `root`, the `parameter` of the
// address that keeps what the controls hold, the `model` that is asked, the functions of the
// `server`, and what tells which figures are open and which ones a link means.
(() => {
  const page = (window.fillmask ??= {});
  const MOST_CHARACTERS = 2_000; // servers and chat programs cut addresses at about 8,000
  const figures = (page.figures = {});
  const hosts = [];
  const STOPPED = "Stopped. The figure shows what was measured until then.";
  const UNREACHABLE = "The server could not answer. Change something to try again.";
  const states = new WeakMap(); // figure -> { asking, again, key, timer, halted, partial }
  const placed = new WeakMap(); // piece -> its HTML

  figures.host = (host) => {
    hosts.push(host);
    return host;
  };
  const host_of = (figure) => hosts.find(({ root }) => figure.closest(`#${root}`));
  const figures_of = (host) =>
    [...document.querySelectorAll(`#${host.root} .fm-figure`)].filter(host.open);

  // A function of the server about a figure, by its name; it answers with JSON.
  figures.call = async (figure, name, more = {}, pressed = "") => {
    const { server, model } = host_of(figure);
    const values = Object.fromEntries(new FormData(form_of(figure)));
    if (pressed) values[pressed] = "1";
    return server[name]({ model, values, ...more });
  };

  const state_of = (figure) => {
    if (!states.has(figure)) states.set(figure, { asking: false, again: false, key: null });
    return states.get(figure);
  };
  const form_of = (figure) => figure.querySelector("form");

  const notice = (figure, answer) =>
    figure.querySelector(".fm-figure-notice").replaceChildren(page.notice(answer));

  // The button that stops what takes long, where a figure has one, and begins it again.
  function halting(figure, label) {
    const button = figure.querySelector("[data-halt]");
    if (!button) return;
    button.hidden = !label;
    button.textContent = label;
  }

  // The server ends what nobody asks about.
  function halt(figure) {
    const state = state_of(figure);
    clearTimeout(state.timer);
    state.halted = true;
    state.again = false;
    notice(figure, { kind: "hint", notice: STOPPED });
    figure.setAttribute("aria-busy", "false");
    halting(figure, "Start again");
  }

  async function ask(figure, pressed = "") {
    const state = state_of(figure);
    clearTimeout(state.timer);
    state.halted = false;
    if (state.asking) {
      state.again = { pressed: pressed || state.again?.pressed || "" };
      return;
    }
    state.asking = true;
    state.key = host_of(figure).model;
    figure.setAttribute("aria-busy", "true");
    const said = figures.call(figure, "figure", { name: figure.dataset.figure }, pressed);
    const answer = (await said.catch(() => null)) ?? { kind: "error", notice: UNREACHABLE };
    state.asking = false;
    const again = state.again;
    state.again = false;
    if (state.halted) return;
    if (!again) {
      notice(figure, answer);
      halting(figure, answer.kind === "busy" ? "Stop" : "");
    }
    figure.classList.toggle("fm-stale", !answer.pieces);
    if (answer.pieces) {
      for (const [name, html] of Object.entries(answer.pieces)) {
        const box = figure.querySelector(`[data-piece="${name}"]`);
        if (!box || (state.partial && placed.get(box) === html)) continue;
        placed.set(box, html);
        page.put(box, html);
      }
      const set = controls_of(figure).filter(({ name }) => name in answer.set);
      for (const control of set) control.value = answer.set[control.name];
      outputs(figure);
      if (set.length) note(figure);
      document.dispatchEvent(new CustomEvent("fillmask:figure", { detail: { figure } }));
      for (const control of set) carry(control);
    }
    state.partial = answer.kind === "busy" && !!answer.pieces;
    if (again) ask(figure, again.pressed);
    else if (answer.kind === "busy") state.timer = setTimeout(() => ask(figure, pressed), 400);
    else figure.setAttribute("aria-busy", "false");
  }

  // ---- Links: what the controls of open figures hold, where that is not as they came

  const controls_of = (figure) =>
    [...form_of(figure).elements].filter(({ name, type }) => name && type !== "submit");
  const box = ({ type }) => type === "radio" || type === "checkbox";

  figures.values = (host) => {
    const all = {};
    for (const figure of figures_of(host)) {
      const fresh = form_of(figure).cloneNode(true);
      fresh.reset();
      const [now, then] = [form_of(figure), fresh].map((form) => new FormData(form));
      for (const name of new Set([...now.keys(), ...then.keys()])) {
        const value = now.get(name) ?? ""; // of a box that is not ticked
        if (value !== (then.get(name) ?? "")) (all[figure.dataset.figure] ??= {})[name] = value;
      }
    }
    const text = JSON.stringify(all);
    return text === "{}" || text.length > MOST_CHARACTERS ? null : text;
  };

  let noted = 0;
  function note(figure) {
    const host = host_of(figure);
    clearTimeout(noted);
    noted = setTimeout(() => page.change_address({ [host.parameter]: figures.values(host) }), 400);
  }

  // Once a figure is on the page: what the link has for its controls.
  figures.take = (figure) => {
    const host = host_of(figure);
    const link = new URLSearchParams(window.location.search);
    if (!host.linked(figure, link)) return;
    let values = {};
    try {
      values = JSON.parse(link.get(host.parameter))?.[figure.dataset.figure] ?? {};
    } catch {
      // a link that was cut
    }
    for (const control of controls_of(figure)) {
      const value = values[control.name];
      if (typeof value !== "string") continue;
      if (box(control)) control.checked = control.value === value;
      else control.value = value;
    }
    outputs(figure);
  };

  function outputs(figure) {
    for (const output of figure.querySelectorAll("output[data-of]")) {
      const control = form_of(figure).elements[output.dataset.of];
      output.textContent = `${control.value}${output.dataset.unit}`;
    }
  }

  // Asks for the open figures of a host that have no answer of its model yet: at once for those in
  // sight, then one after the other for those further down.
  figures.refresh = async (host) => {
    const due = (figure) => state_of(figure).key !== host.model || state_of(figure).halted;
    const far = (figure) => figure.getBoundingClientRect().top > window.innerHeight;
    if (!host.server) return;
    const open = figures_of(host).filter(due);
    await Promise.all(open.filter((figure) => !far(figure)).map((figure) => ask(figure)));
    for (const figure of open) if (figure.isConnected && host.open(figure) && due(figure)) await ask(figure);
  };

  // What is said once holds for the other figures beside it that ask for it, too.
  function carry(control) {
    if (!control.matches?.("[data-carried]")) return;
    const same = `[data-carried][name="${control.name}"]`;
    for (const other of control.closest("article, [role=tabpanel]").querySelectorAll(same)) {
      if (other.value === control.value) continue;
      other.value = control.value;
      ask(other.closest(".fm-figure"));
    }
  }

  page.on("input", ".fm-figure", (figure, event) => {
    outputs(figure);
    carry(event.target);
    ask(figure);
    note(figure);
  });

  page.on("submit", ".fm-figure", (figure, event) => {
    event.preventDefault();
    ask(figure, event.submitter?.name ?? "");
  });

  page.on("click", ".fm-figure [data-halt]", (button) => {
    const figure = button.closest(".fm-figure");
    if (state_of(figure).halted) ask(figure);
    else halt(figure);
  });

  page.on("click", ".fm-figure [data-turn]", (button) => {
    const dial = button.closest(".fm-control-dial").querySelector("input");
    const next = Number(dial.value) + Number(button.dataset.turn);
    dial.value = String(Math.min(Math.max(next, Number(dial.min)), Number(dial.max)));
    dial.dispatchEvent(new Event("input", { bubbles: true }));
  });
})();
