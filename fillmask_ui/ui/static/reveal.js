// A message that comes up is brought into view; progress that goes on is not, again and again.
function message() {
  const notice = element.querySelector(".fm-notice");
  if (!notice) return "";
  return notice.matches(".fm-busy") ? "busy" : notice.textContent;
}

let shown = message();
new MutationObserver(() => {
  const now = message();
  if (now && now !== shown) window.fillmask.reveal(element);
  shown = now;
}).observe(element, { childList: true, subtree: true, characterData: true });
