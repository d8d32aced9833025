// Puts the state of the Explore tab into its controls, whenever a click or a link has changed it.
window.fillmask.explore.apply = () => trigger("apply");
