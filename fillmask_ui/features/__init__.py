"""Features: each a folder with all that it has; `extensions.FEATURES` lists them."""
