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
  const STOPPED = "Stopped. What is shown was measured by then.";
  const UNREACHABLE = "The page's server does not answer this. Change something to try again.";
  const states = new WeakMap(); // figure -> { asking, again, key, timer, halted, partial }

  figures.host = (host) => {
    hosts.push(host);
    return host;
  };
  const host_of = (figure) => hosts.find(({ root }) => figure.closest(`#${root}`));
  const figures_of = (host) =>
    [...document.querySelectorAll(`#${host.root} .fm-figure`)].filter(host.open);

  // A function of the server about a figure, by its name; it answers with JSON.
  figures.call = (figure, name, more = {}, pressed = "") => {
    const { server, model } = host_of(figure);
    return server[name]({ model, values: values_of(figure, pressed), ...more });
  };

  const state_of = (figure) => {
    if (!states.has(figure)) states.set(figure, { asking: false, again: false, key: null });
    return states.get(figure);
  };

  function values_of(figure, pressed) {
    const values = Object.fromEntries(new FormData(figure.querySelector("form")));
    if (pressed) values[pressed] = "1";
    return values;
  }

  const notice = (figure, answer) =>
    figure.querySelector(".fm-figure-notice").replaceChildren(page.notice(answer));

  // Lengths move from what they were to what they are; what was unfolded stays so.
  const placed = new WeakMap();
  function place(box, html) {
    placed.set(box, html);
    const unfolded = [...box.querySelectorAll("details")].map(({ open }) => open);
    const before = {};
    for (const bar of box.querySelectorAll("[data-bar] .fm-bar-fill")) {
      before[bar.closest("[data-bar]").dataset.bar] = bar.style.getPropertyValue("--p");
    }
    const held = box.contains(document.activeElement) ? document.activeElement.id : "";
    box.innerHTML = html;
    [...box.querySelectorAll("details")].forEach((own, place) => (own.open ||= !!unfolded[place]));
    const moved = [];
    for (const bar of box.querySelectorAll("[data-bar] .fm-bar-fill")) {
      const old = before[bar.closest("[data-bar]").dataset.bar];
      if (old === undefined) continue;
      moved.push([bar, bar.style.getPropertyValue("--p")]);
      bar.style.setProperty("--p", old);
    }
    void box.offsetWidth; // the old lengths are drawn before the new ones are set
    for (const [bar, width] of moved) bar.style.setProperty("--p", width);
    if (held) document.getElementById(held)?.focus({ preventScroll: true });
  }

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
    let answer = null;
    try {
      const name = figure.dataset.figure;
      answer = await figures.call(figure, "figure", { name }, pressed);
    } catch {
      // what to do about it is below
    }
    answer ??= { kind: "error", notice: UNREACHABLE };
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
        if (box && !(state.partial && placed.get(box) === html)) place(box, html);
      }
      for (const [name, value] of Object.entries(answer.set)) {
        const control = figure.querySelector("form").elements[name];
        if (control) control.value = value;
      }
      outputs(figure);
      if (Object.keys(answer.set).length) note(figure);
      document.dispatchEvent(new CustomEvent("fillmask:figure", { detail: { figure } }));
      for (const name of Object.keys(answer.set)) {
        const control = figure.querySelector("form").elements[name];
        if (control) carry(control);
      }
    }
    state.partial = answer.kind === "busy" && !!answer.pieces;
    if (again) ask(figure, again.pressed);
    else if (answer.kind === "busy") state.timer = setTimeout(() => ask(figure, pressed), 400);
    else figure.setAttribute("aria-busy", "false");
  }

  // ---- Links: what the controls of open figures hold, where that is not as they came

  const controls_of = (figure) =>
    [...figure.querySelector("form").elements].filter(({ name, type }) => name && type !== "submit");
  const box = ({ type }) => type === "radio" || type === "checkbox";

  function held(control) {
    return box(control) && !control.checked ? "" : control.value;
  }

  function plain(control) {
    if (box(control)) return control.defaultChecked ? control.value : "";
    if (!control.options) return control.defaultValue;
    const options = [...control.options];
    return (options.find(({ defaultSelected }) => defaultSelected) ?? options[0]).value;
  }

  figures.values = (host) => {
    const all = {};
    for (const figure of figures_of(host)) {
      for (const control of controls_of(figure)) {
        const value = held(control);
        const other = control.type === "radio" && !control.checked; // its neighbour says it
        if (value === plain(control) || other) continue;
        (all[figure.dataset.figure] ??= {})[control.name] = value;
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

  function take(figure) {
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
  }

  function outputs(figure) {
    for (const output of figure.querySelectorAll("output[data-of]")) {
      const control = figure.querySelector("form").elements[output.dataset.of];
      output.textContent = `${control.value}${output.dataset.unit}`;
    }
  }

  // Asks for the open figures of a host that have no answer of its model yet.
  figures.refresh = (host) => {
    for (const figure of figures_of(host)) {
      const { key, halted } = state_of(figure);
      if (key !== host.model || halted) ask(figure);
    }
  };

  figures.mounted = (figure) => {
    take(figure);
    if (host_of(figure).open(figure)) ask(figure);
  };

  // What is said once holds for the other figures of a chapter that ask for it, too.
  function carry(control) {
    if (!control.matches?.("[data-carried]")) return;
    const same = `[data-carried][name="${control.name}"]`;
    for (const other of control.closest(".fm-chapter").querySelectorAll(same)) {
      if (other.value === control.value) continue;
      other.value = control.value;
      ask(other.closest(".fm-figure"));
    }
  }

  document.addEventListener("input", (event) => {
    const figure = event.target.closest?.(".fm-figure");
    if (!figure) return;
    outputs(figure);
    carry(event.target);
    ask(figure);
    note(figure);
  });

  document.addEventListener("submit", (event) => {
    const figure = event.target.closest?.(".fm-figure");
    if (!figure) return;
    event.preventDefault();
    ask(figure, event.submitter?.name ?? "");
  });

  document.addEventListener("click", (event) => {
    const figure = event.target.closest?.("[data-halt]")?.closest(".fm-figure");
    if (!figure) return;
    if (state_of(figure).halted) ask(figure);
    else halt(figure);
  });

  document.addEventListener("click", (event) => {
    const button = event.target.closest?.(".fm-figure [data-turn]");
    if (!button) return;
    const dial = button.closest(".fm-control-dial").querySelector("input");
    const next = Number(dial.value) + Number(button.dataset.turn);
    dial.value = String(Math.min(Math.max(next, Number(dial.min)), Number(dial.max)));
    dial.dispatchEvent(new Event("input", { bubbles: true }));
  });
})();
