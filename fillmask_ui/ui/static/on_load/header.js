// The button that switches between the light and the dark theme; it says which one it brings.
const button = element.querySelector("[aria-label='dark theme']");

function show() {
  const other = window.fillmask.dark() ? "Light" : "Dark";
  button.setAttribute("aria-label", `${other.toLowerCase()} theme`);
  button.querySelector("span").textContent = other;
}

button.addEventListener("click", () => {
  window.fillmask.set_theme(!window.fillmask.dark(), true);
  show();
});
window.fillmask.start_theme();
show();
