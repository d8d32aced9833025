// The Learn tab in the browser: which chapter and step are open, in the address and on the screen,
// and the projector, which shows one step at a time in letters for the back row.
(() => {
  const page = (window.fillmask ??= {});
  const UNREACHABLE = { error: "The page cannot reach its server. Open the chapter again." };
  const learn = (page.learn = { chapter: "", step: 1, projecting: false });
  const chapter_of = (figure) => figure.closest(".fm-chapter").id.slice("chapter-".length);
  const host = page.figures.host({
    root: "learn",
    parameter: "values",
    model: "",
    server: null,
    open: (figure) => chapter_of(figure) === learn.chapter,
    linked: (figure, link) => chapter_of(figure) === link.get("chapter"),
  });
  const root = () => document.getElementById("learn");
  const links = () => [...(root()?.querySelectorAll("a[data-chapter]") ?? [])];
  const names = () => links().map((link) => link.dataset.chapter);
  const current_link = () => links().find((link) => link.dataset.chapter === learn.chapter);
  const steps = () => Number(current_link()?.dataset.steps ?? 1);
  const parameters = () => Object.fromEntries(new URLSearchParams(window.location.search));

  learn.steps = steps;
  learn.visible = () => root()?.checkVisibility() ?? false;

  const article = (chapter) => document.getElementById(`chapter-${chapter}`);
  let opened = parameters().chapter; // as the address says

  // A chapter comes from the server when it is first opened.
  const loads = {}; // chapter -> the promise of its text
  async function load(chapter) {
    const { html, error } = await learn.call("chapter", { chapter }).catch(() => UNREACHABLE);
    article(chapter).innerHTML = html ?? "";
    if (error) {
      article(chapter).textContent = error;
      delete loads[chapter]; // opening it again asks again
    }
    for (const figure of article(chapter).querySelectorAll(".fm-figure")) page.figures.take(figure);
  }

  async function show({ scroll = true, push = false } = {}) {
    const number = names().indexOf(learn.chapter);
    for (const link of links()) {
      if (link === current_link()) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
    current_link().scrollIntoView({ block: "nearest", inline: "center" });
    root().querySelector('[data-learn="back"]').disabled = number === 0;
    root().querySelector('[data-learn="next"]').disabled = number === names().length - 1;
    const { chapter } = learn;
    await (loads[chapter] ??= load(chapter));
    if (chapter !== learn.chapter) return; // another one was opened meanwhile
    for (const name of names()) article(name).hidden = name !== chapter;
    article(chapter)
      .querySelectorAll(".fm-step")
      .forEach((step, index) => step.classList.toggle("fm-current", index + 1 === learn.step));
    // Steps of Explore end here: Ctrl+Z takes back no chapter.
    page.change_address(address(), push ? { ...history.state, step: 0 } : history.state, push);
    opened = chapter;
    if (scroll) (learn.projecting ? root() : window).scrollTo(0, 0);
    page.figures.refresh(host);
    page.exercises.show();
    if (learn.projecting) project();
  }

  const address = () => ({
    chapter: learn.chapter,
    step: learn.projecting && learn.step > 1 ? String(learn.step) : null,
    project: learn.projecting ? "1" : null,
    ...(opened === learn.chapter ? {} : { values: page.figures.values(host) }),
  });

  // Opens a chapter by its name; an unknown one is the first. With `push` it is a step to come
  // back from.
  learn.open = (chapter, { step = 1, push = false } = {}) => {
    const changed = chapter !== learn.chapter;
    learn.chapter = names().includes(chapter) ? chapter : names()[0];
    learn.step = Math.min(Math.max(1, step || 1), steps());
    return show({ push: push && changed });
  };

  // The chapter `by` further on, or the step where a projector shows one at a time.
  function go(by) {
    const next = names()[names().indexOf(learn.chapter) + by];
    if (!learn.projecting) return next && learn.open(next, { push: true });
    const step = learn.step + by;
    if (step >= 1 && step <= steps()) return learn.open(learn.chapter, { step });
    if (next) learn.open(next, { step: by > 0 ? 1 : Infinity, push: true });
  }

  learn.use = (model, plain) => {
    host.model = model ?? "";
    page.change_address({ learn_model: model === plain ? null : model });
    if (learn.chapter) page.figures.refresh(host);
  };

  // A function of the server by its name; it answers with JSON.
  learn.call = (name, values) => host.server[name]({ model: host.model, ...values });

  learn.begin = (server) => {
    host.server = server;
    begin();
  };

  // Once the tab is looked at; until then it asks for nothing and leaves the address alone.
  function begin() {
    if (!host.server || learn.chapter || !learn.visible()) return;
    const { chapter, step, project } = parameters();
    learn.open(chapter, { step: Number(step) });
    if (project) learn.project();
  }

  document.addEventListener("fillmask:tab", () => requestAnimationFrame(begin));

  page.take_links?.("learn", ({ chapter }) => {
    if (!chapter) return;
    if (learn.chapter) learn.open(chapter, { push: true });
    else page.change_address({ chapter }); // taken up once the tab is there
  });

  window.addEventListener("popstate", () => {
    if (learn.chapter && learn.visible()) learn.open(parameters().chapter, { step: Number(parameters().step) });
  });

  document.addEventListener("click", (event) => {
    const link = event.target.closest?.("#learn a[data-chapter]");
    const button = event.target.closest?.("#learn [data-learn]");
    if (link && !event.ctrlKey && !event.metaKey && !event.shiftKey) {
      event.preventDefault();
      learn
        .open(link.dataset.chapter, { push: true })
        .then(() => article(learn.chapter).querySelector("h2")?.focus({ preventScroll: true }));
    } else if (button) {
      const acts = { back: () => go(-1), next: () => go(1), project: learn.project, save: learn.save };
      acts[button.dataset.learn]();
    }
  });

  // ---- The projector

  const LEAST = 0.73; // of the largest letters
  let inert = [];

  function set_projecting(on) {
    learn.projecting = on;
    document.body.classList.toggle("fm-projecting", on);
    document.getElementById("fm-project-foot").hidden = !on;
    for (const element of inert) element.inert = on;
  }

  learn.project = () => {
    if (learn.projecting || !learn.visible()) return;
    for (let node = root(); node !== document.body; node = node.parentElement)
      for (const element of node.parentElement.children)
        if (element !== node && !element.inert) inert.push(element);
    set_projecting(true);
    // Where the browser forbids it, the page's own window is filled.
    document.documentElement.requestFullscreen?.().catch(() => {});
    if (!root().contains(document.activeElement)) document.activeElement?.blur();
    show();
  };

  learn.leave = () => {
    if (!learn.projecting) return;
    set_projecting(false);
    inert = [];
    document.documentElement.style.fontSize = "";
    if (document.fullscreenElement) document.exitFullscreen();
    show({ scroll: false });
  };

  // The largest letters with which the step fits the screen; the least are still for the back row.
  // All sizes of the page are relative to this one. Letters grow with a new step only.
  let share = 1;
  function fit() {
    if (!learn.projecting) return;
    const most = Math.max(18, Math.min(0.031 * innerHeight, 0.021 * innerWidth));
    const set = () => (document.documentElement.style.fontSize = `${share * most}px`);
    const fits = () => root().scrollHeight <= root().clientHeight;
    for (set(); share > LEAST && !fits(); set()) share -= 0.04;
  }

  function project() {
    const text = `${current_link().textContent.trim()} · ${learn.step} of ${steps()}`;
    document.querySelector("#fm-project-foot .fm-project-place").textContent = text;
    share = 1;
    fit();
  }

  document.addEventListener("fillmask:figure", fit);
  window.addEventListener("resize", fit);
  document.addEventListener("fullscreenchange", () => document.fullscreenElement || learn.leave());

  const KEYS = { ArrowRight: 1, PageDown: 1, ArrowLeft: -1, PageUp: -1 };
  document.addEventListener("keydown", (event) => {
    const typing = event.target.matches?.("input, textarea, select, [contenteditable]");
    if (event.ctrlKey || event.metaKey || event.altKey || !learn.visible()) return;
    const { key } = event;
    if (key === "p" && !typing) (learn.projecting ? learn.leave : learn.project)();
    else if (!learn.projecting) return;
    else if (key === "Escape") learn.leave();
    else if (key in KEYS && !typing) go(KEYS[key]);
    else return;
    event.preventDefault();
  });
})();
