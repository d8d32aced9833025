"""`fillmask-ui eval --metric unmasking`, over the embedded model and texts."""

import pytest

from fillmask_ui import load_model
from fillmask_ui.evaluation import EvaluationConfig, evaluate, summarize
from fillmask_ui.texts import TextChoice, open_texts
from fillmask_ui.unmasking import UnmaskingOptions

UNMASKING = ("eval", "--metric", "unmasking", "--samples", "3", "--max-tokens", "24")


def test_the_shell_gives_the_figures_of_the_python_interface(fillmask):
    given = ("--hidden-share", "0.3", "--order", "entropy", "--max-steps", "3", "--seed", "7")
    result = fillmask(*UNMASKING, *given, "--temperature", "0.5", "--top-k", "9", "--json")
    assert result.returncode == 0, result.stderr
    config = EvaluationConfig(
        "unmasking",
        seed=7,
        max_tokens=24,
        hidden_share=0.3,
        decoding=UnmaskingOptions(order="entropy", max_steps=3, temperature=0.5, top_k=9),
    )
    with open_texts(TextChoice("embedded", samples=3).source()) as texts:
        summary = summarize(evaluate(load_model(), texts, config), config=config)
    figures, found = summary.model.written, result.json
    assert found["unmasking_loss"] == pytest.approx(summary.model.mean_nll_nats, rel=1e-6)
    assert found["exact_match"] == figures.exact_match
    assert found["infill_token_accuracy"] == figures.infill_token_accuracy
    assert found["mean_pseudo_perplexity"] == pytest.approx(figures.mean_pseudo_perplexity)
    assert (found["distinct_1"], found["distinct_2"]) == (figures.distinct_1, figures.distinct_2)
    assert "metric:unmasking|share:0.3|" in found["signature"]
    listed = fillmask("runs", "list", "--json")
    assert listed.json["value"] == found["unmasking_loss"]
    shown = fillmask("runs", "show", "latest")
    assert shown.returncode == 0, shown.stderr
    for label in ("unmasking_loss", "exact match", "infill token accuracy", "distinct-2"):
        assert label in shown.stdout


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ((*UNMASKING, "--top-k", "3", "--top-p", "0.5"), "both given"),
        ((*UNMASKING, "--hidden-share", "0"), "above 0 and at most 1"),
        ((*UNMASKING, "--order", "best"), "unknown order 'best'"),
        ((*UNMASKING, "--order", "none", "--threshold", "1"), "has none"),
        (("eval", "--remask", "1"), "belong to unmasking"),
        (("eval", "--hidden-share", "0.2"), "belongs to unmasking"),
    ],
)
def test_what_makes_no_sense_is_refused(fillmask, given, message):
    result = fillmask(*given)
    assert result.returncode == 2
    assert message in " ".join(result.stderr.split())
