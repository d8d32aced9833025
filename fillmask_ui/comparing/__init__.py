"""Two models on one text; each module starts with its definitions."""
