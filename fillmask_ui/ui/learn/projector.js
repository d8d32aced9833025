// The projector: one step of a chapter at a time, in letters for the back row.
(() => {
  const page = (window.fillmask ??= {});
  const { learn } = page;
  const root = () => document.getElementById("learn");
  const LEAST = 0.73; // of the largest letters
  let inert = [];

  learn.project = () => {
    if (learn.projecting || !learn.visible()) return;
    learn.projecting = true;
    for (let node = root(); node !== document.body; node = node.parentElement)
      for (const other of node.parentElement.children)
        if (other !== node && !other.inert) inert.push(other);
    for (const other of inert) other.inert = true;
    document.body.classList.add("fm-projecting");
    document.getElementById("fm-project-foot").hidden = false;
    // Where the browser forbids it, the page's own window is filled.
    document.documentElement.requestFullscreen?.().catch(() => {});
    if (!root().contains(document.activeElement)) document.activeElement?.blur();
    learn.show();
  };

  learn.leave = () => {
    if (!learn.projecting) return;
    learn.projecting = false;
    for (const other of inert) other.inert = false;
    inert = [];
    document.body.classList.remove("fm-projecting");
    document.documentElement.style.fontSize = "";
    document.getElementById("fm-project-foot").hidden = true;
    if (document.fullscreenElement) document.exitFullscreen();
    learn.show({ scroll: false });
  };

  // The largest letters with which the step fits the screen; the least are still for the back row.
  // All sizes of the page are relative to this one. Letters grow with a new step only.
  let share = 1;
  function fit() {
    const most = Math.max(18, Math.min(0.031 * innerHeight, 0.021 * innerWidth));
    const set = () => (document.documentElement.style.fontSize = `${share * most}px`);
    const fits = () => root().scrollHeight <= root().clientHeight;
    for (set(); share > LEAST && !fits(); set()) share -= 0.04;
  }

  function place() {
    const chapter = root().querySelector(`a[data-chapter="${learn.chapter}"]`).textContent.trim();
    const text = `${chapter} · ${learn.step} of ${learn.steps()}`;
    document.querySelector("#fm-project-foot .fm-project-place").textContent = text;
  }

  document.addEventListener("fillmask:chapter", () => {
    if (!learn.projecting) return;
    place();
    share = 1;
    fit();
  });
  document.addEventListener("fillmask:figure", () => learn.projecting && fit());
  window.addEventListener("resize", () => learn.projecting && fit());

  document.addEventListener("fullscreenchange", () => {
    if (!document.fullscreenElement) learn.leave();
  });

  const KEYS = { ArrowRight: 1, PageDown: 1, ArrowLeft: -1, PageUp: -1 };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const typing = event.target.matches?.("input, textarea, select, [contenteditable]");
    if (!learn.projecting) {
      if (event.key !== "p" || typing || !learn.visible()) return;
      event.preventDefault();
      return learn.project();
    }
    if (event.key === "Escape" || (event.key === "p" && !typing)) {
      event.preventDefault();
      learn.leave();
    } else if (event.key in KEYS && !typing) {
      event.preventDefault();
      learn.go(KEYS[event.key]);
    }
  });
})();
