// The button that switches between the light and the dark theme.
const button = element.querySelector("[aria-label='dark theme']");

function show() {
  const dark = window.fillmask.dark();
  button.setAttribute("aria-pressed", String(dark));
  button.querySelector("span").textContent = dark ? "Light" : "Dark";
}

button.addEventListener("click", () => {
  window.fillmask.set_theme(!window.fillmask.dark(), true);
  show();
});
window.fillmask.start_theme();
show();
