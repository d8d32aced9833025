// Who asks: the id of this browser, and that of this page, which a reload does not change.
() => {
  const fresh = () =>
    [...crypto.getRandomValues(new Uint8Array(16))]
      .map((byte) => byte.toString(16).padStart(2, "0"))
      .join("");
  const kept = (storage, name) => {
    try {
      const id = storage().getItem(name) ?? fresh();
      storage().setItem(name, id);
      return id;
    } catch {
      return fresh(); // storage can be forbidden; the ids then last as long as the page
    }
  };
  return [
    kept(() => localStorage, "fillmask-visitor"),
    kept(() => sessionStorage, "fillmask-page"),
  ];
};
