// Hears of links to Evaluate.
window.fillmask.take_links("evaluate", (parameters) => trigger("follow", { parameters }));
