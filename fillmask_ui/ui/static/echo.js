// The number of the change that the page now shows the answer to.
watch("value", () => window.fillmask.answered?.(props.value));
