"""The bridges to lm-evaluation-harness and Hugging Face evaluate, by their own libraries."""

import json
import re
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from recorded.program import environment, ran

from fillmask_ui import EvaluationConfig, evaluate, load_model, nll_nats, pseudo_log_likelihoods
from fillmask_ui.errors import OptionError, TextError
from fillmask_ui.evaluation import summarize

harness = pytest.importorskip("fillmask_ui.features.bridges.harness")
TEXTS = ["The cat sat on the mat.", "", "Rain fell.", "It is unbelievably cold.", "We like tea."]
TASK = {
    "task": "tiny",
    "dataset_path": "json",
    "test_split": "test",
    "doc_to_text": "{{context}}",
    "output_type": "multiple_choice",
    "doc_to_choice": "{{choices}}",
    "doc_to_target": "{{label}}",
    "metric_list": [{"metric": "acc"}],
}
CHOICES = [
    {"context": "A dog can", "choices": ["bark.", "photosynthesize."], "label": 0},
    {"context": "", "choices": ["The cats is here.", "The cats are here."], "label": 1},
]
SCRIPT = """
import json, sys
import evaluate, lm_eval
from lm_eval.tasks import TaskManager
from fillmask_ui.features.bridges import PSEUDO_PERPLEXITY, lm_eval as bridge
folder, texts = json.load(sys.stdin)
metric = evaluate.load(PSEUDO_PERPLEXITY).compute(predictions=texts, within_word=True)
bridge.register()
found = lm_eval.simple_evaluate(
    model="fillmask", model_args="pretrained=embedded,within_word=true", tasks=["tiny"],
    device="cuda:0", task_manager=TaskManager(include_path=folder, include_defaults=False),
)
scores = [[own[0][0] for own in one["resps"]] for one in found["samples"]["tiny"]]
json.dump([metric, found["results"]["tiny"]["acc,none"], scores], open(folder + "/found", "w"))
"""


def test_the_task_of_the_document_runs_without_a_network(tmp_path):
    page = (Path(__file__).parents[3] / "docs" / "harness.md").read_text("utf-8")
    blocks = dict(re.findall(r"```(yaml|json|sh)\n(.*?)```", page, re.DOTALL))  # the last of each
    (tmp_path / "agreement.yaml").write_text(blocks["yaml"])
    (tmp_path / "pairs.jsonl").write_text(blocks["json"])
    (command,) = re.findall(r"^python (-m .* --include_path \.)$", page, re.MULTILINE)
    done = ran(
        *(sys.executable, *command.split()),
        cwd=tmp_path,
        **environment(HF_HUB_OFFLINE="1", HF_DATASETS_OFFLINE="1", HF_HOME=str(tmp_path)),
    )
    assert done.returncode == 0, done.stderr
    assert re.search(r"\|agreement\|.*\|acc +\|↑ +\| +1\|", done.stdout), done.stdout


@pytest.fixture(scope="module")
def lm():
    return harness.FillmaskLM(threads=1)


def ask(lm, *pairs):
    return lm.loglikelihood([SimpleNamespace(args=pair) for pair in pairs], disable_tqdm=True)


def test_both_libraries_find_our_numbers(tmp_path):
    texts = tmp_path / "choices.jsonl"
    texts.write_text("\n".join(map(json.dumps, CHOICES)))
    own = {"dataset_kwargs": {"data_files": {"test": str(texts)}}}
    (tmp_path / "tiny.yaml").write_text(json.dumps(TASK | own))
    offline = dict.fromkeys(("HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE", "HF_EVALUATE_OFFLINE"), "1")
    given = json.dumps([str(tmp_path), TEXTS])
    done = ran(sys.executable, "-c", SCRIPT, given=given, HF_HOME=str(tmp_path), **offline)
    assert done.returncode == 0, done.stderr
    metric, accuracy, scores = json.loads((tmp_path / "found").read_text())
    model, config = load_model(), EvaluationConfig("pseudo-perplexity", within_word=True)
    rows = {row.id: row for row in evaluate(model, TEXTS, config)}
    figures = summarize(rows.values(), config=config).model
    assert metric["pseudo_perplexity"] == pytest.approx(figures.metric, rel=1e-9)
    for index, text in enumerate(TEXTS):
        own = np.exp(rows[index].scores.nll_nats.mean()) if text else None
        assert metric["perplexities"][index] == (own and pytest.approx(own, rel=1e-9))
    assert (accuracy, metric["tokens"]) == (1.0, figures.tokens)
    alone = pseudo_log_likelihoods(model, CHOICES[1]["choices"], within_word=True)
    np.testing.assert_allclose(scores[1], alone, rtol=1e-9)


def test_a_continuation_is_scored_token_by_token_given_its_context(lm):
    context, continuation = "The capital of France", " is certainly Paris."
    vocabulary, text = lm.model.vocabulary, context + continuation
    encoding = vocabulary.encode(text)
    ids, total = np.array(encoding.ids), 0.0
    for col in np.flatnonzero(~np.array(encoding.special)):
        if encoding.spans[col].end > len(context):
            seen = ids[None].copy()
            seen[0, col] = vocabulary.mask_id
            logits = lm.model.logits_at(seen, np.ones_like(seen), np.array([0]), np.array([col]))
            total -= nll_nats(logits, ids[[col]])[0]
    ((result, best), (nothing, _)) = ask(lm, (context, continuation), (context, " "))
    assert result == pytest.approx(total, abs=1e-4)
    assert (best, nothing) == (False, -np.inf)


def test_long_contexts_lose_their_beginning_and_long_texts_are_cut(lm, monkeypatch):
    monkeypatch.setattr(lm.model, "max_tokens", 12)
    long, short = ask(lm, ("one two " * 20 + "The cat sat on the", " mat."), ("x " * 5, " mat."))
    assert [long] == ask(lm, ("two one two The cat sat on the", " mat.")) != [short]
    texts = [SimpleNamespace(args=(text,)) for text in ("a cat sat " * 12, "Rain fell.", "")]
    several, one, none = lm.loglikelihood_rolling(texts, disable_tqdm=True)
    assert several < one == pseudo_log_likelihoods(lm.model, ["Rain fell."])[0]
    assert none == 0
    with pytest.raises(TextError, match="is longer than 12 tokens of embedded"):
        ask(lm, ("", "a cat sat " * 12))


def test_what_a_masked_model_cannot_do_is_one_line(lm):
    with pytest.raises(OptionError, match="does not write texts on: choose tasks with output_type"):
        lm.generate_until([])
    with pytest.raises(OptionError, match="unknown model argument 'colour'; known: device, dtype"):
        harness.FillmaskLM(colour="red")
    with pytest.raises(OptionError, match="unknown device 'tpu'"):
        harness.FillmaskLM(device="tpu")
