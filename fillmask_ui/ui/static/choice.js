// Fields that offer a list and also take what is typed. A value that is taken is told as
// `fillmask:choice`; `page.set_choice(box, value)` sets one,
// `page.set_choices(box, html)` the list.
(() => {
  const page = (window.fillmask ??= {});
  const BOX = "input[data-choice]";
  const list_of = (box) => document.getElementById(box.getAttribute("aria-controls"));
  const options_of = (box) => [...list_of(box).children];
  const visible_options = (box) => options_of(box).filter(({ hidden }) => !hidden);
  const label_of = (box, value) =>
    options_of(box).find(({ dataset }) => dataset.value === value)?.textContent ?? value;

  page.set_choice = (box, value) => {
    box.dataset.value = value;
    if (list_of(box).hidden) box.value = label_of(box, value);
  };

  page.set_choices = (box, html) => {
    list_of(box).innerHTML = html;
    if (!list_of(box).hidden) open(box);
    else page.set_choice(box, box.dataset.value);
  };

  function mark(box, option) {
    for (const other of options_of(box)) other.classList.toggle("fm-marked", other === option);
    box.setAttribute("aria-activedescendant", option?.id ?? "");
    option?.scrollIntoView({ block: "nearest" });
  }

  function open(box, typed = "") {
    const text = typed.trim().toLowerCase();
    options_of(box).forEach((option, index) => {
      option.id = `${list_of(box).id}-${index}`;
      option.hidden = !option.textContent.toLowerCase().includes(text);
      option.ariaSelected = String(option.dataset.value === box.dataset.value);
    });
    list_of(box).hidden = !visible_options(box).length;
    box.ariaExpanded = String(!list_of(box).hidden);
    mark(box, null);
  }

  function close(box) {
    list_of(box).hidden = true;
    box.ariaExpanded = "false";
    box.removeAttribute("aria-activedescendant");
    page.set_choice(box, box.dataset.value);
  }

  // What is typed is a reference, or the whole label of one.
  function take(box, typed) {
    const option = options_of(box).find(({ textContent }) => textContent === typed);
    const value = option?.dataset.value ?? typed.trim();
    const changed = value !== box.dataset.value;
    box.dataset.value = value;
    close(box);
    if (changed) box.dispatchEvent(new CustomEvent("fillmask:choice", { bubbles: true, detail: value }));
  }

  page.on("click", BOX, (box) => {
    if (!list_of(box).hidden) return;
    box.select();
    open(box);
  });

  page.on("input", BOX, (box) => open(box, box.value));

  page.on("focusout", BOX, (box) => take(box, box.value));

  page.on("keydown", BOX, (box, event) => {
    const marked = list_of(box).querySelector(".fm-marked");
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (by) {
      event.preventDefault();
      if (list_of(box).hidden) open(box);
      const options = visible_options(box);
      mark(box, options.at((options.indexOf(marked) + by + (marked || by > 0 ? 0 : 1)) % options.length));
    } else if (event.key === "Enter") {
      take(box, marked?.textContent ?? box.value);
    } else if (event.key === "Escape" && !list_of(box).hidden) {
      event.stopPropagation();
      close(box);
    }
  });

  // Before the box loses the focus.
  page.on("mousedown", ".fm-choice [role=option]", (option, event) => {
    event.preventDefault();
    take(document.querySelector(`[aria-controls="${option.parentElement.id}"]`), option.textContent);
  });
})();
