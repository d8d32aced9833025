"""Tools for language models (Model Context Protocol)."""
