// The chapters are there, and with them the way to the server.
window.fillmask.learn.begin(server);
