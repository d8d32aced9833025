// A chapter as one page that needs nothing else: the text, what its figures show now, formulas as
// MathML, which browsers draw by themselves. Always on paper, whatever the theme.
(() => {
  const page = (window.fillmask ??= {});
  const { learn } = page;

  // The rules of the page's own styles, and the values of the variables that they name.
  function styles() {
    const sheets = [...document.querySelectorAll("style")].map((style) => style.textContent);
    const own = sheets.filter((text) => text.includes("--fm-")).join("\n");
    const names = new Set(own.match(/--[\w-]+/g));
    const dark = page.dark();
    document.body.classList.remove("dark");
    const computed = getComputedStyle(document.querySelector(".gradio-container"));
    const values = [...names].map((name) => [name, computed.getPropertyValue(name)]);
    const set = values.filter(([, value]) => value).map(([name, value]) => `${name}: ${value};`);
    document.body.classList.toggle("dark", dark);
    const body = "margin: 2rem auto; padding: 0 1rem; max-width: 60rem; background: white;";
    const inherited = "color: var(--body-text-color); font: 1rem/1.6 var(--font);";
    return `${own}\n:root { ${set.join(" ")} color-scheme: light; }\nbody.fm-saved { ${body} ${inherited} }
      .fm-saved .fm-step { margin-block: 2rem; }`;
  }

  function formulas(copy) {
    for (const formula of copy.querySelectorAll(".katex")) {
      const math = formula.querySelector("math");
      if (math) formula.replaceWith(math);
    }
  }

  // What was typed and chosen stays, as text; what only works beside a server goes.
  function controls(copy, original) {
    const live = original.querySelectorAll("input, textarea, select");
    copy.querySelectorAll("input, textarea, select").forEach((control, i) => {
      const { type, checked, value } = live[i];
      const chosen = type === "radio" || type === "checkbox";
      if (type === "range" || type === "hidden") return control.remove();
      if (chosen && !checked) return (control.closest("label") ?? control).remove();
      const text = document.createElement("span");
      text.className = "fm-saved-value";
      text.textContent = chosen ? "✓" : live[i].selectedOptions?.[0]?.textContent ?? value;
      control.replaceWith(text);
    });
    for (const gone of copy.querySelectorAll("button, .fm-exercises, .fm-figure-notice")) {
      if (!gone.closest("table")) gone.remove();
    }
    for (const link of copy.querySelectorAll("a[href]")) link.replaceWith(...link.childNodes);
  }

  learn.save = () => {
    const chapter = document.getElementById(`chapter-${learn.chapter}`);
    const title = chapter.querySelector("h2").textContent;
    const copy = chapter.cloneNode(true);
    copy.classList.remove("fm-chapter"); // of which only one is open
    formulas(copy);
    controls(copy, chapter);
    // Gradio's boxes have borders that only its own styles take away.
    for (const box of copy.querySelectorAll(".block")) box.removeAttribute("style");
    for (const empty of [...copy.querySelectorAll(".fm-step")]) {
      if (!empty.textContent.trim()) empty.remove();
    }
    const saved = document.implementation.createHTMLDocument(title);
    saved.documentElement.lang = "en";
    const charset = saved.createElement("meta");
    charset.setAttribute("charset", "utf-8");
    const sheet = saved.createElement("style");
    sheet.textContent = styles();
    saved.head.prepend(charset, sheet);
    // The styles of the page are written for what stands inside of these.
    saved.body.className = `fm-saved ${document.querySelector(".gradio-container").className}`;
    const main = saved.createElement("main");
    main.className = "contain";
    const root = saved.createElement("div");
    root.id = "learn";
    root.style.display = "block";
    const origin = saved.createElement("p");
    origin.className = "fm-note";
    const date = new Date().toISOString().slice(0, 10);
    const model = document.querySelector("#learn-model input").value;
    origin.textContent = `Fill-mask explorer, chapter “${title}”. Model: ${model}. ${date}.`;
    root.append(saved.importNode(copy, true), origin);
    main.append(root);
    saved.body.append(main);
    const html = `<!doctype html>\n${saved.documentElement.outerHTML}`;
    page.save(`lesson-${learn.chapter}.html`, "text/html", html);
  };
})();
