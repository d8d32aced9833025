// Hears that there are more models at hand, or fewer.
document.addEventListener("fillmask:models", () => trigger("submit"));
