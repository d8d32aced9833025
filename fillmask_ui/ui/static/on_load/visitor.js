// Who asks: the id of this browser, and that of this page, which a reload does not change.
() => {
  const fresh = () =>
    [...crypto.getRandomValues(new Uint8Array(16))]
      .map((byte) => byte.toString(16).padStart(2, "0"))
      .join("");
  const kept = (name, storage) => {
    const id = window.fillmask.recall(name, storage) ?? fresh();
    window.fillmask.keep(name, id, storage); // where that is forbidden it lasts as long as the page
    return id;
  };
  return [kept("fillmask-visitor", "localStorage"), kept("fillmask-page", "sessionStorage")];
};
