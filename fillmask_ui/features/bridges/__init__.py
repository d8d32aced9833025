"""Models of this package inside other evaluators: lm-evaluation-harness, Hugging Face evaluate."""

from pathlib import Path

# For `evaluate.load`.
PSEUDO_PERPLEXITY = str(Path(__file__).parent / "fillmask_pseudo_perplexity")
