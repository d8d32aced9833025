// The Learn tab in the browser: which chapter and step are open, in the address and on the screen.
(() => {
  const page = (window.fillmask ??= {});
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
  const here = () => links().find((link) => link.dataset.chapter === learn.chapter);
  const steps = () => Number(here()?.dataset.steps ?? 1);

  learn.visible = () => root()?.checkVisibility() ?? false;

  // A sheet of its own opens a chapter, since Gradio may write the classes of what it made anew.
  const sheet = document.head.appendChild(document.createElement("style"));

  let opened = new URLSearchParams(window.location.search).get("chapter"); // as the address says

  function show({ scroll = true, push = false } = {}) {
    const open = `#learn #chapter-${learn.chapter}.fm-chapter { display: flex !important; }`;
    const step = `#step-${learn.chapter}-${learn.step}`;
    const alone = `.fm-projecting #learn .fm-step:not(${step}) { display: none !important; }`;
    sheet.textContent = open + alone;
    const all = names();
    const number = all.indexOf(learn.chapter);
    for (const link of links()) {
      if (link.dataset.chapter === learn.chapter) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
    root().querySelector('[data-learn="back"]').disabled = number === 0;
    root().querySelector('[data-learn="next"]').disabled = number === all.length - 1;
    // Steps of Explore end here: Ctrl+Z takes back no chapter.
    page.change_address(address(), push ? { ...history.state, step: 0 } : history.state, push);
    opened = learn.chapter;
    if (scroll) (learn.projecting ? root() : window).scrollTo(0, 0);
    page.figures.refresh(host);
    document.dispatchEvent(new CustomEvent("fillmask:chapter", { detail: { ...learn } }));
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
    show({ push: push && changed });
  };

  // The chapter `by` further on, or the step where a projector shows one at a time.
  learn.go = (by) => {
    const all = names();
    const next = all[all.indexOf(learn.chapter) + by];
    if (!learn.projecting) return next && learn.open(next, { push: true });
    const step = learn.step + by;
    if (step >= 1 && step <= steps()) return learn.open(learn.chapter, { step });
    if (next) learn.open(next, { step: by > 0 ? 1 : Infinity, push: true });
  };

  learn.steps = steps;
  learn.show = show;

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
    const asked = Object.fromEntries(new URLSearchParams(window.location.search));
    learn.open(asked.chapter, { step: Number(asked.step) });
    if (asked.project) learn.project();
  }

  document.addEventListener("fillmask:tab", () => requestAnimationFrame(begin));

  page.take_links?.("learn", ({ chapter }) => {
    if (!chapter) return;
    if (learn.chapter) learn.open(chapter, { push: true });
    else page.change_address({ chapter }); // taken up once the tab is there
  });

  window.addEventListener("popstate", () => {
    const { chapter, step } = Object.fromEntries(new URLSearchParams(window.location.search));
    if (learn.chapter && learn.visible()) learn.open(chapter, { step: Number(step) });
  });

  document.addEventListener("click", (event) => {
    const link = event.target.closest?.("#learn a[data-chapter]");
    const button = event.target.closest?.("#learn [data-learn]");
    if (link && !event.ctrlKey && !event.metaKey && !event.shiftKey) {
      event.preventDefault();
      learn.open(link.dataset.chapter, { push: true });
      root().querySelector(`#chapter-${learn.chapter} h2`).focus({ preventScroll: true });
    } else if (button) {
      const acts = { back: () => learn.go(-1), next: () => learn.go(1), project: learn.project, save: learn.save };
      acts[button.dataset.learn]();
    }
  });
})();
