"""`fillmask-ui differ` as its user calls it."""

import json

import pytest

from fillmask_ui import divergent_sentences, load_model
from fillmask_ui.comparing import divergence_search
from fillmask_ui.records import Example

LINES = ["The dog barked all night.", "She drank a cup of tea.", "The sun rises in the morning."]


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "lines.txt"
    path.write_text("\n".join(LINES), encoding="utf-8")
    return path


def differ(fillmask, *arguments):
    pair = ("--model", "embedded:int8", "--baseline", "embedded")
    return fillmask("differ", *pair, *arguments)


def test_json_is_what_python_says(fillmask, file):
    options = ("--no-shuffle", "--words", "3", "--most", "2")
    result = differ(fillmask, "--dataset", file, *options, "--json")
    assert result.returncode == 0, result.stderr
    pair = [load_model(name) for name in ("embedded", "embedded:int8")]
    texts = [Example(number, line) for number, line in enumerate(LINES)]
    *_, search = divergent_sentences(*pair, texts, words=3, most=2)
    expected = json.loads(json.dumps(search.to_dict()))
    named = [{"model": m.signature.name, "signature": str(m.signature)} for m in pair]
    assert result.json == expected | {"reference": named[0], "candidate": named[1]}
    assert [*expected] == ["looked", "left_out", "words", "parted", "flipped", "best"]
    assert (expected["looked"], expected["words"], len(expected["best"])) == (3, 9, 2)
    # The numbers are those that `predict` gives of each model by itself.
    best = result.json["best"][0]
    for name, mark in (("embedded", "reference_"), ("embedded:int8", "candidate_")):
        word = ("--candidates", best["word"], "--top-k", "1")
        (mask,) = fillmask("predict", best["masked"], "-m", name, *word, "--json").json["masks"]
        assert best[f"{mark}first"] == mask["candidates"][0]
        assert best[f"{mark}nll_nats"] == mask["scored"][0]["nll_nats"]


def test_the_table_marks_the_hidden_word(fillmask, file):
    nats, bits = (differ(fillmask, "--dataset", file, *more) for more in ((), ("--bits",)))
    best = differ(fillmask, "--dataset", file, "--json").json["best"][0]
    start, end = best["start"], best["end"]
    assert f"{best['text'][:start]}[{best['word']}]{best['text'][end:]}" in nats.stdout
    assert f"{best['kl_nats']:.4f}" in nats.stdout
    assert "KL (bits)" in bits.stdout and "of 3 sentences (17 words hidden)" in bits.stdout


def test_stopped_it_shows_what_it_has_found(fillmask, file, monkeypatch):
    look, calls = divergence_search.look, []

    def interrupted(*arguments, **options):
        calls.append(arguments)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return look(*arguments, **options)

    monkeypatch.setattr(divergence_search, "look", interrupted)
    result = differ(fillmask, "--dataset", file)
    assert result.returncode == 130
    assert "of 2 sentences" in result.stdout
    assert "stopped after 2 sentences" in result.stderr
