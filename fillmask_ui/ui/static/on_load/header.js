// The button that switches between the light and the dark theme; it says which one it brings.
const button = element.querySelector("[aria-label='dark theme']");

function show() {
  const label = `${window.fillmask.dark() ? "light" : "dark"} theme`;
  button.setAttribute("aria-label", label);
  button.title = label;
}

button.addEventListener("click", () => {
  window.fillmask.set_theme(!window.fillmask.dark(), true);
  show();
});
window.fillmask.start_theme();
show();
