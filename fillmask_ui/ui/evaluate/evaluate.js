// The Evaluate tab: answers come into view, more of the page shows from a button, a result has a link.
(() => {
  const page = (window.fillmask ??= {});

  // The start card of a page that is loaded again waits until its job is known (see `visitor.js`).
  const returning = Boolean(page.recall("fillmask-page", "sessionStorage"));
  document.documentElement.classList.toggle("fm-returning", returning);

  // Scrolls only where a reader would miss the beginning of it.
  page.reveal = (element, block = "start") => {
    const box = element?.getBoundingClientRect();
    if (!box?.width) return;
    const enough = block === "start" ? Math.min(box.height, 0.4 * window.innerHeight) : box.height;
    if (box.top >= 0 && box.top + enough <= window.innerHeight) return;
    const calm = window.matchMedia("(prefers-reduced-motion: reduce)").matches;
    element.scrollIntoView({ block, behavior: calm ? "auto" : "smooth" });
  };

  page.unfold = (id) => {
    const fold = document.getElementById(id);
    const button = fold?.querySelector("button.label-wrap");
    if (button && !button.classList.contains("open")) button.click();
    // What was folded is put into the page first.
    setTimeout(() => page.reveal(fold), 100);
  };

  document.addEventListener("click", (event) => {
    const button = event.target.closest?.("[data-toggle], [data-press], [data-follow]");
    const { toggle, press, follow } = button?.dataset ?? {};
    const tab = document.getElementById("evaluate");
    if (press) document.getElementById(press)?.click();
    // With a key held the browser opens another window.
    if (follow && !event.ctrlKey && !event.metaKey && !event.shiftKey) {
      event.preventDefault();
      page.follow(follow);
    }
    if (toggle) {
      const shown = tab.classList.toggle(toggle);
      if (button.ariaExpanded !== null) button.ariaExpanded = shown;
      if (toggle === "fm-changing") page.reveal(tab);
    }
    // The form that was opened to be changed folds once more is asked of it.
    if (event.target.closest?.("#evaluate-run, #run-list")) {
      tab?.classList.remove("fm-changing");
    }
  });

  // Runs to compare, in the order in which they were chosen: the first is the reference.
  let compared = [];
  document.addEventListener("change", ({ target }) => {
    if (!target.matches?.("[data-compare]")) return;
    const here = new Set([...document.querySelectorAll("[data-compare]:checked")].map((box) => box.dataset.compare));
    compared = [...new Set([...compared, target.dataset.compare])].filter((run) => here.has(run));
    const button = document.getElementById("runs-compare");
    button.dataset.key = `compare:${compared.join(",")}`;
    button.disabled = compared.length < 2 || compared.length > Number(button.dataset.most);
    const box = compared.length && document.querySelector(`[data-compare="${CSS.escape(compared[0])}"]`);
    const name = box ? box.ariaLabel.replace("Compare ", "") : "";
    document.getElementById("runs-chosen").textContent = name && `${compared.length} chosen; the reference is ${name}`;
  });

  // What was asked for in the list comes into view: a result above it, or the chart of some runs.
  let asked = "";
  document.addEventListener("click", ({ target }) => {
    const key = target.closest?.("#run-list [data-key]")?.dataset.key;
    if (key) asked = key;
  });
  page.reveal_result = () => {
    const [action, runs] = asked.split(":");
    const many = action === "compare" && runs.split(",").length > 2;
    if (many) page.reveal(document.getElementById("box-beside"));
    else if (action === "show" || action === "compare") page.reveal(document.querySelector("#evaluate .fm-result"));
  };

  page.copy_link = async () => {
    const link = document.querySelector("#evaluate-figures [data-link]")?.dataset.link;
    const status = document.querySelector("#run-copied [role=status]");
    if (!link || !status) return;
    const { origin, pathname } = window.location;
    const address = `${origin}${pathname}?${link}`;
    // Where a page is not served securely there is no clipboard.
    const done = await navigator.clipboard?.writeText(address).then(() => true, () => false);
    status.textContent = done ? "Link copied" : address;
    if (done) setTimeout(() => (status.textContent = ""), 4_000);
  };
})();
