// The panels are there, and with them the ways to the server.
window.fillmask.quantize.begin(server, () => trigger("made", {}));
