"""The Explore tab: a sentence, the words hidden in it, and what a model expects there."""
