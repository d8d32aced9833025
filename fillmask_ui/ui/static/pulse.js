// Many changes, one event: `submit` fires once no input has changed for a while. One event with
// one handler means that answers come in the order of the questions.
const page = (window.fillmask ??= {});
let timer = null;
let typed_at = 0;
document.addEventListener(
  "input",
  (event) => {
    if (event.target.matches?.("textarea, input")) typed_at = Date.now();
  },
  true,
);
page.settle = () => {
  clearTimeout(timer);
  // Typing and dragging wait for a pause, a click does not.
  const pause = Date.now() - typed_at < 120 ? 300 : 0;
  timer = setTimeout(() => trigger("submit"), pause);
};
if (page.loaded) page.settle();
