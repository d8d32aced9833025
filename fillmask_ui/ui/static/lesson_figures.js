// Figures of the lessons: what a form holds goes to the server, and its pieces of HTML come back.
// One question per figure is on its way at a time; the next one takes the latest values.
(() => {
  const page = (window.fillmask ??= {});
  const MOST_CHARACTERS = 2_000; // servers and chat programs cut addresses at about 8,000
  const states = new WeakMap(); // figure -> { asking, again, key }

  const state_of = (figure) => {
    if (!states.has(figure)) states.set(figure, { asking: false, again: false, key: null });
    return states.get(figure);
  };

  function values_of(figure, pressed) {
    const values = Object.fromEntries(new FormData(figure.querySelector("form")));
    if (pressed) values[pressed] = "1";
    return values;
  }

  function notice(figure, { kind, notice: text = "", fraction = null }) {
    const line = document.createElement("div");
    if (kind !== "shown") {
      line.className = `fm-notice fm-${kind}`;
      line.textContent = text;
    }
    line.setAttribute("role", kind === "error" ? "alert" : "status");
    if (kind === "busy") {
      const bar = line.appendChild(document.createElement("progress"));
      bar.setAttribute("aria-label", "progress");
      if (fraction !== null) bar.value = fraction;
    }
    figure.querySelector(".fm-figure-notice").replaceChildren(line);
  }

  // Lengths move from what they were to what they are.
  function place(box, html) {
    const before = {};
    for (const bar of box.querySelectorAll("[data-bar] .fm-bar-fill")) {
      before[bar.closest("[data-bar]").dataset.bar] = bar.style.getPropertyValue("--p");
    }
    const held = box.contains(document.activeElement) ? document.activeElement.id : "";
    box.innerHTML = html;
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

  async function ask(figure, pressed = "") {
    const state = state_of(figure);
    if (state.asking) {
      state.again = { pressed: pressed || state.again?.pressed || "" };
      return;
    }
    state.asking = true;
    const values = values_of(figure, pressed);
    const model = page.learn.model;
    state.key = model;
    figure.setAttribute("aria-busy", "true");
    let answer;
    try {
      answer = await page.learn.call("figure", { name: figure.dataset.figure, values });
    } catch {
      answer = { kind: "error", notice: "The page cannot reach its server. Change something to try again." };
    }
    state.asking = false;
    const again = state.again;
    state.again = false;
    if (!again) notice(figure, answer);
    figure.classList.toggle("fm-stale", answer.kind !== "shown");
    if (answer.kind === "shown") {
      for (const [name, html] of Object.entries(answer.pieces)) {
        const box = figure.querySelector(`[data-piece="${name}"]`);
        if (box) place(box, html);
      }
      for (const [name, value] of Object.entries(answer.set)) {
        const control = figure.querySelector("form").elements[name];
        if (control) control.value = value;
      }
      outputs(figure);
      if (Object.keys(answer.set).length) note();
      document.dispatchEvent(new CustomEvent("fillmask:figure", { detail: { figure } }));
      for (const name of Object.keys(answer.set)) {
        const control = figure.querySelector("form").elements[name];
        if (control) carry(control);
      }
    }
    if (again) ask(figure, again.pressed);
    else if (answer.kind === "busy") setTimeout(() => ask(figure, pressed), 400);
    else figure.setAttribute("aria-busy", "false");
  }

  // ---- Links: what the controls of the open chapter hold, where that is not as they came

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

  page.learn.values = () => {
    const all = {};
    for (const figure of document.querySelectorAll(`#chapter-${page.learn.chapter} .fm-figure`)) {
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
  function note() {
    clearTimeout(noted);
    noted = setTimeout(() => page.change_address({ values: page.learn.values() }), 400);
  }

  function take(figure) {
    const link = new URLSearchParams(window.location.search);
    if (`chapter-${link.get("chapter")}` !== figure.closest(".fm-chapter").id) return;
    let values = {};
    try {
      values = JSON.parse(link.get("values"))?.[figure.dataset.figure] ?? {};
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

  // A figure is asked for once its chapter is open, and again for another model.
  document.addEventListener("fillmask:chapter", ({ detail }) => {
    for (const figure of document.querySelectorAll(`#chapter-${detail.chapter} .fm-figure`)) {
      if (state_of(figure).key !== detail.model) ask(figure);
    }
  });

  page.learn.mounted = (figure) => {
    take(figure);
    const open = figure.closest(".fm-chapter").id === `chapter-${page.learn.chapter}`;
    if (open) ask(figure);
  };

  // What is said once holds for the other figures of a chapter that ask for it, too.
  function carry(control) {
    if (!control.matches("[data-carried]")) return;
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
    note();
  });

  document.addEventListener("submit", (event) => {
    const figure = event.target.closest?.(".fm-figure");
    if (!figure) return;
    event.preventDefault();
    ask(figure, event.submitter?.name ?? "");
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
