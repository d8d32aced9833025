"""What the commands print is what they printed when it was recorded, to the last digit."""

import pytest
from recorded.program import HERE, call
from recorded.recording import check_json, decimals, parsed

TWO = "The [MASK] sat on the [MASK]."
THREE = "[MASK] old [MASK] came to the [MASK]!"
CAT = "The cat sat on the [MASK]."
TABLE = ("-m", "table")
TEXTS = ("eval", *TABLE, "--dataset", "texts.txt")
NOISY, LETTERS = ("--baseline", "noisy"), ("--baseline", "letters")
WORSE = ("eval", "-m", "noisy", "--dataset", "texts.txt", "--baseline", "table")
PSEUDO = ("--metric", "pseudo-perplexity")
UNIFORM = ("--metric", "uniform")
BYTES = ("--metric", "bits-per-byte")
UNMASKING = ("--metric", "unmasking")
BASE = ("--baseline", "table")
DIFFER = ("differ", *BASE, "--dataset", "texts.txt", "--sentences", "4")
SUFFIX = ("--metric", "suffix")
WORDS = ("--candidates", "cat, walked, unhappiness, gardens, Zürich, quickest")
ONNX = ("-m", "table/onnx/model.onnx")
FEW = ("--fewest-texts", "10")  # of the 33 texts the length of 24

JSON = {
    "predict": ("predict", *TABLE, CAT, "The ___ is cold.", "<mask>"),
    "predict-top-k": ("predict", *TABLE, "-k", "2", CAT),
    "predict-top-k-all": ("predict", *TABLE, "--top-k", "all", "A [MASK]."),
    "predict-candidates": ("predict", *TABLE, *WORDS, "-k", "3", CAT, "the [MASK]ing [MASK]"),
    "predict-joint": ("predict", *TABLE, "--joint", "3", TWO, THREE),
    "predict-narrow-beam": ("predict", *TABLE, "--joint", "1", "--beam-width", "1", "-k", "1", TWO),
    "predict-no-joint": ("predict", *TABLE, "--joint", "0", "-k", "1", TWO),
    "predict-bits": ("predict", *TABLE, "--bits", "-k", "2", CAT),
    "predict-file": ("predict", *TABLE, "--file", "sentences.txt", "-k", "2"),
    "predict-stdin": ("predict", *TABLE, "--file", "-", "-k", "2"),
    "predict-letters": ("predict", "-m", "letters", *WORDS, "-k", "3", CAT),
    "predict-onnx": ("predict", *ONNX, "--model-id", "noisy", "-k", "2", CAT),
    "predict-onnx-file": ("predict", *TABLE, "--onnx-file", "model.onnx", "-k", "2", CAT),
    "predict-compare": ("predict", "-m", "noisy", *BASE, *WORDS, "-k", "3", TWO, CAT),
    "predict-compare-letters": ("predict", "-m", "letters", *BASE, "-k", "3", CAT),
    "predict-compare-bits": (
        *("predict", "-m", "noisy", *BASE, "--bits", "--joint", "0", "-k", "2", THREE),
    ),
    "unmask": ("unmask", *TABLE, TWO, THREE),
    "unmask-steps": ("unmask", *TABLE, "--max-steps", "2", "--order", "entropy", THREE),
    "unmask-remask": ("unmask", *TABLE, "--remask", "1", "--order", "prob_diff", THREE),
    "unmask-drawn": (
        *("unmask", *TABLE, "--order", "none", "--temperature", "1.2", "--top-k", "7"),
        *("--seed", "3", "--pieces", "fitting", THREE),
    ),
    "unmask-threshold": ("unmask", *TABLE, "--threshold", "1.5", "--order", "entropy", THREE),
    "unmask-prefix": (
        *("unmask", *TABLE, "--prefix", "The old", "--suffix", ".", "--new-tokens", "3"),
    ),
    "unmask-length": ("unmask", *TABLE, "--length", "4", "--order", "left_to_right"),
    "unmask-file": ("unmask", "-m", "letters", "--file", "sentences.txt"),
    "differ": (*DIFFER, "-m", "noisy"),
    "differ-letters": (*DIFFER, "-m", "letters", "--words", "2", "--most", "2"),
    "differ-same": (*DIFFER, *TABLE),
    "slots": ("slots", *TABLE, "The {cat|dog} [MASK] to the river.", "-k", "4"),
    "slots-baseline": (
        *("slots", "-m", "noisy", *BASE, "--candidates", "ran, walked"),
        "{The|A} {cat|bird} [MASK] on the house.",
    ),
    "surprise": ("surprise", *TABLE, "The cat sat on the mat.", "Gardens!"),
    "eval": TEXTS,
    "eval-baseline": (*TEXTS, *NOISY),
    "eval-whole-word": (*TEXTS, "--whole-word", "--mask-probability", "0.3"),
    "eval-whole-word-baseline": (*TEXTS, *NOISY, "--whole-word"),
    "eval-whole-word-letters": (*TEXTS, *LETTERS, "--whole-word", "--mask-probability", "0.4"),
    "eval-shares": (
        *(*TEXTS, *NOISY, "--mask-probability", "0.5", "--mask-share", "0.5"),
        *("--random-share", "0.3", "--unchanged-share", "0.2"),
    ),
    "eval-collator": (*TEXTS, "--mask-stream", "collator"),
    "eval-collator-baseline": (*TEXTS, *NOISY, "--mask-stream", "collator", "--seed", "3"),
    "eval-pseudo-perplexity": (*TEXTS, *PSEUDO),
    "eval-pseudo-perplexity-baseline": (*TEXTS, *PSEUDO, *NOISY),
    "eval-pseudo-perplexity-letters": (*TEXTS, *PSEUDO, *LETTERS),
    "eval-within-word": (*TEXTS, *PSEUDO, "--within-word"),
    "eval-within-word-letters": (*TEXTS, *PSEUDO, *LETTERS, "--within-word"),
    "eval-uniform": (*TEXTS, *UNIFORM),
    "eval-uniform-baseline": (*TEXTS, *UNIFORM, *NOISY),
    "eval-suffix": (*TEXTS, *SUFFIX),
    "eval-suffix-baseline": (*TEXTS, *SUFFIX, "--suffix-tokens", "3", *NOISY),
    "eval-bits-per-byte": (*TEXTS, *BYTES),
    "eval-bits-per-byte-letters": (*TEXTS, *BYTES, *LETTERS),
    "eval-unmasking": (*TEXTS, *UNMASKING, "--hidden-share", "0.4"),
    "eval-unmasking-baseline": (*TEXTS, *UNMASKING, *NOISY, "--max-steps", "2", "--remask", "1"),
    "eval-by-paragraph": ("eval", *TABLE, "--dataset", "paragraphs.txt", "--by", "paragraph"),
    "eval-csv": (
        *("eval", *TABLE, "--dataset", "table.csv", "--column", "input_column=text", *UNIFORM),
    ),
    "eval-tsv": ("eval", *TABLE, "--dataset", "table.tsv", "--column", "body", *UNIFORM),
    "eval-jsonl": ("eval", *TABLE, "--dataset", "rows.jsonl", "--column", "body", *PSEUDO),
    "eval-gz": ("eval", *TABLE, "--dataset", "texts.txt.gz", *SUFFIX),
    "eval-stdin": ("eval", *TABLE, "--dataset", "-", "--no-shuffle", *UNIFORM),
    "eval-format": ("eval", *TABLE, "--dataset", "-", "--format", "txt", "--encoding", "latin-1"),
    "eval-embedded-texts": ("eval", *TABLE, "--samples", "15"),
    "eval-few": (*TEXTS, "--samples", "9", "--no-shuffle", "--seed", "7"),
    "eval-more-than-there-are": (*TEXTS, "--samples", "1000"),
    "eval-max-tokens": (*TEXTS, *PSEUDO, "--max-tokens", "12", "--batch-tokens", "64"),
    "eval-verdict": (*WORSE, *PSEUDO, "--fail-on", "regression", *FEW),
    "eval-at-risk": (*WORSE, *PSEUDO, "--risk-below", "0.3", *FEW),
    "eval-inconclusive": (
        *(*TEXTS, *NOISY, "--pass-below", "0.01", "--fail-on", "inconclusive", *FEW),
    ),
}

TEXT = {
    "predict": ("predict", *TABLE, CAT, "The ___ is cold."),
    "predict-candidates-joint": ("predict", *TABLE, *WORDS, "--joint", "2", "-k", "3", TWO),
    "predict-bits": ("predict", *TABLE, "--bits", *WORDS, "-k", "3", TWO),
    "eval": (*TEXTS, "--all"),
    "eval-baseline": (*TEXTS, *NOISY, "--all"),
    "eval-letters": (*TEXTS, *PSEUDO, *LETTERS, "--all"),
    "eval-uniform": (*TEXTS, *UNIFORM, "--samples", "1000"),
    "eval-inconclusive": (*TEXTS, *NOISY, "--samples", "8", "--pass-below", "0.01"),
}


def stdin_of(name: str) -> str:
    texts = HERE / "texts"
    return (texts / ("sentences.txt" if name.startswith("predict") else "texts.txt")).read_text()


@pytest.mark.parametrize("name", JSON)
def test_json(name):
    result = call(*JSON[name], "--json", stdin=stdin_of(name))
    check_json(name, {"code": result.returncode, "stdout": parsed(result.stdout)})


def test_json_of_attention():
    """The tables have none: of the embedded model, whose floats differ a little between CPUs."""
    for name, options in {"attention-head": ("--head", "3"), "attention": ("--layer", "2")}.items():
        result = call("attention", *options, "The cat sat on the [MASK].", "--json")
        content = {"code": result.returncode, "stdout": parsed(result.stdout)}
        check_json(name, content, close=True)


def test_the_output_file_holds_what_json_prints(tmp_path):
    result = call(*TEXTS, *NOISY, "--json", "-o", tmp_path / "out.json")
    assert result.returncode == 0, result.stderr
    assert (tmp_path / "out.json").read_text("utf-8") == result.stdout
    check_json("eval-baseline", {"code": 0, "stdout": parsed(result.stdout)})


def test_figures_of_the_terminal():
    results = {name: call(*arguments) for name, arguments in TEXT.items()}
    assert {result.returncode for result in results.values()} == {0}
    check_json("terminal", {name: decimals(result.stdout) for name, result in results.items()})


def test_the_embedded_models_are_listed():
    rows = [row for row in parsed(call("models", "--json").stdout) if row["where"] == "embedded"]
    check_json("models", rows)
