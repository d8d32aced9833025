// Example sentences: three to try, all of them in sets; a click asks about one, and its question to
// the class stays while the page shows this sentence or what was made of it word by word.
(() => {
  const page = (window.fillmask ??= {});

  page.examples = (element) => {
    const tabs = [...element.querySelectorAll('[role="tab"]')];
    const chips = [...element.querySelectorAll("[data-state]")];
    const tried = [...element.querySelectorAll("[data-try]")];
    const question = element.querySelector(".fm-question");
    const examples = chips.map((chip) => ({
      chip,
      tab: document.getElementById(chip.parentElement.getAttribute("aria-labelledby")),
      state: JSON.parse(chip.dataset.state),
      question: chip.dataset.question,
    }));
    let chosen = null;

    function open(tab) {
      for (const other of tabs) {
        const here = other === tab;
        other.setAttribute("aria-selected", String(here));
        other.tabIndex = here ? 0 : -1;
        document.getElementById(other.getAttribute("aria-controls")).hidden = !here;
      }
    }

    // Three of its set, itself among them.
    function offer(example) {
      const set = examples.filter(({ tab }) => tab === example.tab);
      const start = Math.max(0, Math.min(set.indexOf(example) - 1, set.length - tried.length));
      tried.forEach((button, place) => {
        const other = set[start + place];
        button.hidden = !other;
        if (!other) return;
        button.textContent = other.chip.textContent;
        button.dataset.try = examples.indexOf(other);
        button.title = other.state.text;
      });
    }

    function choose(example) {
      if (example === chosen) return; // another set may be looked through meanwhile
      chosen = example;
      question.textContent = example?.question ?? "";
      if (example) {
        open(example.tab);
        offer(example);
      }
      for (const other of examples) other.chip.setAttribute("aria-pressed", String(other === example));
      for (const button of tried) {
        button.setAttribute("aria-pressed", String(examples[button.dataset.try] === example));
      }
    }

    // Words hidden or filled in leave their number as it is, and most of them the same.
    function made_of(text, example) {
      const [now, then] = [text.split(" "), example.split(" ")];
      const same = now.filter((word, index) => word === then[index]);
      return now.length === then.length && 2 * same.length >= now.length;
    }

    element.addEventListener("click", ({ target }) => {
      const tab = target.closest('[role="tab"]');
      if (tab) open(tab);
      const chip = target.closest(".fm-chip");
      if (!chip) return;
      const example = examples[chip.dataset.try ?? chips.indexOf(chip)];
      choose(example);
      page.explore.change(example.state, { push: true });
    });

    // The sentence can also come from a link, from Back, or be typed.
    document.addEventListener("fillmask:answer", () => {
      const { text, other } = page.explore.state;
      const same = examples.filter(({ state }) => state.text === text && (!other || state.other === other));
      if (same.length) choose(same.includes(chosen) ? chosen : same[0]);
      else if (chosen && !made_of(text, chosen.state.text)) choose(null);
    });
    offer(examples[0]);
    page.presenting.mount(element, examples);
  };
})();
