// The page without a server: what Explore's scripts ask one, they ask a worker here.
(() => {
  const page = window.fillmask;
  const byId = (id) => document.getElementById(id);
  const waiting = new Map(); // number of a question -> what takes its answer
  const state = { loaded: 0, total: 0, ready: false, failed: "" };
  const megabytes = (bytes) => (bytes / 1e6).toFixed(1);
  let asked = 0;
  const worker = new Worker("worker.js", { type: "module" });

  const ask = (name, values) =>
    new Promise((resolve, reject) => {
      waiting.set((asked += 1), { resolve, reject });
      worker.postMessage({ id: asked, name, values });
    });

  // While the model comes, an answer says how far it is; the page asks again.
  function progress() {
    if (state.failed) return { kind: "error", notice: state.failed, html: {}, losses: [] };
    const of = state.total ? ` ${megabytes(state.loaded)} of ${megabytes(state.total)} MB` : "";
    return { kind: "busy", notice: `Loading the model:${of}`, fraction: state.total ? state.loaded / state.total : null };
  }
  const tell = () => page.explore.notice(state.ready ? {} : progress());

  worker.onmessage = ({ data: { id, result, error, ...news } }) => {
    if (!id) {
      Object.assign(state, news);
      tell();
      // Once it runs, the files are kept for the next visit; not from a file or a strange host.
      if (news.ready) navigator.serviceWorker?.register("sw.js").catch(() => null);
      return;
    }
    const { resolve, reject } = waiting.get(id);
    waiting.delete(id);
    if (error) reject(new Error(error));
    else resolve(result);
  };
  worker.onerror = (event) => {
    event.preventDefault();
    Object.assign(state, { failed: "This browser cannot run the page's worker: use a newer one." });
    tell();
  };

  const answer = async (values) => (state.ready ? ask("answer", values) : progress());
  const server = new Proxy({ answer }, { get: (own, name) => own[name] ?? ((values) => ask(name, values)) });

  Object.assign(page, {
    predict: (text, options = {}) => ask("predict", { text, ...options }),
    surprisal: (text) => ask("surprisal", { text }),
  });

  const parameters = new URL(window.location.href).searchParams;
  if (parameters.has("embed")) document.body.classList.add("fm-embed");
  page.start_theme();
  const theme = byId("theme");
  const named = () => theme.setAttribute("aria-label", `${page.dark() ? "light" : "dark"} theme`);
  theme.addEventListener("click", () => {
    page.set_theme(!page.dark(), true);
    named();
  });
  named();
  page.explore.begin(byId("stage"), server);

  // An example is a state of the page.
  const chips = [...document.querySelectorAll("#examples [data-state]")];
  for (const chip of chips) chip.addEventListener("click", () => page.explore.change(JSON.parse(chip.dataset.state), { push: true }));
  document.addEventListener("fillmask:answer", () => {
    for (const chip of chips) chip.setAttribute("aria-pressed", String(JSON.parse(chip.dataset.state).text === page.explore.state.text));
  });
})();
