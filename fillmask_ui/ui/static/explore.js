// The Explore tab in the browser: its state, its questions to the server, its history.
