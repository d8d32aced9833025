// A token of a run: what each hidden token of its sentence was, and which experiment is shown.
(() => {
  const page = (window.fillmask ??= {});

  document.addEventListener("click", (event) => {
    const choice = event.target.closest?.("#replay [data-set]");
    if (choice) page.explore.change(JSON.parse(choice.dataset.set), { push: true });
  });

  // The line below the sentence is about the token under the pointer or the focus, else the chosen.
  function tell(event) {
    const strip = document.querySelector("#strip .fm-reading");
    if (!strip) return;
    const there = event.target.closest?.("#strip .fm-reading button");
    const button = there ?? strip.querySelector('[aria-pressed="true"]');
    const line = strip.parentElement.querySelector(".fm-read-line");
    const about = button.querySelector(".fm-read-about").textContent;
    line.textContent = `${button.dataset.shown}: ${about}`;
  }
  document.addEventListener("mouseover", tell);
  document.addEventListener("focusin", tell);
})();
