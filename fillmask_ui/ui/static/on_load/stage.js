// The place of the answers is there, and with it the way to the server.
window.fillmask.explore.begin(element.querySelector("#stage"), server);
