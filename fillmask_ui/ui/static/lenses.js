// Words tinted as their losses come in, and what the model wanted in their place.
