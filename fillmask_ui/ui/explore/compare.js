// A second model at the masks of the sentence: asked for once the first has answered, and shown in
// place of its bars.
(() => {
  const AGAIN_MS = 400;
  const page = (window.fillmask ??= {});
  const byId = (id) => document.getElementById(id);
  let turn = 0; // number of the latest answer or question; what began before gives up

  // The places of the comparison; a sentence without a mask has others there.
  function places() {
    if (!byId("versus")) {
      const box = document.createElement("div");
      box.id = "versus";
      box.innerHTML = `<div data-piece="notice"></div><div data-piece="story" aria-live="polite"></div>
        <div data-piece="html"></div>`;
      byId("compared").append(box);
    }
    return (piece) => byId("versus").querySelector(`[data-piece="${piece}"]`);
  }

  function show({ kind = "none", notice = "", fraction = null, story = "", html = "" }) {
    const place = places();
    place("notice").replaceChildren(...(notice ? [page.notice({ kind, notice, fraction })] : []));
    if (kind === "busy") return; // what stood there before stays
    const held = byId("versus").contains(document.activeElement) && document.activeElement;
    const open = place("html").querySelector("details")?.open;
    if (place("story").innerHTML !== story) place("story").innerHTML = story;
    place("html").innerHTML = html;
    const details = place("html").querySelector("details");
    if (details && open) details.open = true;
    byId("stage").classList.toggle("fm-versus-on", html !== "");
    if (held) refocus(held);
  }

  // The same button again, or after a word was written the first one that is there.
  function refocus({ dataset: { zoom, key } }) {
    const box = byId("versus");
    const same = zoom ? `[data-zoom="${zoom}"]` : `[data-key="${CSS.escape(key ?? "")}"]`;
    (box.querySelector(same) ?? box.querySelector("button"))?.focus({ preventScroll: true });
  }

  async function ask(own) {
    let found;
    try {
      found = await page.explore.call("compared");
    } catch {
      return; // the next answer asks again
    }
    if (own !== turn) return;
    show(found);
    if (found.kind === "busy") setTimeout(() => own === turn && ask(own), AGAIN_MS);
  }

  document.addEventListener("fillmask:stale", () => {
    turn += 1;
  });

  document.addEventListener("fillmask:answer", ({ detail: answer }) => {
    turn += 1;
    if (answer.kind === "error" && !answer.mask) return; // what stood there before stays
    const { compare } = page.explore.state;
    if (page.explore.mode() === "models" && compare && answer.mask) ask(turn);
    else show({});
  });
})();
