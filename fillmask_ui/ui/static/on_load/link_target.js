// Hears of links to one tab, or to any where none is named.
window.fillmask.take_links("TAB", (parameters) => trigger("follow", { parameters }));
