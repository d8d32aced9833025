// The page without a server: Explore's scripts ask a worker instead of a server.
(() => {
  const page = window.fillmask;
  const byId = (id) => document.getElementById(id);
  let news = { kind: "busy", notice: "Loading the model:" }; // of the worker: what to say until it is ready
  const worker = new Worker("worker.js", { type: "module" });

  // A question has a channel of its own for its answer.
  const ask = (name, values) =>
    new Promise((resolve, reject) => {
      const { port1, port2 } = new MessageChannel();
      port1.onmessage = ({ data: { result, error } }) => (error ? reject(new Error(error)) : resolve(result));
      worker.postMessage({ name, values }, [port2]);
    });

  function tell(latest) {
    news = latest;
    page.explore.notice(news);
    // Once it runs, the files are kept for the next visit; not from a file or a strange host.
    if (news.ready) navigator.serviceWorker?.register("sw.js").catch(() => null);
  }
  worker.onmessage = ({ data }) => news.kind !== "error" && tell(data); // other files may still come after a failure
  worker.onerror = (event) => {
    event.preventDefault();
    tell({ kind: "error", notice: "This browser cannot run the page's worker: use a newer one.", html: {}, losses: [] });
  };

  // While the model comes, an answer says how far it is; the page asks again.
  const get = (_, name) => async (values) => (news.ready || name !== "answer" ? ask(name, values) : news);

  page.predict = (text, options = {}) => ask("predict", { text, ...options });
  page.surprisal = (text) => ask("surprisal", { text });

  if (new URLSearchParams(window.location.search).has("embed")) document.body.classList.add("fm-embed");
  page.start_theme();
  const theme = byId("theme");
  const nameTheme = () => theme.setAttribute("aria-label", `${page.dark() ? "light" : "dark"} theme`);
  theme.addEventListener("click", () => {
    page.set_theme(!page.dark(), true);
    nameTheme();
  });
  nameTheme();
  page.explore.begin(byId("stage"), new Proxy({}, { get }));

  // An example is a state of the page.
  const chips = [...document.querySelectorAll("#examples [data-state]")].map((chip) => [chip, JSON.parse(chip.dataset.state)]);
  for (const [chip, state] of chips) chip.addEventListener("click", () => page.explore.change(state, { push: true }));
  document.addEventListener("fillmask:answer", () => {
    for (const [chip, { text }] of chips) chip.ariaPressed = String(text === page.explore.state.text);
  });
})();
