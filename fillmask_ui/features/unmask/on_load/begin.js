// The form is there, and with it the way to the server.
window.fillmask.unmask.begin(server);
