"""This machine's speed with the models of this project, and with what is usually used instead."""
