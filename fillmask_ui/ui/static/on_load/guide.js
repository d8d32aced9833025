// The example for programs asks this very page.
const { origin, pathname } = window.location;
for (const part of element.querySelectorAll("[data-address]")) part.textContent = origin + pathname;
