// What stands beside an element while it is pointed at or has the focus; Escape takes it away. So
// figures are explained, beside their names, and so are the words of a sentence (`modes.js`).
(() => {
  const page = (window.fillmask ??= {});

  // Calls `act` when a mouse moves. A browser also tells of what changes below a mouse that rests.
  page.on_move = (act) => {
    let before = "";
    document.addEventListener("pointermove", (event) => {
      const here = `${event.screenX},${event.screenY}`;
      if (event.pointerType === "mouse" && here !== before) act(event);
      before = here;
    });
  };

  // `box` makes the element that is shown, `of` finds what an event is about, and `fill` puts into
  // the box what is to be said of it, if there is anything.
  page.beside = (box, of, fill) => {
    let shown = null; // the element that is explained now
    let leaving = 0;

    function show(element) {
      if (!fill(element)) return hide();
      hide();
      shown = element;
      shown.style.anchorName = "--fm-beside"; // where styles put the box
      box().hidden = false;
    }

    function hide() {
      clearTimeout(leaving);
      if (!shown) return;
      shown.style.anchorName = "";
      box().hidden = true;
      shown = null;
    }

    const inside = (event) => shown && box().contains(event.target);
    // The pointer may go on to the box itself.
    page.on_move((event) => {
      const element = of(event);
      if (inside(event) || (element && element === shown)) clearTimeout(leaving);
      else if (element) show(element);
    });
    document.addEventListener("pointerout", (event) => {
      const left = shown && event.pointerType === "mouse" && (of(event) || inside(event));
      if (left && document.activeElement !== shown) leaving = setTimeout(hide, 200);
    });
    document.addEventListener("focusin", (event) => (of(event) ? show(of(event)) : hide()));
    document.addEventListener("focusout", hide);
    document.addEventListener("click", (event) => {
      if (of(event)) show(of(event));
      else if (!inside(event)) hide();
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
    document.addEventListener("fillmask:answer", () => shown?.isConnected || hide());
    document.addEventListener("fillmask:presenting", hide);
    return { show, hide };
  };

  const tip = document.createElement("div");
  tip.id = "fm-tip";
  tip.hidden = true;
  tip.setAttribute("aria-hidden", "true"); // the name itself is described by the same line
  page.beside(
    () => tip,
    (event) => event.target.closest?.(".fm-explain"),
    (name) => {
      tip.textContent = document.getElementById(name.getAttribute("aria-describedby"))?.textContent;
      if (!tip.isConnected) document.body.append(tip);
      return tip.textContent;
    },
  );
})();
