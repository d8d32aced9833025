"""The Python API as a newcomer meets it: what functions take, what they refuse, what they print."""

import inspect
import logging
import subprocess
import sys

import pytest
from table_model import TableModel

import fillmask_ui as fm
from fillmask_ui.filling.prompt import filled_text

MASKED, PLAIN = "The opposite of hot is [MASK].", "The cat sat on the mat."
TEMPLATE = "The {opposite|end} of hot is [MASK]."  # for features: also a text with a mask
MODEL = TableModel(1)
# Functions that take a model -> how they are called with it.
CALLS = {
    "fill": lambda model: fm.fill(model, MASKED).to_dict(),
    "layers": lambda model: fm.layers(model, MASKED).to_dict(),
    "score_candidates": lambda model: fm.score_candidates(model, MASKED, ["cold"]),
    "occlude": lambda model: fm.occlude(model, MASKED),
    "surprisal": lambda model: fm.surprisal(model, PLAIN).to_dict(),
    "compare": lambda model: fm.compare(model, model, MASKED).to_dict(),
    "compare_sentence": lambda model: fm.compare_sentence(model, model, PLAIN).to_dict(),
    "divergent_sentences": lambda model: [
        search.to_dict() for search in fm.divergent_sentences(model, model, [PLAIN])
    ],
    "pair_masks": lambda model: fm.pair_masks(model, MASKED, MASKED).to_dict(),
    "evaluate": lambda model: fm.summarize(fm.evaluate(model, [PLAIN], candidate=model)).to_dict(),
    "pseudo_log_likelihoods": lambda model: fm.pseudo_log_likelihoods(model, [PLAIN]).tolist(),
}


def parameters(name):
    return [*inspect.signature(getattr(fm, name)).parameters]


def call_of(name):
    """How a function is called with a model; those of features take a text beside it."""
    if name in CALLS:
        return CALLS[name]

    def call(model):
        result = getattr(fm, name)(model, TEMPLATE)
        return [*result] if inspect.isgenerator(result) else result

    return call


FUNCTIONS = [
    name
    for name in fm.__all__
    if inspect.isfunction(getattr(fm, name)) and {"model", "reference"} & {*parameters(name)}
]


@pytest.mark.parametrize("name", sorted({*FUNCTIONS} - {"load_model", "compare_runs"}))
def test_a_reference_stands_for_its_model(name):
    call = call_of(name)
    if name in CALLS:
        assert call("embedded") == call(fm.load_model("embedded"))
    else:
        call("embedded")
    for wrong in (None, 7, PLAIN.encode(), [MODEL]):
        with pytest.raises(fm.ModelError, match=r"^a model was wanted, .*load_model") as caught:
            call(wrong)
        assert "\n" not in str(caught.value)
    with pytest.raises(fm.ModelError, match="no such model"):
        call("/no/such folder")


def test_a_reference_is_loaded_once():
    assert fm.fill("embedded", MASKED).signature is fm.fill("embedded", MASKED).signature


def test_one_name_for_one_thing():
    """The reference comes before the candidate, candidate words are `candidates`, seeds are 42."""
    for name in fm.__all__:
        if not inspect.isfunction(getattr(fm, name)):
            continue
        names = parameters(name)
        assert "words" not in names and "baseline" not in names, name
        if {"reference", "candidate"} <= {*names}:
            assert names.index("reference") + 1 == names.index("candidate"), name
        seed = inspect.signature(getattr(fm, name)).parameters.get("seed")
        assert seed is None or seed.default == 42, name
    assert fm.EvaluationConfig().seed == 42


def test_bad_values_are_value_errors_too():
    for call in (
        lambda: fm.fill(MODEL, "the [MASK]", top_k=0),
        lambda: fm.fill(MODEL, "no mask"),
        lambda: fm.EvaluationConfig("suffix", suffix_tokens=0),
    ):
        with pytest.raises(fm.FillmaskError) as caught:
            call()
        assert isinstance(caught.value, ValueError)


def test_an_unknown_name_is_answered_by_the_one_most_like_it():
    with pytest.raises(ValueError, match="did you mean 'pseudo-perplexity'"):
        fm.EvaluationConfig("perplexity")


def test_the_errors_are_public():
    names = [name for name in fm.__all__ if name.endswith("Error")]
    assert sorted(names) == [
        "DataError",
        "FillmaskError",
        "ModelError",
        "ModelOutputError",
        "NetworkError",
        "OptionError",
        "TextError",
    ]
    assert all(issubclass(getattr(fm, name), fm.FillmaskError) for name in names)


def test_an_unknown_option_of_a_metric_is_answered_with_the_known_ones():
    message = "no metric has the option 'suffix'; those of suffix: suffix_tokens"
    with pytest.raises(TypeError, match=message):
        fm.EvaluationConfig("suffix", suffix=3)


def test_what_a_prompt_shows_is_one_line():
    model, config = fm.load_model(), fm.EvaluationConfig("uniform")
    rows = fm.Rows(fm.evaluate(MODEL, ["the cat sat on the mat ."] * 9, config))
    pair = fm.evaluate(MODEL, ["the cat sat ."], candidate=TableModel(2))
    summary = fm.summarize(rows)
    records = [
        *(rows, rows[0], summary, summary.model, fm.summarize(pair)),
        fm.compare(model, model, MASKED),
        fm.compare(model, model, MASKED).masks[0],
        *(fm.compare_sentence(model, model, PLAIN), fm.surprisal(model, PLAIN)),
        *(fm.layers(model, MASKED), fm.occlude(model, MASKED)),
        *fm.divergent_sentences(model, model, [PLAIN]),
    ]
    for record in records:
        assert repr(record).startswith(type(record).__name__ + "(")
        assert len(repr(record)) < 160, repr(record)
        assert "\n" not in repr(record)
    assert repr(model) == "OnnxMaskedLM('embedded', float16, 22,400 tokens)"
    assert repr(model.vocabulary) == "TokenizerVocabulary(22,400 tokens, mask '[MASK]')"
    first = fm.fill(model, MASKED).masks[0].candidates[0]
    shown = f"Filling({MASKED!r}, 1 mask: {first.word!r} {first.probability:.1%})"
    assert repr(fm.fill(model, MASKED)) == shown


def test_a_model_is_called_as_a_pipeline_is():
    model = fm.load_model()
    assert model(MASKED, top_k=3) == fm.fill(model, MASKED, top_k=3)
    assert model([MASKED]) == fm.fill(model, [MASKED])


def test_records_are_those_of_a_pipeline():
    """Keys and values as transformers' `FillMaskPipeline.postprocess` has them, all in one list."""
    filling = fm.fill(fm.load_model(), "The [MASK] sat on the [MASK].", top_k=30)
    records = filling.to_records()
    listed = [candidate for mask in filling.masks for candidate in mask.candidates]
    assert [record["token"] for record in records] == [one.token_id for one in listed]
    assert [record["score"] for record in records] == [one.probability for one in listed]
    assert [record["mask"] for record in records] == [0] * 30 + [1] * 30
    vocabulary = fm.load_model().vocabulary
    for record in records:
        position = filling.masks[record["mask"]].position
        token_ids = {position: record["token"]}
        assert record["sequence"] == filled_text(filling.encoding, vocabulary, token_ids)


IMPORTS = """
import logging
import datasets, huggingface_hub, onnxruntime, tokenizers, transformers

def levels():
    loggers = [logging.getLogger(), *map(logging.getLogger, logging.root.manager.loggerDict)]
    return {own.name: (own.level, own.handlers, own.disabled, own.filters) for own in loggers}

before = levels()
import fillmask_ui, fillmask_ui.models.hub_models, fillmask_ui.texts.hub
for name in fillmask_ui.__all__:
    getattr(fillmask_ui, name)
fillmask_ui.available_models()
fillmask_ui.load_model("embedded:torch")
after = levels()
assert all(after[name] == values for name, values in before.items()), (before, after)
assert logging.root.manager.disable == 0
"""


def test_other_libraries_log_as_before():
    """Neither an import nor a model changes their loggers."""
    done = subprocess.run([sys.executable, "-c", IMPORTS], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_what_loading_does_goes_to_the_log(caplog):
    with caplog.at_level(logging.DEBUG, logger="fillmask_ui"):
        fm.load_model("embedded")
    assert "reading the weights of embedded" in caplog.messages
