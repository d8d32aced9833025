// A word that a handler writes here says that more is to be asked for; the same may come again.
watch("value", () => {
  if (!props.value) return;
  props.value = "";
  trigger("ask");
});
