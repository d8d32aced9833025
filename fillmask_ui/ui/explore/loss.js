// The loss as a curve: -ln p over p, with a dot for the hidden word. The drawing stays while answers
// come and go; a dot is moved by its loss alone, so that it slides along the curve. The Explore tab
// has one; a figure of the lessons has one at `[data-curve]`, with the points of its `[data-points]`.
(() => {
  const page = (window.fillmask ??= {});
  const WIDTH = 240; // of the plot, in units of the drawing
  const HEIGHT = 130;
  const MARGIN = { left: 46, top: 24, right: 16, bottom: 36 };
  const MOST_NATS = 60; // as far as the curve is drawn
  // Where the axis of losses ends, in the reader's unit; twice that where a loss lies beyond.
  const TOPS = { nats: { end: 7, step: 1 }, bits: { end: 10, step: 2 } };

  for (const name of ["--fm-loss", "--fm-top"]) {
    // Numbers that the browser moves between.
    CSS.registerProperty?.({ name, syntax: "<number>", inherits: true, initialValue: "1" });
  }

  function svg(name, attributes = {}, ...children) {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...children);
    return made;
  }

  function curve() {
    const points = [];
    for (let loss = 0; loss <= MOST_NATS; loss += loss < 8 ? 0.05 : 1) {
      points.push(`${(Math.exp(-loss) * WIDTH).toFixed(4)},${(-loss).toFixed(2)}`);
    }
    return `M${points.join("L")}`;
  }

  let drawings = 0;

  function drawing() {
    const id = `fm-loss-clip-${(drawings += 1)}`;
    const clip = svg("clipPath", { id });
    clip.append(svg("rect", { x: 0, y: -4, width: WIDTH + 4, height: HEIGHT + 4 }));
    const ticks = svg("g", { class: "fm-loss-ticks" });
    const dots = svg("g");
    const unit = svg("text", { x: -MARGIN.left + 2, y: -12 });
    const plot = svg("g", { transform: `translate(${MARGIN.left},${MARGIN.top})` });
    const axis = svg("g", { class: "fm-loss-ticks" });
    for (const share of [0, 0.25, 0.5, 0.75, 1]) {
      const x = share * WIDTH;
      axis.append(svg("line", { x1: x, x2: x, y1: HEIGHT, y2: HEIGHT + 4 }));
      const label = svg("text", { x, y: HEIGHT + 16, "text-anchor": "middle" });
      label.textContent = `${100 * share}%`;
      axis.append(label);
    }
    const title = svg("text", { x: WIDTH / 2, y: HEIGHT + 31, "text-anchor": "middle" });
    title.textContent = "probability of the word";
    const frame = svg("rect", { class: "fm-loss-frame", width: WIDTH, height: HEIGHT });
    const line = svg("g", { "clip-path": `url(#${id})` }, svg("path", { d: curve() }));
    plot.append(clip, frame, ticks, axis, title, unit, line, dots);
    const size = `0 0 ${MARGIN.left + WIDTH + MARGIN.right} ${MARGIN.top + HEIGHT + MARGIN.bottom}`;
    const image = svg("svg", { viewBox: size, role: "img", class: "fm-loss-curve" }, plot);
    const caption = document.createElement("figcaption");
    const figure = document.createElement("figure");
    figure.className = "fm-loss";
    figure.append(image, caption);
    image.style.setProperty("--fm-width", WIDTH);
    image.style.setProperty("--fm-height", HEIGHT);
    return { figure, image, ticks, dots, unit, caption };
  }

  function tick(ticks, share, text) {
    const y = HEIGHT * (1 - share);
    ticks.append(svg("line", { x1: -4, x2: 0, y1: y, y2: y }));
    const label = svg("text", { x: -8, y: y + 4, "text-anchor": "end" });
    label.textContent = text;
    ticks.append(label);
  }

  function scale(parts, losses, unit) {
    const nats = unit === "bits" ? Math.LN2 : 1;
    let { end, step } = TOPS[unit] ?? TOPS.nats;
    const largest = Math.max(0, ...losses.filter(Number.isFinite));
    while (end * nats < largest) [end, step] = [2 * end, 2 * step];
    parts.ticks.replaceChildren();
    for (let value = 0; value <= end; value += step) tick(parts.ticks, value / end, String(value));
    parts.unit.textContent = `loss (${unit})`;
    parts.image.style.setProperty("--fm-top", end * nats);
    return end * nats;
  }

  function dot(parts, point, chosen, top) {
    const found = parts.dots.querySelector(`[data-mask="${point.mask}"]`);
    const made = found ?? svg("g", { "data-mask": point.mask, class: "fm-loss-dot" });
    if (!found) {
      made.append(svg("circle", { r: 6 }), svg("text"));
      parts.dots.append(made);
    }
    made.classList.toggle("fm-loss-chosen", chosen);
    const loss = Math.min(point.nll_nats ?? Infinity, top);
    made.style.setProperty("--fm-loss", loss);
    const label = made.querySelector("text");
    label.textContent = chosen ? point.texts[1] : "";
    const left = Math.exp(-loss) < 0.55;
    label.setAttribute("x", left ? 11 : -2);
    label.setAttribute("y", left ? -4 : -12); // clear of the curve
    label.setAttribute("text-anchor", left ? "start" : "end");
    if (chosen && made !== parts.dots.lastChild) parts.dots.append(made); // above the faint ones
  }

  function caption(point, several, unit) {
    const log = unit === "bits" ? "−log₂" : "−ln";
    const first = `The first guess, “${point.word}” (the hidden word is not known): `;
    const hidden = point.word ? `The hidden word “${point.word}”: ` : "";
    const whose = point.hidden ? hidden : first;
    const others = several ? " The faint dots are the other masks." : "";
    return `${whose}${log} ${point.texts[0]} = ${point.texts[1]}.${others}`;
  }

  // Points, one per mask, in a drawing; `chosen` is one of them.
  function draw(parts, points, chosen, unit) {
    const top = scale(parts, points.map(({ nll_nats }) => nll_nats ?? Infinity), unit);
    for (const old of [...parts.dots.children]) {
      if (!points.some(({ mask }) => String(mask) === old.dataset.mask)) old.remove();
    }
    for (const point of points) dot(parts, point, point === chosen, top);
    const text = caption(chosen, points.length > 1, unit);
    parts.caption.textContent = text;
    parts.image.setAttribute("aria-label", `The loss as a curve over the probability. ${text}`);
  }

  // ---- A figure of the lessons

  const curves = new WeakMap(); // place -> its drawing

  document.addEventListener("fillmask:figure", ({ detail }) => {
    const place = detail.figure.querySelector("[data-curve]");
    if (!place) return;
    if (!curves.has(place)) curves.set(place, drawing());
    const parts = curves.get(place);
    if (parts.figure.parentElement !== place) place.replaceChildren(parts.figure);
    const points = JSON.parse(detail.figure.querySelector("[data-points]").dataset.points);
    draw(parts, points, points[0], "nats");
  });

  // ---- The Explore tab

  let parts = null;
  let points = []; // one per mask, the chosen one last

  function explore(detail) {
    const place = document.getElementById("loss");
    const chosen = points.find(({ mask }) => mask === detail.selected);
    place.hidden = !chosen;
    if (!chosen) return;
    parts ??= drawing();
    if (parts.figure.parentElement !== place) place.replaceChildren(parts.figure);
    draw(parts, points, chosen, page.explore.state.unit);
  }

  document.addEventListener("fillmask:answer", async ({ detail }) => {
    if (detail.kind === "error" && !detail.mask) return; // what was there before stays
    const beside = (others) => {
      const kept = others.filter(({ mask }) => mask < detail.masks && mask !== detail.selected);
      points = [...kept, ...detail.losses];
      explore(detail);
    };
    // What a run hid beside its token has no dots.
    const several = detail.mask && detail.masks > 1 && !page.explore.state.run;
    beside(several ? points : []);
    if (!several) return;
    // The other masks come later, so that nobody waits for them; until then they stay.
    const found = await page.explore.call("losses").catch(() => ({ version: detail.version, points: [] }));
    if (page.explore.answer === detail && found.version === detail.version) beside(found.points);
  });
})();
