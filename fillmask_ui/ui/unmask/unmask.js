// The Unmask tab: plays decodings that the server has made, step by step, without asking again.
(() => {
  const page = (window.fillmask ??= {});
  const root = () => document.querySelector(".fm-unmask");
  const part = (name) => root().querySelector(`[data-player="${name}"]`);
  const sides = () => [...root().querySelectorAll(".fm-unmasked")];
  const host = page.figures.host({
    root: "unmask",
    parameter: "unmask",
    model: "",
    server: null,
    open: () => true,
    linked: () => true,
  });
  let step = 0;
  let timer = 0;

  const steps = () => Math.max(0, ...sides().map((side) => Number(side.dataset.steps)));

  function cell_of(column, frame) {
    const box = document.createElement("span");
    const cell = frame?.[column.position];
    box.className = column.hidden ? `fm-play fm-play-${cell?.state ?? "hidden"}` : "fm-play-given";
    const written = cell && ["new", "filled"].includes(cell.state);
    box.textContent = !column.hidden ? column.word : written ? cell.word : "?";
    if (cell) box.style.setProperty("--sure", cell.sure);
    if (column.hidden && !written) box.setAttribute("aria-label", "hidden");
    return box;
  }

  function draw() {
    const most = steps();
    step = Math.min(step, most);
    for (const side of sides()) {
      const { columns, frames } = JSON.parse(side.dataset.playable);
      const own = Math.min(step, frames.length);
      const cells = columns.flatMap((column) => [
        column.joined ? "" : " ",
        cell_of(column, frames[own - 1]),
      ]);
      side.querySelector(".fm-play-strip").replaceChildren(...cells);
      for (const row of side.querySelectorAll("tr[data-step]")) {
        row.classList.toggle("fm-now", Number(row.dataset.step) === own);
        row.classList.toggle("fm-later", Number(row.dataset.step) > own);
      }
      for (const dot of side.querySelectorAll("[data-at-step]")) {
        dot.classList.toggle("fm-now", Number(dot.dataset.atStep) === own);
      }
    }
    part("step").textContent = String(step);
    part("steps").textContent = String(most);
    part("range").max = String(most);
    part("range").value = String(step);
    root().dataset.at = String(step);
  }

  function stop() {
    clearInterval(timer);
    timer = 0;
    root().querySelector('[data-play="play"]').textContent = "Play";
  }

  function play() {
    if (timer) return stop();
    if (step >= steps()) step = 0;
    root().querySelector('[data-play="play"]').textContent = "Pause";
    draw();
    timer = setInterval(() => {
      step += 1;
      draw();
      if (step >= steps()) stop();
    }, Number(part("speed").value));
  }

  const acts = {
    play,
    first: () => go(0),
    back: () => go(step - 1),
    step: () => go(step + 1),
    last: () => go(steps()),
  };

  function go(to) {
    stop();
    step = Math.min(Math.max(0, to), steps());
    draw();
  }

  // Only the fields of what is begun with are there.
  function fields() {
    const chosen = root().querySelector('[name="source"]:checked')?.value ?? "text";
    for (const box of root().querySelectorAll("[data-source]")) box.hidden = box.dataset.source !== chosen;
    const both = root().querySelector('[name="both"]').checked;
    root().querySelector('[data-settings="B"]').hidden = !both;
  }

  document.addEventListener("fillmask:figure", ({ detail }) => {
    if (!detail.figure.matches(".fm-unmask")) return;
    stop();
    step = steps(); // Play begins anew
    fields();
    draw();
  });

  async function look(button) {
    const [side, number] = button.dataset.cell.split(":");
    const asked = { side, step: Number(number), position: Number(button.dataset.at) };
    const answer = await page.figures.call(root(), "cell", asked);
    const place = button.closest(".fm-unmasked")?.querySelector(".fm-cell-place");
    if (!place) return; // another decoding by now
    if (answer.error) place.textContent = answer.error;
    else place.innerHTML = answer.html;
  }

  async function save(button) {
    const file = await page.figures.call(root(), "history", { side: button.dataset.history });
    const place = button.closest(".fm-unmasked").querySelector(".fm-cell-place");
    if (file.error) place.textContent = file.error;
    else page.save(file.name, file.type, file.text);
  }

  document.addEventListener("click", (event) => {
    const button = event.target.closest?.(".fm-unmask button");
    if (!button) return;
    const { play: act, cell, history } = button.dataset;
    if (act) acts[act]();
    else if (cell) look(button);
    else if (history) save(button);
    if (act || cell || history) event.preventDefault();
  });

  document.addEventListener("input", (event) => {
    if (event.target.matches?.('[data-player="range"]')) {
      event.stopPropagation();
      go(Number(event.target.value));
    } else if (event.target.closest?.(".fm-unmask form")) fields();
  });

  page.unmask = {
    begin(server) {
      host.server = server;
      // On a phone the words come before the many options.
      if (window.innerWidth < 800) root().querySelector("details").open = false;
      page.figures.mounted(root());
      fields();
    },
    use(model, plain) {
      host.model = model ?? "";
      page.change_address({ unmask_model: model === plain ? null : model });
      if (host.server) page.figures.refresh(host);
    },
  };
})();
