// A link that a handler writes here is followed; the same link may come again.
watch("value", () => {
  const link = props.value;
  if (!link) return;
  props.value = "";
  window.fillmask.follow(link);
});
