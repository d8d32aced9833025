// A chapter as one page that needs nothing else: the text and what its figures show now. Always on
// paper, whatever the theme.
(() => {
  const page = (window.fillmask ??= {});

  // The rules of the page's own styles, and the values of the variables that they name.
  function styles() {
    const sheets = [...document.querySelectorAll("style")].map((style) => style.textContent);
    const page_css = sheets.filter((text) => text.includes("--fm-")).join("\n");
    const dark = page.dark();
    document.body.classList.remove("dark");
    const computed = getComputedStyle(document.querySelector(".gradio-container"));
    const values = [...new Set(page_css.match(/--[\w-]+/g))].map((name) => [name, computed.getPropertyValue(name)]);
    document.body.classList.toggle("dark", dark);
    const set = values.filter(([, value]) => value).map(([name, value]) => `${name}: ${value};`);
    const body = "margin: 2rem auto; padding: 0 1rem; max-width: 60rem; background: white;";
    const inherited = "color: var(--body-text-color); font: 1rem/1.6 var(--font);";
    return `${page_css}\n:root { ${set.join(" ")} color-scheme: light; }\nbody.fm-saved { ${body} ${inherited} }
      .fm-saved .fm-step { margin-block: 2rem; }`;
  }

  // What was typed and chosen stays, as text; what only works beside a server goes.
  function freeze(copy, original) {
    const live = original.querySelectorAll("input, textarea, select");
    copy.querySelectorAll("input, textarea, select").forEach((control, i) => {
      const { type, checked, value } = live[i];
      const chosen = type === "radio" || type === "checkbox";
      if (type === "range" || type === "hidden") return control.remove();
      if (chosen && !checked) return (control.closest("label") ?? control).remove();
      const text = document.createElement("span");
      text.textContent = chosen ? "✓" : live[i].selectedOptions?.[0]?.textContent ?? value;
      control.replaceWith(" ", text);
    });
    for (const element of copy.querySelectorAll("button, .fm-exercises, .fm-figure-notice")) {
      if (!element.closest("table")) element.remove();
    }
    for (const link of copy.querySelectorAll("a[href]")) link.replaceWith(...link.childNodes);
    for (const step of copy.querySelectorAll(".fm-step")) if (!step.textContent.trim()) step.remove();
    return copy;
  }

  page.learn.save = () => {
    const chapter = document.getElementById(`chapter-${page.learn.chapter}`);
    const title = chapter.querySelector("h2").textContent;
    const saved = document.implementation.createHTMLDocument(title);
    const create = (name, parts, ...children) => {
      const element = Object.assign(saved.createElement(name), parts);
      element.append(...children);
      return element;
    };
    saved.documentElement.lang = "en";
    const charset = create("meta", {});
    charset.setAttribute("charset", "utf-8");
    saved.head.prepend(charset, create("style", {}, styles()));
    // The styles of the page are written for what stands inside of these.
    saved.body.className = `fm-saved ${document.querySelector(".gradio-container").className}`;
    const date = new Date().toISOString().slice(0, 10);
    const model = document.querySelector("#learn-model input").value;
    const origin = `Fill-mask explorer, chapter “${title}”. Model: ${model}. ${date}.`;
    const copy = saved.importNode(freeze(chapter.cloneNode(true), chapter), true);
    const root = create("div", { id: "learn" }, copy, create("p", { className: "fm-note" }, origin));
    root.style.display = "block";
    saved.body.append(create("main", { className: "contain" }, root));
    const html = `<!doctype html>\n${saved.documentElement.outerHTML}`;
    page.save(`lesson-${page.learn.chapter}.html`, "text/html", html);
  };
})();
