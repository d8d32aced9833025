// The Unmask tab: plays decodings that the server has made, step by step, without asking again.
(() => {
  const page = (window.fillmask ??= {});
  const root = () => document.querySelector(".fm-unmask");
  const part = (name) => root().querySelector(`[data-player="${name}"]`);
  const decodings = () => [...root().querySelectorAll(".fm-unmasked")];
  const both = () => root().querySelector('[name="both"]');
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

  const steps = () => Math.max(0, ...decodings().map((decoding) => Number(decoding.dataset.steps)));

  function draw_decoding(decoding) {
    const shown_step = Math.min(step, Number(decoding.dataset.steps));
    const row = decoding.querySelector(`tr[data-step="${shown_step}"]`);
    const strip = root().querySelector(`.fm-unmask-strip[data-setting="${decoding.dataset.setting}"]`);
    for (const box of strip.querySelectorAll("[data-at]")) {
      const cell = row?.querySelector(`[data-at="${box.dataset.at}"]`);
      box.dataset.state = cell?.dataset.state ?? "hidden";
      box.style.cssText = cell?.style.cssText ?? "";
      box.textContent = ["new", "filled"].includes(box.dataset.state) ? cell.dataset.word : "?";
    }
    for (const row of decoding.querySelectorAll("tr[data-step]")) {
      row.classList.toggle("fm-now", Number(row.dataset.step) === shown_step);
      row.classList.toggle("fm-later", Number(row.dataset.step) > shown_step);
    }
    for (const line of decoding.querySelectorAll("[data-say]")) line.hidden = Number(line.dataset.say) !== shown_step;
    const dots = [...decoding.querySelectorAll("[data-at-step]")];
    dots.forEach((dot, at) => dot.classList.toggle("fm-now", at === shown_step));
    const points = decoding.querySelector(".fm-path-later").getAttribute("points").trim().split(" ");
    decoding.querySelector(".fm-path-gone").setAttribute("points", points.slice(0, shown_step + 1).join(" "));
  }

  function draw() {
    const most = steps();
    step = Math.min(Math.max(0, step), most);
    decodings().forEach(draw_decoding);
    part("step").textContent = String(step);
    part("steps").textContent = String(most);
    part("range").max = String(most);
    part("range").value = String(step);
  }

  function stop() {
    clearInterval(timer);
    timer = 0;
    part("play").textContent = "Play";
  }

  function go(to) {
    stop();
    step = to;
    draw();
  }

  function play() {
    if (timer) return stop();
    if (step >= steps()) step = 0;
    part("play").textContent = "Pause";
    draw();
    timer = setInterval(() => {
      step += 1;
      draw();
      if (step >= steps()) stop();
    }, Number(part("speed").value));
  }

  const actions = { play, back: () => go(step - 1), on: () => go(step + 1) };

  // Only the fields of what is begun with are there, and the second setting where it is wanted.
  function fields() {
    const chosen = root().querySelector('[name="source"]:checked')?.value ?? "text";
    for (const box of root().querySelectorAll("[data-source]")) box.hidden = box.dataset.source !== chosen;
    root().querySelector('[data-settings="B"]').hidden = !both().checked;
  }

  document.addEventListener("fillmask:figure", ({ detail }) => {
    if (!detail.figure.matches(".fm-unmask")) return;
    fields();
    go(steps()); // Play begins anew
  });

  // What is asked about one setting is answered below its steps; a file is saved instead.
  async function ask(button, setting, name, more) {
    const answer = await page.figures.call(root(), name, { setting, ...more });
    const panel = button.closest(".fm-unmasked")?.querySelector(".fm-cell-place");
    if (!panel) return; // another decoding by now
    if (answer.error) panel.textContent = answer.error;
    else if (name === "history") page.save(answer.name, answer.type, answer.text);
    else panel.innerHTML = answer.html;
  }

  document.addEventListener("click", (event) => {
    const button = event.target.closest?.(".fm-unmask button");
    const { player, cell, history } = button?.dataset ?? {};
    if (player) actions[player]();
    else if (history) ask(button, history, "history");
    else if (cell) {
      const [setting, number] = cell.split(":");
      const position = Number(button.closest("td").dataset.at);
      ask(button, setting, "cell", { step: Number(number), position });
    }
  });

  document.addEventListener("input", ({ target }) => target.closest?.(".fm-unmask form") && fields());

  // What plays asks the server nothing.
  const moved = (event) => {
    if (!event.target.closest?.(".fm-player")) return;
    event.stopPropagation();
    if (event.target === part("range")) go(Number(event.target.value));
  };
  document.addEventListener("input", moved, true);

  page.unmask = {
    begin(server) {
      host.server = server;
      // A link that sets something of the second setting shows it.
      const link = new URLSearchParams(window.location.search).get("unmask") ?? "";
      both().checked = link.includes('"B_');
      page.figures.take(root());
      page.figures.refresh(host);
      fields();
    },
    use(model, plain) {
      host.model = model ?? "";
      page.change_address({ unmask_model: model === plain ? null : model });
      if (host.server) page.figures.refresh(host);
    },
  };
})();
