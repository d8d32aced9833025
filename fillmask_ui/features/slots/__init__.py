"""One template with alternatives as many sentences, and what a model expects in each."""
