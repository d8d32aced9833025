// The loss as a curve: -ln p over p, with a dot for the hidden word. The drawing stays while answers
// come and go; a dot is moved by its loss alone, so that it slides along the curve. The Explore tab
// has one; a figure of the lessons has one at `[data-curve]`, with the points of its `[data-points]`.
(() => {
  const page = (window.fillmask ??= {});
  const WIDTH = 240; // of the plot, in units of the drawing
  const HEIGHT = 130;
  const MOST_NATS = 60; // as far as the curve is drawn
  // Where the axis of losses ends, in the reader's unit; twice that where a loss lies beyond.
  const TOPS = { nats: { end: 7, step: 1 }, bits: { end: 10, step: 2 } };
  const nats = (unit) => (unit === "bits" ? Math.LN2 : 1);
  const log = (unit) => (unit === "bits" ? "−log₂" : "−ln");

  for (const name of ["--fm-loss", "--fm-top"]) {
    // Numbers that the browser moves between.
    CSS.registerProperty?.({ name, syntax: "<number>", inherits: true, initialValue: "1" });
  }

  function text(content, x, y, anchor = "middle", kind = "") {
    const escaped = Object.assign(document.createElement("i"), { textContent: content }).innerHTML;
    return `<text x="${x}" y="${y}" text-anchor="${anchor}" class="${kind}">${escaped}</text>`;
  }
  const line = (x1, x2, y1, y2, kind = "") =>
    `<line x1="${x1}" x2="${x2}" y1="${y1}" y2="${y2}" class="${kind}"/>`;

  function curve() {
    const points = [];
    for (let loss = 0; loss <= MOST_NATS; loss += loss < 8 ? 0.05 : 1) {
      points.push(`${(Math.exp(-loss) * WIDTH).toFixed(4)},${(-loss).toFixed(2)}`);
    }
    return `M${points.join("L")}`;
  }

  const drawings = new WeakMap(); // place -> its drawing
  let made = 0;

  function drawing() {
    const id = `fm-loss-clip-${(made += 1)}`;
    const shares = [0, 0.25, 0.5, 0.75, 1].map((share) => {
      const x = share * WIDTH;
      return line(x, x, HEIGHT, HEIGHT + 4) + text(`${100 * share}%`, x, HEIGHT + 16);
    });
    const figure = Object.assign(document.createElement("figure"), { className: "fm-loss" });
    figure.innerHTML = `<svg viewBox="-46 -24 ${WIDTH + 62} ${HEIGHT + 60}" role="img"
      class="fm-loss-curve fm-drawing" style="--fm-width: ${WIDTH}; --fm-height: ${HEIGHT}">
      <clipPath id="${id}"><rect y="-4" width="${WIDTH + 4}" height="${HEIGHT + 4}"/></clipPath>
      <rect class="fm-loss-frame fm-frame" width="${WIDTH}" height="${HEIGHT}"/>
      <g class="fm-loss-ticks"></g><g class="fm-loss-ticks">${shares.join("")}</g>
      ${text("probability of the word", WIDTH / 2, HEIGHT + 31)}
      <text x="-44" y="-12" data-unit></text>
      <g clip-path="url(#${id})"><path d="${curve()}"/></g><g data-dots></g></svg><figcaption></figcaption>`;
    return figure;
  }

  function dot(dots, point, chosen, top) {
    if (!dots.querySelector(`[data-mask="${point.mask}"]`)) {
      const group = `<g data-mask="${point.mask}" class="fm-loss-dot"><circle r="6"/><text/></g>`;
      dots.insertAdjacentHTML("beforeend", group);
    }
    const own = dots.querySelector(`[data-mask="${point.mask}"]`);
    own.classList.toggle("fm-loss-chosen", chosen);
    const loss = Math.min(point.nll_nats ?? Infinity, top);
    own.style.setProperty("--fm-loss", loss);
    const label = own.querySelector("text");
    label.textContent = chosen ? point.texts[1] : "";
    const left = Math.exp(-loss) < 0.55;
    label.setAttribute("x", left ? 11 : -2);
    label.setAttribute("y", left ? -4 : -12); // clear of the curve
    label.setAttribute("text-anchor", left ? "start" : "end");
    if (chosen && own !== dots.lastChild) dots.append(own); // above the faint ones
  }

  // Points, one per mask, in the drawing of a place; `chosen` is one of them.
  function draw(place, points, chosen, unit) {
    if (!drawings.has(place)) drawings.set(place, drawing());
    const figure = drawings.get(place);
    if (figure.parentElement !== place) place.replaceChildren(figure);
    const image = figure.querySelector("svg");
    const largest = Math.max(0, ...points.map((point) => point.nll_nats ?? 0));
    let { end, step } = TOPS[unit] ?? TOPS.nats;
    while (end * nats(unit) < largest) [end, step] = [2 * end, 2 * step];
    const ticks = [];
    for (let value = 0; value <= end; value += step) {
      const y = HEIGHT * (1 - value / end);
      ticks.push(line(-4, 0, y, y), text(value, -8, y + 4, "end"));
    }
    image.querySelector(".fm-loss-ticks").innerHTML = ticks.join("");
    image.querySelector("[data-unit]").textContent = `loss (${unit})`;
    image.style.setProperty("--fm-top", end * nats(unit));
    const dots = image.querySelector("[data-dots]");
    for (const old of [...dots.children]) {
      if (!points.some(({ mask }) => String(mask) === old.dataset.mask)) old.remove();
    }
    for (const point of points) dot(dots, point, point === chosen, end * nats(unit));
    const { word, hidden, texts } = chosen;
    const whose = hidden ? `The hidden word “${word}”: ` : `The top word, “${word}” (the hidden word is unknown): `;
    const others = points.length > 1 ? " The faint dots are the other masks." : "";
    const said = `${word || !hidden ? whose : ""}${log(unit)} ${texts[0]} = ${texts[1]}.${others}`;
    figure.querySelector("figcaption").textContent = said;
    image.setAttribute("aria-label", `The loss as a curve over the probability. ${said}`);
  }

  // ---- The card of a presentation: words on the curve, its axes as long as they need

  const X_ENDS = [0.04, 0.08, 0.2, 0.4, 0.8, 1]; // a quarter of each is a round number
  const CARD = { width: 620, height: 650, left: 64, top: 24, right: 584, bottom: 570 };

  // `points` set the axes; those in `shown` have a dot: { word, probability, nll_nats, role, truth, right }.
  page.loss_card = (points, shown, unit, title = `What each word costs: ${log(unit)} p`) => {
    const { left, right, top, bottom } = CARD;
    const finite = points.filter(({ nll_nats }) => Number.isFinite(nll_nats));
    const loss = ({ nll_nats }) => nll_nats / nats(unit);
    const x_end = X_ENDS.find((end) => finite.every((own) => own.probability <= 0.96 * end)) ?? 1;
    const most = Math.max(3, ...finite.map(loss));
    const step = [1, 2, 5, 10, 20].find((own) => most / own < 6) ?? 50;
    const y_end = step * Math.ceil((1.12 * most + 0.2) / step); // with room for a label at the top
    const x = (p) => left + ((right - left) * p) / x_end;
    const y = (nll) => bottom - ((bottom - top) * nll) / y_end;
    const parts = [];
    for (let value = 0; value <= y_end; value += step) {
      parts.push(line(left, right, y(value), y(value), value ? "fm-grid" : "fm-axis"));
      parts.push(text(value, left - 14, y(value) + 9, "end"));
    }
    for (let part = 0; part <= 4; part++) {
      const p = (x_end * part) / 4;
      parts.push(text(`${Number((100 * p).toPrecision(3))}%`, x(p), bottom + 36));
    }
    parts.push(text("probability p of the word", (left + right) / 2, bottom + 74));
    const first = Math.exp(-y_end * nats(unit));
    const curve = [...Array(201).keys()].map((place) => {
      const p = first * (x_end / first) ** (place / 200);
      return `${x(p).toFixed(1)},${y(-Math.log(p) / nats(unit)).toFixed(1)}`;
    });
    parts.push(`<polyline points="${curve.join(" ")}" class="fm-curve"/>`);
    const dots = shown.filter((own) => finite.includes(own)).sort((a, b) => loss(a) - loss(b));
    let free = Infinity; // labels go up along the curve and do not meet
    for (const own of dots) {
      const at = { x: x(own.probability), y: y(loss(own)) };
      if (own.truth) continue;
      const end = at.x > 0.6 * right;
      free = Math.min(free - 30, at.y - (end ? 24 : 10));
      parts.push(`<circle cx="${at.x}" cy="${at.y}" r="10" class="fm-dot fm-in-${own.role ?? "reference"}"/>`);
      parts.push(text(`${own.word} ${loss(own).toFixed(2)}`, end ? right : at.x + 18, free, end ? "end" : "start"));
    }
    for (const own of dots.filter(({ truth }) => truth)) {
      const at = { x: x(own.probability), y: y(loss(own)) };
      // Below the curve there is room, but for a word that is nearly certain.
      const below = at.y > bottom - 130 ? top + 60 : bottom - 80;
      const place = at.x > 0.5 * right ? [right, "end"] : [at.x + 20, "start"];
      const sum = `${log(unit)} ${own.probability.toPrecision(3)} = ${loss(own).toFixed(2)} ${unit}`;
      parts.push(`<path d="M${at.x},${bottom}V${at.y}H${left}" class="fm-curve fm-in-truth"/>`);
      parts.push(`<circle cx="${at.x}" cy="${at.y}" r="16" class="fm-dot fm-in-truth"/>`);
      parts.push(text(`${own.right ? "✓ " : ""}${own.word}`, place[0], below, place[1], "fm-card-name"));
      parts.push(text(sum, place[0], below + 42, place[1]));
    }
    const box = document.createElement("div");
    box.innerHTML = `<h2>${title} <small>in ${unit}</small></h2>
      <svg viewBox="0 0 ${CARD.width} ${CARD.height}" role="img" class="fm-drawing">${parts.join("")}</svg>`;
    const said = dots.map((own) => `${own.word} ${loss(own).toFixed(2)} ${unit}`).join(", ");
    box.lastChild.setAttribute("aria-label", `The loss as a curve over the probability: ${said}`);
    return box;
  };

  // ---- A figure of the lessons

  document.addEventListener("fillmask:figure", ({ detail }) => {
    const losses = detail.figure.querySelector("[data-losses]");
    if (losses) {
      const points = JSON.parse(detail.figure.querySelector("[data-points]").dataset.points);
      const { unit } = losses.dataset;
      losses.replaceChildren(page.loss_card(points, points, unit, "Losses on the true word"));
    }
    const place = detail.figure.querySelector("[data-curve]");
    if (!place) return;
    const points = JSON.parse(detail.figure.querySelector("[data-points]").dataset.points);
    draw(place, points, points[0], place.dataset.unit ?? "nats");
  });

  // ---- The Explore tab

  let points = []; // one per mask, the chosen one last

  document.addEventListener("fillmask:answer", async ({ detail }) => {
    if (detail.kind === "error" && !detail.mask) return; // what was there before stays
    const place = document.getElementById("loss");
    const beside = (others) => {
      const kept = others.filter(({ mask }) => mask < detail.masks && mask !== detail.selected);
      points = [...kept, ...detail.losses];
      const chosen = points.find(({ mask }) => mask === detail.selected);
      place.hidden = !chosen;
      if (chosen) draw(place, points, chosen, page.explore.state.unit);
    };
    // What a run hid beside its token has no dots.
    const several = detail.mask && detail.masks > 1 && !page.explore.state.run;
    beside(several ? points : []);
    if (!several) return;
    // The other masks come later, so that nobody waits for them; until then they stay.
    const found = await page.explore.call("losses").catch(() => ({}));
    if (page.explore.answer === detail && found.version === detail.version) beside(found.points);
  });
})();
