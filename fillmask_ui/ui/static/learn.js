// The Learn tab in the browser: which chapter and step are open, in the address and on the screen.
(() => {
  const page = (window.fillmask ??= {});
  const learn = (page.learn = { chapter: "", step: 1, model: "", server: null, projecting: false });
  const root = () => document.getElementById("learn");
  const links = () => [...(root()?.querySelectorAll("a[data-chapter]") ?? [])];
  const names = () => links().map((link) => link.dataset.chapter);
  const here = () => links().find((link) => link.dataset.chapter === learn.chapter);
  const steps = () => Number(here()?.dataset.steps ?? 1);

  learn.visible = () => root()?.checkVisibility() ?? false;

  // A sheet of its own opens a chapter, since Gradio may write the classes of what it made anew.
  const sheet = document.head.appendChild(document.createElement("style"));

  function show({ scroll = true } = {}) {
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
    page.change_address(address());
    if (scroll) (learn.projecting ? root() : window).scrollTo(0, 0);
    document.dispatchEvent(new CustomEvent("fillmask:chapter", { detail: { ...learn } }));
  }

  const address = () => ({
    chapter: learn.chapter,
    step: learn.projecting && learn.step > 1 ? String(learn.step) : null,
    project: learn.projecting ? "1" : null,
  });

  // Opens a chapter by its name; an unknown one is the first.
  learn.open = (chapter, step = 1) => {
    learn.chapter = names().includes(chapter) ? chapter : names()[0];
    learn.step = Math.min(Math.max(1, step || 1), steps());
    show();
  };

  // The chapter `by` further on, or the step where a projector shows one at a time.
  learn.go = (by) => {
    const all = names();
    const next = all[all.indexOf(learn.chapter) + by];
    if (!learn.projecting) return next && learn.open(next);
    const step = learn.step + by;
    if (step >= 1 && step <= steps()) return learn.open(learn.chapter, step);
    if (next) learn.open(next, by > 0 ? 1 : Infinity);
  };

  learn.steps = steps;
  learn.show = show;

  learn.use = (model) => {
    learn.model = model ?? "";
    if (learn.server) document.dispatchEvent(new CustomEvent("fillmask:chapter", { detail: { ...learn } }));
  };

  // A function of the server by its name; it answers with JSON.
  learn.call = (name, values) => learn.server[name]({ model: learn.model, ...values });

  learn.begin = (server) => {
    learn.server = server;
    const asked = Object.fromEntries(new URLSearchParams(window.location.search));
    learn.open(asked.chapter, Number(asked.step));
    if (asked.project) learn.project?.();
  };

  page.take_links?.("learn", ({ chapter }) => {
    if (learn.server) learn.open(chapter);
  });

  document.addEventListener("click", (event) => {
    const link = event.target.closest?.("#learn a[data-chapter]");
    const button = event.target.closest?.("#learn [data-learn]");
    if (link && !event.ctrlKey && !event.metaKey && !event.shiftKey) {
      event.preventDefault();
      learn.open(link.dataset.chapter);
      root().querySelector(`#chapter-${learn.chapter} h2`).focus({ preventScroll: true });
    } else if (button) {
      const acts = { back: () => learn.go(-1), next: () => learn.go(1), project: learn.project, save: learn.save };
      acts[button.dataset.learn]();
    }
  });
})();
