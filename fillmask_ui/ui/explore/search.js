// Two models: the candidate is another model at hand until one is picked. Texts are searched for where
// the two differ, once it is asked for.
(() => {
  const page = window.fillmask;
  const byId = (id) => document.getElementById(id);
  const state = () => page.explore.state;

  page.explore.modes.models = {
    begin() {
      const at_hand = [...byId("compare-with-list").children].map(({ dataset }) => dataset.value);
      const another = at_hand.find((reference) => reference !== state().model);
      return { compare: state().compare || (another ?? state().model) };
    },
  };

  const search = page.explore.windows("search-growth", "sentences");
  const asked = { order: "kl", bin: -1 };
  let where = ""; // blank for the page's texts, or `own`
  let pair = ""; // the models that the search is of

  const values = () => ({ ...asked, sentences: where ? [...page.presenting.own()] : undefined });

  function show_search(found) {
    page.explore.notify(byId("search-notice"), found);
    if (found.kind === "busy") return;
    page.put(byId("search-found"), found.html ?? "");
    mark();
  }

  // The sentence that is open is marked in the list.
  function mark() {
    for (const button of byId("search-found").querySelectorAll("[data-set]")) {
      button.ariaCurrent = JSON.parse(button.dataset.set).text === state().text || null;
    }
  }

  function toggle(open) {
    byId("search").hidden = !open;
    byId("search-open").setAttribute("aria-expanded", String(open));
    search.end();
    byId("search-found").replaceChildren();
    if (open) search.begin("parting", values, show_search);
  }

  function models_changed() {
    const both = JSON.stringify([state().model, state().compare, state().unit]);
    byId("search-open").hidden = page.explore.mode() !== "models" || !state().compare || page.explore.replayed();
    if (byId("search-open").hidden || both !== pair) toggle(false);
    pair = both;
    mark();
  }

  document.addEventListener("change", ({ target }) => {
    if (["fm-own-text", "fm-own-file"].includes(target.id) && where && !byId("search").hidden) toggle(true);
  });
  document.addEventListener("fillmask:answer", models_changed);

  page.on("click", ".fm-search-list [data-set]", () => byId("strip").scrollIntoView({ block: "nearest" }));
  page.on("click", "#search-open", (button) => {
    toggle(byId("search").hidden);
    if (!byId("search").hidden) button.scrollIntoView({ block: "start" });
  });
  page.on("click", "#search [data-where]", (chosen) => {
    where = chosen.dataset.where;
    for (const choice of chosen.parentElement.children) choice.ariaChecked = String(choice === chosen);
    asked.bin = -1;
    toggle(true);
  });
  page.on("click", "#search :is([data-bin], [data-order])", ({ dataset: { order, bin } }) => {
    if (order) asked.order = order;
    else asked.bin = Number(bin) === asked.bin ? -1 : Number(bin);
    search.ask("parting", values, show_search);
  });
})();
