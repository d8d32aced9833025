// What the whole page shares: its address, its theme, files to save.
(() => {
  const page = (window.fillmask ??= {});

  // Events at what matches a selector, whenever it came to the page: `act(element, event)`.
  page.on = (type, selector, act) =>
    document.addEventListener(type, (event) => {
      const found = event.target.closest?.(selector);
      if (found) act(found, event);
    });

  // Does something the first time that it is asked for.
  const done = new Set();
  page.once = (name, act) => {
    if (done.has(name)) return;
    done.add(name);
    act();
  };

  // Keys of what fills the page, which hears of them first: `keys_of(event)` gives what each does now.
  // A feature comes after the core, and lies above it.
  const keyed = [];
  page.keys = (keys_of) => keyed.unshift(keys_of);
  document.addEventListener(
    "keydown",
    (event) => {
      if (event.ctrlKey || event.altKey || event.metaKey || event.shiftKey) return;
      for (const keys_of of keyed) {
        const act = keys_of(event)?.[event.key];
        if (act) {
          event.preventDefault();
          event.stopImmediatePropagation();
          if (!event.repeat) act();
        }
        if (event.cancelBubble) return; // it was stopped
      }
    },
    true,
  );

  // Parameters of the address; null takes one away. With `push` it is a step to come back from.
  const change = (page.change_address = (parameters, state = history.state, push = false) => {
    const url = new URL(window.location.href);
    for (const [name, value] of Object.entries(parameters)) {
      if (value === null) url.searchParams.delete(name);
      else url.searchParams.set(name, value);
    }
    if (push) history.pushState(state, "", url);
    else history.replaceState(state, "", url);
  });

  // A page as it opens needs no parameters; any other names its text, model and k in full.
  page.remember = (link, plain, most_characters, state, push) => {
    const names = Object.keys(link);
    const same = (name) => link[name] === plain[name];
    const untouched = names.every(same);
    const kept = {};
    for (const name of names) {
      const optional = !["text", "model", "k"].includes(name) && same(name);
      const value = link[name];
      kept[name] = untouched || optional || value.length > most_characters ? null : value;
    }
    change(kept, state, push);
  };

  // A tab is built when somebody points at it, moves to it or opens it, once.
  const openers = {};
  const prepared = new Set();
  page.prepare_tab = (tab) => {
    prepared.add(tab);
    if (openers[tab]) page.once(`tab ${tab}`, openers[tab]);
  };
  page.tab_opener = (tab, build) => {
    openers[tab] = build;
    if (prepared.has(tab)) page.prepare_tab(tab);
  };
  for (const type of ["pointerover", "focusin"])
    page.on(type, "#tabs [data-tab-id]", ({ dataset }) => page.prepare_tab(dataset.tabId));

  page.remember_tab = (tab, plain) => {
    page.prepare_tab(tab);
    change({ tab: tab === plain ? null : tab });
    document.dispatchEvent(new CustomEvent("fillmask:tab", { detail: tab }));
  };

  // ---- The first sight: header, tabs and Explore work before Gradio has read its plan. Its page has
  // places for these parts, which move there: nothing that was typed or pressed is lost.

  const plan = window.gradio_config?.components ?? [];
  const tabs = plan.find(({ type }) => type === "tabs");
  // A run alone is an address too; with an example of it, Explore shows that.
  const address = new URL(window.location.href).searchParams;
  const named = address.get("tab") ?? (address.has("run") && !address.has("example") ? "evaluate" : null);
  const is_tab = (name) => plan.some(({ type, props }) => type === "tabitem" && props.id === name);
  let wanted_tab = is_tab(named) ? named : (tabs?.props.selected ?? "explore");
  let built = false; // whether Gradio's page is there
  if (tabs) tabs.props.selected = wanted_tab;

  const shell = () => document.getElementById("shell");
  const gradio_tab = (name) => document.querySelector(`#tabs [data-tab-id="${name}"]`);

  function show_shell_tab(name) {
    wanted_tab = name;
    page.prepare_tab(name);
    const line = document.getElementById("shell-wait");
    for (const button of shell().querySelectorAll("[data-shell-tab]")) {
      const chosen = button.dataset.shellTab === name;
      button.ariaSelected = String(chosen);
      if (chosen) line.firstElementChild.textContent = `Opening ${button.textContent}…`;
    }
    line.hidden = name === "explore";
    document.getElementById("explore").hidden = name !== "explore";
    if (name === "explore") begin_explore();
  }

  const begin_explore = () =>
    page.once("explore", () => {
      page.examples(document.getElementById("examples"));
      page.explore.begin(document.getElementById("stage"), page.server);
    });

  page.begin = () => {
    page.start_theme();
    document.getElementById(`not-offered-${named}`)?.removeAttribute("hidden");
    page.on("click", "[data-shell-tab]", ({ dataset }) => show_shell_tab(dataset.shellTab));
    show_shell_tab(wanted_tab);
    new MutationObserver((_, observer) => {
      if (!document.querySelector("#tabs [role=tabpanel]")) return;
      observer.disconnect();
      take_over();
    }).observe(document.body, { childList: true, subtree: true });
  };

  const place_of = (id) => document.querySelector(`[data-place-of="${id}"]`);

  // A lecture on the whole screen is not disturbed, and what moves to a hidden place loses the focus.
  function take_over() {
    const shown = (id) => place_of(id)?.checkVisibility({ visibilityProperty: true });
    const places = ["page-header", "explore"].filter(shown);
    const open = wanted_tab === "explore" ? 2 : 1;
    if (places.length < open || document.querySelector(".fm-presenting")) return setTimeout(take_over, 50);
    built = true;
    page.start_theme(); // Gradio has set its own
    places.forEach(page.settle);
    shell().hidden = true;
    if (gradio_tab(wanted_tab)?.ariaSelected !== "true") page.select_tab({ tab: wanted_tab });
    if (places.length === 2) shell().remove();
    return null;
  }

  // A part moves to its place in Gradio's page, with the focus and what is marked in it.
  page.settle = (id) => {
    const part = document.getElementById(id);
    const place = place_of(id);
    if (!built || !place || place.contains(part)) return;
    const held = part.contains(document.activeElement) ? document.activeElement : null;
    const marked = [held?.selectionStart, held?.selectionEnd];
    if (place.moveBefore) place.moveBefore(part, null);
    else place.append(part);
    part.hidden = false;
    if (held && document.activeElement !== held) {
      held.focus({ preventScroll: true });
      if (typeof marked[0] === "number") held.setSelectionRange(...marked);
    }
    if (id === "explore") begin_explore();
  };

  page.select_tab = ({ tab }) => {
    if (built) gradio_tab(tab)?.click();
    else if (is_tab(tab)) show_shell_tab(tab);
  };

  // What the page asks of its server: a function by its name, with values of JSON.
  page.server = new Proxy(
    {},
    {
      get: (_, name) => async (values) => {
        const headers = { "content-type": "application/json" };
        const answer = await fetch(`./ask/${name}`, { method: "POST", headers, body: JSON.stringify(values) });
        if (!answer.ok) throw new Error(await answer.text());
        return answer.json();
      },
    },
  );

  // A link inside the page goes to the tab that it names. A tab that was never open takes it up
  // once it is there, as it does with the address of the page.
  const takers = {};
  const waiting = named && named !== "explore" ? { [named]: Object.fromEntries(new URLSearchParams(window.location.search)) } : {};
  page.follow = (link) => {
    const parameters = Object.fromEntries(new URLSearchParams(link));
    page.select_tab(parameters);
    if (takers[parameters.tab]) takers[parameters.tab](parameters);
    else waiting[parameters.tab] = parameters;
    window.scrollTo(0, 0);
  };
  page.take_links = (tab, take) => {
    takers[tab] = take;
    if (waiting[tab]) take(waiting[tab]);
    delete waiting[tab];
  };

  // Who asks, as the Evaluate tab is told; blank where nothing can be kept.
  page.visitor = () => page.recall("fillmask-visitor") ?? "";

  page.save = (name, type, content) => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([content], { type }));
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  };

  // What this browser remembers, or this page in `sessionStorage`; storage can be forbidden, and then
  // a choice lasts as long as the page. Null takes an entry away.
  page.recall = (name, storage = "localStorage") => {
    try {
      return window[storage].getItem(name);
    } catch {
      return null;
    }
  };
  page.keep = (name, value, storage = "localStorage") => {
    try {
      if (value === null) window[storage].removeItem(name);
      else window[storage].setItem(name, value);
      return true;
    } catch {
      return false;
    }
  };

  // Whether text of the page is selected, to be copied; what is selected in a text box does not count.
  page.text_marked = () => {
    const selection = window.getSelection();
    return !selection.isCollapsed && Boolean(String(selection).trim());
  };

  // A line that says what goes on or what went wrong; blank for any other kind of answer.
  page.notice = ({ kind, notice = "", fraction = null }) => {
    const line = document.createElement("div");
    if (["hint", "error", "busy"].includes(kind)) {
      line.className = `fm-notice fm-${kind}`;
      line.textContent = notice;
    }
    line.setAttribute("role", kind === "error" ? "alert" : "status");
    if (kind === "busy") {
      const bar = line.appendChild(document.createElement("progress"));
      bar.setAttribute("aria-label", "progress");
      if (typeof fraction === "number") bar.value = fraction;
    }
    return line;
  };

  // Puts HTML in the place of older HTML: what was unfolded stays so, the focus stays where it was,
  // and bars move from where they were to where they are.
  page.put = (box, html) => {
    const bars = () =>
      [...box.querySelectorAll("[data-bar]")].map((own) => [own.dataset.bar, own.querySelector(".fm-row-fill") ?? own]);
    const before = Object.fromEntries(bars().map(([key, mark]) => [key, mark.style.cssText]));
    const unfolded = [...box.querySelectorAll("details")].map(({ open }) => open);
    const held = box.contains(document.activeElement) && document.activeElement;
    box.innerHTML = html;
    box.querySelectorAll("details").forEach((own, place) => (own.open ||= !!unfolded[place]));
    const after = bars().map(([key, mark]) => [mark, mark.style.cssText, before[key]]);
    for (const [mark, now, then] of after) mark.style.cssText = then ?? (mark.matches(".fm-bar-row .fm-row-fill") ? "--p: 0" : now);
    if (after.length) void box.offsetWidth; // the old places are drawn before the new ones are set
    for (const [mark, now] of after) mark.style.cssText = now;
    if (!held) return;
    const name = ["id", "data-set", "data-key", "data-bin", "data-order", "data-strike"].find((own) => held.getAttribute(own));
    const same = name && box.querySelector(`[${name}="${CSS.escape(held.getAttribute(name))}"]`);
    (same || box.querySelector("button"))?.focus({ preventScroll: true });
  };

  // Shows an element alone, on the whole screen where the browser allows that; gives what ends it.
  page.alone = (element) => {
    const others = [];
    for (let node = element; node !== document.body; node = node.parentElement)
      for (const other of node.parentElement.children) if (other !== node && !other.inert) others.push(other);
    for (const other of others) other.inert = true;
    document.documentElement.requestFullscreen?.().catch(() => {});
    if (!element.contains(document.activeElement)) document.activeElement?.blur();
    return () => {
      for (const other of others) other.inert = false;
      if (document.fullscreenElement) document.exitFullscreen();
    };
  };

  page.dark = () => document.body.classList.contains("dark");

  page.set_theme = (dark, keep) => {
    document.body.classList.toggle("dark", dark);
    document.documentElement.style.colorScheme = dark ? "dark" : "light";
    name_theme();
    if (!keep) return;
    change({ __theme: null }); // the button wins over the address
    page.keep("fillmask-theme", dark ? "dark" : "light");
  };

  // A browser stops at a list that scrolls, and the list of a box is gone once the box is left: the
  // next place to go is the one behind it.
  document.addEventListener("keydown", ({ key, target }) => {
    if (key !== "Tab" || target.getAttribute?.("role") !== "combobox") return;
    document.getElementById(target.getAttribute("aria-controls"))?.setAttribute("tabindex", "-1");
  });

  function name_theme() {
    const button = document.querySelector("[data-theme-button]");
    if (!button) return;
    button.ariaLabel = button.title = `${page.dark() ? "light" : "dark"} theme`;
  }

  page.on("click", "[data-theme-button]", () => page.set_theme(!page.dark(), true));

  // A theme asked for in the address wins over the one chosen last.
  page.start_theme = () => {
    const asked = new URL(window.location.href).searchParams.get("__theme");
    const chosen = asked ?? page.recall("fillmask-theme");
    const dark = matchMedia("(prefers-color-scheme: dark)").matches;
    page.set_theme(chosen ? chosen === "dark" : dark, false);
  };
})();
