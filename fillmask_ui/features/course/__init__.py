"""The course on the masked-LM loss: its chapters, its exercises, and what both compute."""
