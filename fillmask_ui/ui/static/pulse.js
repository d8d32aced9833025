// Many changes, one event: `submit` fires once no input has changed for a while, with the number
// of the latest change as its value. The answer brings the number back, so that a question that
// got lost on the way is asked again.
const page = (window.fillmask ??= {});
let asked = 0;
let answered = 0;
let asked_at = 0;
let repeats = 0;
let timer = null;
let typed_at = 0;

document.addEventListener(
  "input",
  (event) => {
    if (event.target.matches?.("textarea, input")) typed_at = Date.now();
  },
  true,
);

function ask() {
  timer = null;
  asked_at = Date.now();
  props.value = String(asked);
  trigger("submit");
}

page.settle = () => {
  asked += 1;
  repeats = 0;
  clearTimeout(timer);
  // Typing and dragging wait for a pause, a click does not.
  timer = setTimeout(ask, Date.now() - typed_at < 120 ? 300 : 0);
};

page.answered = (number) => {
  answered = Math.max(answered, Number(number));
};

setInterval(() => {
  const overdue = timer === null && answered < asked && Date.now() - asked_at > 4_000;
  const working = document.querySelector("#notice .fm-busy");
  if (!overdue || working || repeats > 2) return;
  repeats += 1;
  ask();
}, 500);

// An address without parameters holds no other state to wait for.
if (page.loaded || !window.location.search) page.settle();
