"""A class that guesses on its phones, against the model."""
