"""The command line: one file a command, assembled by `main.py`."""
