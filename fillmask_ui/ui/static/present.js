// Presenting: keys, and a list of sentences of the lecturer's own.
