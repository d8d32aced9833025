"""The Explore tab: a sentence, the words hidden in it, and a model's predictions for them."""
