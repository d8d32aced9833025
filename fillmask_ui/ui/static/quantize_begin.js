// The panels are there, and with them the way to the server.
window.fillmask.quantize.begin(server);
