// A figure is there, perhaps later than what it belongs to was opened.
window.fillmask.figures.mounted(element.querySelector(".fm-figure"));
