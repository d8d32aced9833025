// Puts the models of the Explore tab into their lists, whenever a click or a link has changed them.
window.fillmask.explore.set_models = () => trigger("apply");
