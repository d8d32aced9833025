"""`predict`, `layers`, `surprise`, `unmask` and `differ` as their user calls them."""

import json
import math

import pytest
from table_model import TableModel, log_softmax_at, sample_texts

from fillmask_ui import compare_sentence, fill, layers, load_model
from fillmask_ui.cli.predict import WINDOW_TEXTS, _filled
from fillmask_ui.comparing import divergence_search
from fillmask_ui.errors import TextError

PARIS = "The capital of France is [MASK]."
TEXT = "The dog [MASK] at the [MASK]."
MOON = "The cat sat on the moon."


def test_file_and_standard_input_agree(fillmask, tmp_path):
    lines = f"{PARIS}\n\nThe ___ sang 😀.\nשלום [MASK]\n"
    path = tmp_path / "texts.txt"
    path.write_text(lines, encoding="utf-8-sig")
    from_file = fillmask("predict", "--file", str(path), "--json")
    from_pipe = fillmask("predict", "--file", "-", "--json", stdin=lines)
    assert from_file.returncode == from_pipe.returncode == 0
    filled, piped = (
        [json.loads(line) for line in result.stdout.splitlines()]
        for result in (from_file, from_pipe)
    )
    assert [answer["text"] for answer in piped] == [PARIS, "The [MASK] sang 😀.", "שלום [MASK]"]
    for together, alone in zip(filled, piped, strict=True):  # to the rounding of float32
        assert together["text"] == alone["text"]
        pairs = zip(
            together["masks"][0]["candidates"], alone["masks"][0]["candidates"], strict=True
        )
        for candidate, expected in pairs:
            assert candidate["token_id"] == expected["token_id"]
            assert candidate["probability"] == pytest.approx(expected["probability"], rel=1e-4)
    broken = fillmask("predict", "--file", "-", "--json", stdin=b"fine [MASK]\n\xff\xfe [MASK]\n")
    assert broken.returncode == 1
    assert "line 2 of standard input is not UTF-8" in broken.stderr
    assert broken.json["text"] == "fine [MASK]"


def test_sentences_of_a_file_are_filled_together_in_order(fillmask, tmp_path):
    """Against `fill` of each alone, and torch's softmax of the model's tables."""
    model = TableModel(1)
    texts = [f"{text} the [MASK]" for text in sample_texts(160, seed=3)]
    texts[3], texts[70] = "no mask", "word " * 99 + "[MASK]"
    drawn = []
    choices = {"top_k": 2, "candidates": (), "joint": 0, "beam_width": 16}
    fillings = _filled(model, (drawn.append(text) or text for text in texts), WINDOW_TEXTS, choices)
    first = next(fillings)
    assert len(drawn) == WINDOW_TEXTS  # no more is read before the first answer
    together = [first, *fillings]
    calls = len(model.calls)
    for text, filling in zip(texts, together, strict=True):
        if text in (texts[3], texts[70]):
            with pytest.raises(TextError) as error:
                fill(model, text)
            assert str(filling) == str(error.value)
            continue
        (mask,) = filling.masks
        assert filling.encoding.ids == fill(model, text).encoding.ids
        best = mask.candidates[0]
        p = log_softmax_at(model, filling.encoding.ids, mask.position).exp().numpy()
        assert best.probability == pytest.approx(p.max(), rel=1e-6)
        assert best.token_id == p.argmax()
    assert calls < 60  # 158 where each is asked about alone
    path = tmp_path / "lines.txt"
    path.write_bytes(b"fine [MASK]\nno mask\n[MASK] fine\n\xff\xfe [MASK]\n")
    broken = fillmask("predict", "--file", path, "--json", "-k", "1")
    assert broken.returncode == 1
    assert [json.loads(line)["text"] for line in broken.stdout.splitlines()] == [
        "fine [MASK]",
        "[MASK] fine",
    ]
    assert "error: text 2: the text has no mask" in broken.stderr
    assert "is not UTF-8" in broken.stderr


def test_tables_show_texts_raw_and_losses_in_either_unit(fillmask):
    text = "[bold]A[/bold] [MASK] [red]sang"  # never read as markup
    nats = fillmask("predict", text, "--top-k", "1").stdout
    bits = fillmask("predict", text, "--top-k", "1", "--bits").stdout
    assert text in nats
    last = [float(out.split("NLL")[1].split("│")[-2]) for out in (nats, bits)]
    assert last[1] == pytest.approx(last[0] / math.log(2), abs=1e-3)


def test_the_table_names_words_figures_and_what_was_wanted(fillmask):
    nats, bits = (fillmask("surprise", "The ☃ [sat].", *more).stdout for more in ((), ("--bits",)))
    for expected in ("☃ (unknown)", "Most surprising: sat\n", "cannot spell them: ☃", "expected"):
        assert expected in nats
    totals = [float(out.split("Total ")[1].split()[0]) for out in (nats, bits)]
    assert totals[1] == pytest.approx(totals[0] / math.log(2), abs=1e-2)


def test_layers_are_those_of_python_and_the_last_is_predict(fillmask):
    arguments = (PARIS, "-k", "3", "--json")
    lens, predicted = fillmask("layers", *arguments).json, fillmask("predict", *arguments).json
    expected = layers(load_model("embedded"), PARIS, top_k=3).to_dict()
    assert lens == json.loads(json.dumps(expected))
    (mask,) = lens["positions"]
    assert mask["layers"][-1]["candidates"] == predicted["masks"][0]["candidates"]
    table = fillmask("layers", PARIS).stdout
    for layer in mask["layers"]:
        assert f"│ {layer['layer']:>5} │ {layer['entropy_nats']:14.3f} │" in table
    whole = fillmask("layers", "[b]The[/b] cat.").stdout
    assert "[b]The[/b] cat." in whole and "[CLS]" in whole and "Layer 6" in whole


def test_two_models_as_json_are_what_python_says(fillmask):
    pair = ("--model", "embedded:int8", "--baseline", "embedded")
    result = fillmask("surprise", MOON, *pair, "--json")
    assert result.returncode == 0, result.stderr
    expected = compare_sentence(load_model("embedded"), load_model("embedded:int8"), MOON)
    assert result.json == json.loads(json.dumps(expected.to_dict()))


def test_the_table_of_two_models(fillmask):
    same, bits = (
        fillmask("surprise", MOON, "--baseline", reference, *more).stdout
        for reference, more in (("embedded", ()), ("embedded:int8", ("--bits",)))
    )
    assert "Reference NLL (nats)" in same
    assert "Largest difference: none; the top word changed at 0 of 7" in same
    words = same.split("Mean loss per word: reference ")[1].split(" nats")[0].split(", candidate ")
    assert words[0] == words[1]
    assert "Pseudo-perplexity: reference " in bits
    assert "Reference NLL (bits)" in bits


LINES = ["The dog barked all night.", "She drank a cup of tea.", "The sun rises in the morning."]


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "lines.txt"
    path.write_text("\n".join(LINES), encoding="utf-8")
    return path


def test_a_merged_text_is_warned_of_before_any_figure(fillmask, tmp_path):
    """Fields that begin with a quotation mark, read as CSV: three lines become a text."""
    path = tmp_path / "merged.csv"
    path.write_text('id\ttext\n1\t"The cat sat\n2\ton the mat.\n3\tAnd then "\n4\tA dog ran.\n')
    metric = ("--metric", "pseudo-perplexity")
    warning = "warning: merged.csv, line 4: a text has a tab or line end inside, 'The cat sat\\n2"
    measured = fillmask("eval", "--dataset", path, *metric, "--json")
    assert measured.returncode == 0, measured.stderr
    assert measured.stderr.count(warning) == 1
    assert measured.json["notes"][0].startswith(warning.removeprefix("warning: "))
    searched = differ(fillmask, "--dataset", path, "--json")
    assert searched.stderr.count(warning) == 1
    apart = fillmask("eval", "--dataset", path, *metric, "--quoting", "none", "--json")
    assert "warning" not in apart.stderr
    assert apart.json["texts"] == 4
    assert measured.json["texts"] == 2


def differ(fillmask, *arguments):
    pair = ("--model", "embedded:int8", "--baseline", "embedded")
    return fillmask("differ", *pair, *arguments)


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
