"""`fillmask-ui surprise` as its user calls it."""

import json
import math

import pytest

from fillmask_ui import compare_sentence, load_model

MOON = "The cat sat on the moon."


def test_the_table_names_words_figures_and_what_was_wanted(fillmask):
    nats, bits = (fillmask("surprise", "The ☃ [sat].", *more).stdout for more in ((), ("--bits",)))
    for expected in ("☃ (unknown)", "Most surprising: sat\n", "cannot spell them: ☃", "wanted"):
        assert expected in nats
    totals = [float(out.split("Total ")[1].split()[0]) for out in (nats, bits)]
    assert totals[1] == pytest.approx(totals[0] / math.log(2), abs=1e-2)


def test_two_models_as_json_are_what_python_says(fillmask):
    pair = ("--model", "embedded:int8", "--baseline", "embedded")
    result = fillmask("surprise", MOON, *pair, "--json")
    assert result.returncode == 0, result.stderr
    expected = compare_sentence(load_model("embedded"), load_model("embedded:int8"), MOON)
    assert result.json == json.loads(json.dumps(expected.to_dict()))
    # Either side is what that model alone says, to the last digit.
    alone = [fillmask("surprise", MOON, "--json", "-m", name).json for name in pair[3::-2]]
    assert [result.json["reference"], result.json["candidate"]] == alone
    for both, *sides in zip(result.json["words"], *(own["words"] for own in alone), strict=True):
        reference, candidate = (own["nll_nats"] for own in sides)
        assert both["reference_nll_nats"] == reference
        assert both["candidate_nll_nats"] == candidate
        assert both["difference_nats"] == candidate - reference


def test_the_table_of_two_models(fillmask):
    same, bits = (
        fillmask("surprise", MOON, "--baseline", reference, *more).stdout
        for reference, more in (("embedded", ()), ("embedded:int8", ("--bits",)))
    )
    assert "Reference NLL (nats)" in same
    assert "Largest difference: The +0.0000; the best word flipped at 0 of 7" in same
    words = same.split("Mean loss a word: reference ")[1].split(" nats")[0].split(", candidate ")
    assert words[0] == words[1]
    assert "Pseudo-perplexity: reference " in bits
    assert "Reference NLL (bits)" in bits
