// The exercises: one seed for all chapters, in the address; what was answered stays in this browser.
(() => {
  const page = (window.fillmask ??= {});
  const COURSE = 1; // the seed of the course notes' own numbers
  const UNREACHABLE = { error: "The page cannot reach its server. Open the chapter again." };
  const root = () => document.getElementById("learn");
  const sections = () => [...(root()?.querySelectorAll(".fm-exercises") ?? [])];
  const address_seed = () => Number(new URLSearchParams(window.location.search).get("exercise"));
  const most = () => Number(root().querySelector('[name="exercise"]').max);
  const ask = (name, values) => page.learn.call(name, { seed, ...values }).catch(() => UNREACHABLE);
  let seed = null; // until the page is there to say which are possible
  let results_by_exercise = {}; // "chapter/number" -> whether the last response was right

  const exercises = (page.exercises = {});
  const entry = () => `fillmask-exercises-${seed}`;

  function set_seed(next) {
    seed = Number.isInteger(next) && next >= 1 && next <= most() ? next : COURSE;
    try {
      results_by_exercise = JSON.parse(page.recall(entry())) ?? {};
    } catch {
      results_by_exercise = {};
    }
  }

  function choose_seed(next) {
    set_seed(next);
    page.change_address({ exercise: seed === COURSE ? null : String(seed) });
    exercises.show();
  }

  // ---- What is shown

  // Loads what the chapter that is open lacks, and brings all dials, marks and the score up to date.
  exercises.show = () => {
    if (!sections().length || !page.learn.chapter) return;
    if (seed === null) set_seed(address_seed());
    for (const section of sections()) {
      section.querySelector('[name="exercise"]').value = seed;
      section.querySelector(".fm-exercises-course").hidden = seed !== COURSE;
      const open = section.dataset.chapter === page.learn.chapter;
      if (open && section.dataset.seed !== String(seed)) load(section);
    }
    score();
  };

  async function load(section) {
    const forms = section.querySelector(".fm-exercises-forms");
    const requested = seed;
    section.dataset.seed = String(seed);
    forms.setAttribute("aria-busy", "true");
    const { error, html } = await ask("exercises", { chapter: section.dataset.chapter });
    if (requested !== seed) return; // turned further meanwhile
    if (error) {
      delete section.dataset.seed;
      forms.textContent = error;
    } else forms.innerHTML = html;
    forms.setAttribute("aria-busy", "false");
    for (const form of forms.querySelectorAll("form")) {
      const right = results_by_exercise[exercise_key(form)];
      const sign = right === undefined ? "" : right ? "✓ right" : "✗ not yet right";
      form.querySelector(".fm-exercise-mark").textContent = sign;
      form.toggleAttribute("data-solved", right === true);
    }
  }

  const exercise_key = (form) => `${form.closest(".fm-exercises").dataset.chapter}/${form.dataset.exercise}`;

  function score() {
    const panel = root().querySelector(".fm-score");
    if (!panel) return; // not there yet
    const results = Object.values(results_by_exercise);
    const right = results.filter(Boolean).length;
    const more = results.length ? `, ${panel.dataset.count - results.length} to go` : "";
    const text = results.length ? `${right} of ${results.length} right` : `${panel.dataset.count} exercises`;
    panel.querySelector(".fm-score-text").textContent = text;
    panel.querySelector(".fm-score-seed").textContent = `numbers ${seed}${more}`;
    panel.querySelector('[data-exercises="reset"]').hidden = results.length === 0;
  }

  // ---- Responses

  const response_of = (form) =>
    form.dataset.kind === "ordering"
      ? [...form.querySelectorAll("[data-item]")].map((item) => item.dataset.item).join(",")
      : (new FormData(form).get("response") ?? "");

  async function check(form) {
    const { chapter } = form.closest(".fm-exercises").dataset;
    const box = form.querySelector(".fm-feedback");
    const number = Number(form.dataset.exercise);
    const { right, error, html } = await ask("check", { chapter, number, response: response_of(form) });
    if (!form.isConnected) return; // other numbers meanwhile
    box.dataset.right = String(right ?? "unread");
    if (error) box.textContent = error;
    else box.innerHTML = html;
    if (typeof right !== "boolean") return;
    results_by_exercise[exercise_key(form)] = right;
    page.keep(entry(), JSON.stringify(results_by_exercise));
    form.querySelector(".fm-exercise-mark").textContent = ""; // the feedback says it
    score();
  }

  function move(button) {
    const item = button.closest("[data-item]");
    if (Number(button.dataset.move) < 0) item.previousElementSibling?.before(item);
    else item.nextElementSibling?.after(item);
    button.focus(); // which a moved element loses
    const items = [...item.parentElement.children];
    const text = `${item.querySelector("b").textContent}: ${items.indexOf(item) + 1} of ${items.length}`;
    item.closest("form").querySelector(".fm-exercise-moved").textContent = text;
  }

  async function sheet(solutions) {
    const { name, html } = await ask("sheet", { solutions });
    page.save(name, "text/html", html);
  }

  // ---- Clicks and keys

  const acts = {
    new: () => choose_seed(2 + Math.floor(Math.random() * (most() - 1))),
    sheet: () => sheet(false),
    solutions: () => sheet(true),
    reset: () => {
      page.keep(entry(), null);
      results_by_exercise = {};
      for (const section of sections()) delete section.dataset.seed;
      exercises.show();
    },
  };

  document.addEventListener("click", (event) => {
    const button = event.target.closest?.("#learn button");
    const section = button?.closest(".fm-exercises");
    if (button?.dataset.exercises) acts[button.dataset.exercises]();
    else if (section && button.dataset.move) move(button);
    else if (section && button.dataset.turn) choose_seed(seed + Number(button.dataset.turn));
  });

  document.addEventListener("submit", (event) => {
    if (!event.target.matches?.(".fm-exercise")) return;
    event.preventDefault();
    check(event.target);
  });

  document.addEventListener("change", (event) => {
    if (event.target.matches?.('.fm-exercises [name="exercise"]')) choose_seed(Number(event.target.value));
  });

  // Back goes to a chapter with the numbers that it had.
  window.addEventListener("popstate", () => {
    if (seed === null || !page.learn.visible()) return;
    set_seed(address_seed());
    exercises.show();
  });
})();
