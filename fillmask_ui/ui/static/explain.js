// What a figure means, beside its name: on hover, on focus and on touch; Escape takes it away.
(() => {
  let shown = null; // the name that is explained now
  let leaving = 0;
  const tip = document.createElement("div");
  tip.id = "fm-tip";
  tip.hidden = true;
  tip.setAttribute("aria-hidden", "true"); // the name itself is described by the same line

  const name_of = (event) => event.target.closest?.(".fm-explain");

  function place() {
    if (!shown) return;
    if (!shown.isConnected) return hide();
    const name = shown.getBoundingClientRect();
    const [width, height] = [tip.offsetWidth, tip.offsetHeight];
    const right = document.documentElement.clientWidth - width - 8;
    tip.style.left = `${Math.max(8, Math.min(name.left, right))}px`;
    const below = name.bottom + height < document.documentElement.clientHeight;
    tip.style.top = `${below ? name.bottom : name.top - height}px`;
  }

  function show(name) {
    clearTimeout(leaving);
    const line = document.getElementById(name.getAttribute("aria-describedby"));
    if (!line) return;
    if (!tip.isConnected) document.body.append(tip);
    shown = name;
    tip.textContent = line.textContent;
    tip.hidden = false;
    place();
  }

  function hide() {
    clearTimeout(leaving);
    shown = null;
    tip.hidden = true;
  }

  // The pointer may go on to the line itself.
  document.addEventListener("pointerover", (event) => {
    if (event.pointerType !== "mouse") return;
    if (tip.contains(event.target)) clearTimeout(leaving);
    else if (name_of(event)) show(name_of(event));
  });
  document.addEventListener("pointerout", (event) => {
    const left = shown && event.pointerType === "mouse" && (name_of(event) || tip.contains(event.target));
    if (left && document.activeElement !== shown) leaving = setTimeout(hide, 200);
  });
  document.addEventListener("focusin", (event) => (name_of(event) ? show(name_of(event)) : hide()));
  document.addEventListener("focusout", hide);
  document.addEventListener("click", (event) => {
    if (name_of(event)) show(name_of(event));
    else if (!tip.contains(event.target)) hide();
  });
  // In the capture phase: Escape then takes away this and nothing else.
  document.addEventListener(
    "keydown",
    (event) => {
      if (event.key !== "Escape" || !shown) return;
      hide();
      event.stopPropagation();
    },
    true,
  );
  window.addEventListener("scroll", place, { capture: true, passive: true });
  document.addEventListener("fillmask:answer", place);
})();
