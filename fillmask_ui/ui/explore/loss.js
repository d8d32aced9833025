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
    const frame = svg("rect", { class: "fm-loss-frame fm-frame", width: WIDTH, height: HEIGHT });
    const line = svg("g", { "clip-path": `url(#${id})` }, svg("path", { d: curve() }));
    plot.append(clip, frame, ticks, axis, title, unit, line, dots);
    const size = `0 0 ${MARGIN.left + WIDTH + MARGIN.right} ${MARGIN.top + HEIGHT + MARGIN.bottom}`;
    const image = svg("svg", { viewBox: size, role: "img", class: "fm-loss-curve fm-drawing" }, plot);
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

  // ---- The card of a presentation: words on the curve, its axes as long as they need

  const X_ENDS = [0.04, 0.08, 0.2, 0.4, 0.8, 1]; // a quarter of each is a round number
  const CARD = { width: 620, height: 650, left: 64, top: 24, right: 584, bottom: 570 };

  function text(content, attributes) {
    const made = svg("text", attributes);
    made.textContent = content;
    return made;
  }

  // `points` set the axes; those in `shown` have a dot: { word, probability, nll_nats, truth }.
  page.loss_card = (points, shown, unit) => {
    const { left, right, top, bottom } = CARD;
    const size = unit === "bits" ? Math.LN2 : 1;
    const finite = points.filter(({ nll_nats }) => Number.isFinite(nll_nats));
    const loss = ({ nll_nats }) => nll_nats / size;
    const x_end = X_ENDS.find((end) => finite.every((own) => own.probability <= 0.96 * end)) ?? 1;
    const most = Math.max(3, ...finite.map(loss));
    const step = [1, 2, 5, 10, 20].find((own) => most / own < 6) ?? 50;
    const y_end = step * Math.ceil((most + 0.2) / step);
    const x = (p) => left + ((right - left) * p) / x_end;
    const y = (nll) => bottom - ((bottom - top) * nll) / y_end;
    const image = svg("svg", { viewBox: `0 0 ${CARD.width} ${CARD.height}`, role: "img", class: "fm-drawing" });
    for (let value = 0; value <= y_end; value += step) {
      const line = { x1: left, x2: right, y1: y(value), y2: y(value) };
      image.append(svg("line", { ...line, class: value ? "fm-grid" : "fm-axis" }));
      image.append(text(value, { x: left - 14, y: y(value) + 9, "text-anchor": "end" }));
    }
    for (let part = 0; part <= 4; part++) {
      const label = `${Number(((100 * x_end * part) / 4).toPrecision(3))}%`;
      image.append(text(label, { x: x((x_end * part) / 4), y: bottom + 36, "text-anchor": "middle" }));
    }
    image.append(text("probability p of the word", { x: (left + right) / 2, y: bottom + 74, "text-anchor": "middle" }));
    const curve = [];
    const first = Math.exp(-y_end * size);
    for (let place = 0; place <= 200; place++) {
      const p = first * (x_end / first) ** (place / 200);
      curve.push(`${x(p).toFixed(1)},${y(-Math.log(p) / size).toFixed(1)}`);
    }
    image.append(svg("polyline", { points: curve.join(" "), class: "fm-curve" }));
    const dots = shown.filter((own) => finite.includes(own)).sort((a, b) => loss(a) - loss(b));
    let free = Infinity; // labels go up along the curve and do not meet
    for (const own of dots.filter(({ truth }) => !truth)) {
      const at = { x: x(own.probability), y: y(loss(own)) };
      const end = at.x > 0.6 * right;
      free = Math.min(free - 30, at.y - (end ? 24 : 10));
      image.append(svg("circle", { cx: at.x, cy: at.y, r: 10, class: "fm-dot fm-in-reference" }));
      image.append(text(`${own.word} ${loss(own).toFixed(2)}`, { x: end ? right : at.x + 18, y: free, "text-anchor": end ? "end" : "start" }));
    }
    const true_one = dots.find(({ truth }) => truth);
    if (true_one) image.append(...truth_marks(true_one));
    image.setAttribute("aria-label", `The loss as a curve over the probability: ${dots.map((own) => `${own.word} ${loss(own).toFixed(2)} ${unit}`).join(", ")}`);
    const box = document.createElement("div");
    box.innerHTML = `<h2>What each word costs: ${unit === "bits" ? "−log₂" : "−ln"} p <small>in ${unit}</small></h2>`;
    box.append(image);
    return box;

    function truth_marks(own) {
      const at = { x: x(own.probability), y: y(loss(own)) };
      // Below the curve there is room, but for a word that is nearly certain.
      const line = at.y > bottom - 130 ? top + 60 : bottom - 80;
      const end = at.x > 0.5 * right;
      const place = { x: end ? right : at.x + 20, "text-anchor": end ? "end" : "start" };
      return [
        svg("path", { d: `M${at.x},${bottom}V${at.y}H${left}`, class: "fm-curve fm-in-truth" }),
        svg("circle", { cx: at.x, cy: at.y, r: 16, class: "fm-dot fm-in-truth" }),
        text(`✓ ${own.word}`, { ...place, y: line, class: "fm-card-name" }),
        text(`${unit === "bits" ? "−log₂" : "−ln"} ${own.probability.toPrecision(3)} = ${loss(own).toFixed(2)} ${unit}`, { ...place, y: line + 42 }),
      ];
    }
  };

  // ---- A figure of the lessons

  const curves = new WeakMap(); // place -> its drawing

  document.addEventListener("fillmask:figure", ({ detail }) => {
    const place = detail.figure.querySelector("[data-curve]");
    if (!place) return;
    if (!curves.has(place)) curves.set(place, drawing());
    const parts = curves.get(place);
    if (parts.figure.parentElement !== place) place.replaceChildren(parts.figure);
    const points = JSON.parse(detail.figure.querySelector("[data-points]").dataset.points);
    draw(parts, points, points[0], place.dataset.unit ?? "nats");
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
