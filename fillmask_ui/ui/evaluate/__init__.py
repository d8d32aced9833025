"""The Evaluate tab: models measured on many texts, and the stored runs of that."""
