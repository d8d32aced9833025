"""A page without a server, and a Space of the Hugging Face hub."""
