// Two sentences: the second begins as the first, to change a word of it.
window.fillmask.explore.modes.sentences = {
  begin: () => ({ other: window.fillmask.explore.state.other || window.fillmask.explore.answer?.base || "" }),
};
