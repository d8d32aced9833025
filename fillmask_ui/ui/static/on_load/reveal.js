// A message that comes up is brought into view, and so is the result that follows it, unless the
// reader has gone elsewhere meanwhile.
function message() {
  const notice = element.querySelector(".fm-notice");
  if (!notice) return "";
  return notice.matches(".fm-busy") ? "busy" : notice.textContent;
}

let shown = message();
let moved = false;
for (const name of ["wheel", "touchmove", "keydown"]) {
  document.addEventListener(name, () => (moved = true), { passive: true });
}

new MutationObserver(() => {
  const now = message();
  const running = now === "busy" || shown === "busy";
  if (now && now !== shown) {
    moved = false;
    window.fillmask.reveal(element);
  } else if (running && !moved) {
    // Once the figures that came with it are in the page.
    setTimeout(() => window.fillmask.reveal(element.closest(".fm-result")), 200);
  }
  shown = now;
}).observe(element, { childList: true, subtree: true, characterData: true });
