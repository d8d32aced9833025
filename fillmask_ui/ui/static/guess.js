// Guess first: the guesses of a class, and what the model guessed.
