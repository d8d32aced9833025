// A tour of five steps: a card beside what it is about, from any button with `data-tour`. It is not
// modal: the page goes on working beneath it.
(() => {
  const page = (window.fillmask ??= {});
  const GAP = 14;
  const narrow = matchMedia("(max-width: 620px)");
  let card = null;
  let step = -1; // the one shown; -1 for none
  let opener = null; // where the focus was before it came to the card

  const steps = () => [...card.querySelectorAll(".fm-tour-step")];
  const visible = (element) => element?.checkVisibility() && element.getClientRects().length > 0;
  const target = () =>
    steps()[step].dataset.target.split(", ").map((own) => document.querySelector(own)).find(visible);
  const exploring = () => visible(document.getElementById("sentence"));
  const meets = (a, b) =>
    a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;

  function mark(about) {
    for (const old of document.querySelectorAll(".fm-tour-target")) old.classList.remove("fm-tour-target");
    about?.classList.add("fm-tour-target");
  }

  // Below, above, right or left of the target: the first place inside the page, off the target, the
  // sentence box and its words. On a narrow screen a sheet at the bottom, or at the top where the
  // sentence box is at the bottom.
  function place() {
    if (step < 0) return;
    if (!exploring() && step === steps().length - 1) return end(); // went on to Evaluate
    card.hidden = !exploring();
    if (card.hidden) return;
    mark(target());
    const [sentence, strip] = ["sentence", "strip"].map((id) => document.getElementById(id).getBoundingClientRect());
    const { width, height } = card.getBoundingClientRect();
    card.classList.remove("fm-tour-top");
    card.style.cssText = "";
    if (narrow.matches) {
      card.classList.toggle("fm-tour-top", meets(card.getBoundingClientRect(), sentence));
      return;
    }
    const box = target()?.getBoundingClientRect() ?? sentence;
    const right = document.documentElement.clientWidth - GAP;
    const across = Math.max(GAP, Math.min(box.left, right - width));
    const places = [
      { left: across, top: box.bottom + GAP },
      { left: across, top: strip.bottom + GAP },
      { left: across, top: box.top - GAP - height },
      { left: box.right + GAP, top: box.top },
      { left: box.left - GAP - width, top: box.top },
      { left: sentence.right + GAP, top: box.bottom + GAP },
      { left: right - width, top: sentence.bottom + GAP },
    ].map((at) => ({ ...at, right: at.left + width, bottom: at.top + height }));
    const inside = (at) => at.left >= 0 && at.right <= right + GAP && at.top + scrollY >= 0;
    const free = (at) => ![box, sentence, strip].some((other) => meets(at, other));
    const at = places.find((at) => inside(at) && free(at)) ?? places.at(-1);
    const origin = (card.offsetParent ?? document.body).getBoundingClientRect();
    card.style.left = `${at.left - origin.left}px`;
    card.style.top = `${at.top - origin.top}px`;
  }

  function show(to) {
    step = to;
    steps().forEach((element, number) => (element.hidden = number !== step));
    card.querySelector("[data-go=back]").disabled = step === 0;
    card.querySelector("[data-go=next]").textContent = step < steps().length - 1 ? "Next" : "Done";
    card.hidden = false;
    place();
    // On a narrow screen the card is a sheet that stays.
    target()?.scrollIntoView({ block: narrow.matches ? "start" : "nearest" });
    card.scrollIntoView({ block: "nearest" });
  }

  function end() {
    const focused = card.contains(document.activeElement);
    card.hidden = true;
    step = -1;
    mark(null);
    if (!focused) return;
    if (visible(opener)) opener.focus();
    else document.querySelector("#sentence textarea").focus({ preventScroll: true });
  }

  // Explore may just be opening.
  function start(tries = 50) {
    if (card && exploring()) {
      show(0);
      card.focus({ preventScroll: true });
    } else if (tries > 0) setTimeout(() => start(tries - 1), 100);
  }

  function go(button) {
    const to = { skip: -1, back: step - 1, next: step + 1 }[button.dataset.go];
    if (to < 0 || to >= steps().length) return end();
    show(to);
    // A button that is switched off loses the focus.
    if (button.disabled) card.querySelector("[data-go=next]").focus();
  }

  page.on("click", "#fm-tour [data-go]", go);
  page.on("click", "[data-tour]", (button) => {
    opener = button;
    if (!exploring()) page.follow("tab=explore");
    start();
  });
  document.addEventListener("keydown", (event) => {
    const presenting = document.body.classList.contains("fm-presenting");
    if (event.key === "Escape" && step >= 0 && !presenting && !event.defaultPrevented) end();
  });
  for (const moved of ["fillmask:answer", "fillmask:stale"]) document.addEventListener(moved, place);
  window.addEventListener("resize", place);
  window.addEventListener("scroll", () => narrow.matches && place(), { passive: true });

  page.tour = {
    mount(element) {
      card = element.querySelector(".fm-tour");
      new ResizeObserver(place).observe(document.body);
    },
  };
})();
