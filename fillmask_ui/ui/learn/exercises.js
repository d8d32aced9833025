// The exercises: one seed for all chapters, in the address; what was answered stays in this browser.
(() => {
  const page = (window.fillmask ??= {});
  const COURSE = 1; // the seed of the course notes' own numbers
  const root = () => document.getElementById("learn");
  const asked = () => Number(new URLSearchParams(window.location.search).get("exercise"));
  let seed = null; // until the page is there to say which are possible
  let answered = {}; // "chapter/number" -> whether the last response was right

  const exercises = (page.exercises = {});
  const entry = () => `fillmask-exercises-${seed}`;

  const parsed = (text) => {
    try {
      return JSON.parse(text) ?? {};
    } catch {
      return {};
    }
  };

  const most = () => Number(root().querySelector('[name="exercise"]').max);

  function take(next) {
    seed = Number.isInteger(next) && next >= 1 && next <= most() ? next : COURSE;
    answered = parsed(page.recall(entry()));
  }

  function turn(next) {
    take(next);
    page.change_address({ exercise: seed === COURSE ? null : String(seed) });
    exercises.show();
  }

  // ---- What is shown

  // Loads what the chapter that is open lacks, and brings all dials, marks and the score up to date.
  exercises.show = () => {
    const sections = root()?.querySelectorAll(".fm-exercises") ?? [];
    if (!sections.length) return;
    if (seed === null) take(asked());
    for (const section of sections) {
      section.querySelector('[name="exercise"]').value = seed;
      section.querySelector(".fm-exercises-course").hidden = seed !== COURSE;
      const open = section.dataset.chapter === page.learn.chapter;
      if (open && section.dataset.seed !== String(seed)) load(section);
    }
    score();
  };

  async function load(section) {
    const forms = section.querySelector(".fm-exercises-forms");
    const { chapter } = section.dataset;
    const wanted = seed;
    section.dataset.seed = String(seed);
    forms.setAttribute("aria-busy", "true");
    let answer;
    try {
      answer = await page.learn.call("exercises", { chapter, seed });
    } catch {
      answer = { error: "The page cannot reach its server. Open the chapter again." };
    }
    if (wanted !== seed) return; // turned further meanwhile
    if (answer.error) {
      delete section.dataset.seed;
      forms.textContent = answer.error;
    } else forms.innerHTML = answer.html;
    forms.setAttribute("aria-busy", "false");
    for (const form of forms.querySelectorAll("form")) mark(form);
  }

  const place = (form) => `${form.closest(".fm-exercises").dataset.chapter}/${form.dataset.exercise}`;

  function mark(form) {
    const right = answered[place(form)];
    const sign = right === undefined ? "" : right ? "✓ right" : "✗ not yet right";
    form.querySelector(".fm-exercise-mark").textContent = sign;
    form.toggleAttribute("data-solved", right === true);
  }

  function score() {
    const panel = root().querySelector(".fm-score");
    if (!panel) return; // not there yet
    const given = Object.values(answered);
    const right = given.filter(Boolean).length;
    const text = given.length ? `${right} of ${given.length} right` : `${panel.dataset.count} exercises`;
    panel.querySelector(".fm-score-text").textContent = text;
    const left = panel.dataset.count - given.length;
    const more = given.length ? `, ${left} to go` : "";
    panel.querySelector(".fm-score-seed").textContent = `numbers ${seed}${more}`;
    panel.querySelector('[data-exercises="reset"]').hidden = given.length === 0;
  }

  // ---- Responses

  const response_of = (form) =>
    form.dataset.kind === "ordering"
      ? [...form.querySelectorAll("[data-item]")].map((item) => item.dataset.item).join(",")
      : (new FormData(form).get("response") ?? "");

  async function check(form) {
    const { chapter } = form.closest(".fm-exercises").dataset;
    const box = form.querySelector(".fm-feedback");
    const values = { chapter, seed, number: Number(form.dataset.exercise), response: response_of(form) };
    let answer;
    try {
      answer = await page.learn.call("check", values);
    } catch {
      answer = { error: "The page cannot reach its server. Check again." };
    }
    if (!form.isConnected) return; // other numbers meanwhile
    box.dataset.right = String(answer.right ?? "unread");
    if (answer.error) box.textContent = answer.error;
    else box.innerHTML = answer.html;
    if (typeof answer.right !== "boolean") return;
    answered[place(form)] = answer.right;
    page.keep(entry(), JSON.stringify(answered));
    form.querySelector(".fm-exercise-mark").textContent = ""; // the feedback says it
    score();
  }

  function move(button) {
    const item = button.closest("[data-item]");
    const by = Number(button.dataset.move);
    if (by < 0) item.previousElementSibling?.before(item);
    else item.nextElementSibling?.after(item);
    button.focus(); // which a moved element loses
    const items = [...item.parentElement.children];
    const text = item.querySelector("b").textContent;
    const said = `${text}: ${items.indexOf(item) + 1} of ${items.length}`;
    item.closest("form").querySelector(".fm-exercise-moved").textContent = said;
  }

  async function sheet(solutions) {
    const { name, html } = await page.learn.call("sheet", { seed, solutions });
    page.save(name, "text/html", html);
  }

  // ---- Clicks and keys

  const acts = {
    new: () => turn(2 + Math.floor(Math.random() * (most() - 1))),
    sheet: () => sheet(false),
    solutions: () => sheet(true),
    reset: () => {
      page.keep(entry(), null);
      answered = {};
      for (const section of root().querySelectorAll(".fm-exercises")) delete section.dataset.seed;
      exercises.show();
    },
  };

  document.addEventListener("click", (event) => {
    const button = event.target.closest?.("#learn button");
    if (!button) return;
    if (button.dataset.exercises) acts[button.dataset.exercises]();
    else if (button.closest(".fm-exercise") && button.dataset.move) move(button);
    else if (button.closest(".fm-exercises") && button.dataset.turn) turn(seed + Number(button.dataset.turn));
  });

  document.addEventListener("submit", (event) => {
    const form = event.target.closest?.(".fm-exercise");
    if (!form) return;
    event.preventDefault();
    check(form);
  });

  document.addEventListener("change", (event) => {
    if (event.target.matches?.('.fm-exercises [name="exercise"]')) turn(Number(event.target.value));
  });

  document.addEventListener("fillmask:chapter", exercises.show);

  // Back goes to a chapter with the numbers that it had.
  window.addEventListener("popstate", () => {
    if (seed === null || !page.learn.visible()) return;
    take(asked());
    exercises.show();
  });
})();
