// A figure is there, perhaps later than its chapter was opened.
window.fillmask.learn.mounted(element.querySelector(".fm-figure"));
