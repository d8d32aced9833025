// What has to fit: the whole word of a bar, and the chosen mask of a long text.
(() => {
  const page = window.fillmask;
  const WIDE = 720; // pixels

  // A word that its column would cut stands above its bar; in a presentation its letters are smaller.
  page.explore.fit_names = () => {
    const smaller = document.body.classList.contains("fm-presenting") && innerWidth > WIDE;
    const names = [...document.querySelectorAll("#stage :is(.fm-bars, .fm-lens-bars) .fm-bar-row .fm-row-name")];
    for (const name of names) {
      name.parentElement.classList.remove("fm-above");
      name.style.fontSize = "";
    }
    const shares = names.map((name) => name.clientWidth / name.scrollWidth);
    names.forEach((name, index) => {
      const cut = shares[index] < 1; // it is NaN for what is not in sight
      if (smaller) name.style.fontSize = cut ? `${0.97 * shares[index]}em` : "";
      else name.parentElement.classList.toggle("fm-above", cut);
    });
  };

  // Where the sentence scrolls, its chosen mask is in the middle.
  page.explore.show_mask = () => {
    const strip = document.getElementById("strip");
    const mask = strip.querySelector(".fm-chosen") ?? strip.querySelector(".fm-mask");
    if (!mask || strip.scrollHeight <= strip.clientHeight) return;
    const [box, row] = [strip.getBoundingClientRect(), mask.getBoundingClientRect()];
    strip.scrollTop += row.top - box.top - (strip.clientHeight - row.height) / 2;
  };

  function fit() {
    page.explore.fit_names();
    page.explore.show_mask();
  }
  for (const type of ["answer", "found", "mode"]) document.addEventListener(`fillmask:${type}`, fit);
  window.addEventListener("resize", page.explore.fit_names);
})();
