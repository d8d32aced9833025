"""The Evaluate tab: measure models on many texts, and look at stored runs."""
