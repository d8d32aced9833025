"""Many evaluations from one file: models, data sets, metrics and seeds, each a stored run."""
