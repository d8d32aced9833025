"""A finished model folder: its layout and card, and its way to the Hugging Face hub."""
