"""`fillmask-ui predict` as its user calls it, alone and with a second model."""

import json
import math

import pytest

PARIS = "The capital of France is [MASK]."
TEXT = "The dog [MASK] at the [MASK]."
ASKED = ("--candidates", "cat,souvenir")


def test_json_has_the_documented_shape(fillmask):
    result = fillmask("predict", PARIS, "--json", "--top-k", "3", "--candidates", "paris,souvenirs")
    assert result.returncode == 0, result.stderr
    assert set(result.json) == {"text", "model", "signature", "masks", "joint"}
    (mask,) = result.json["masks"]
    assert set(mask) == {"position", "entropy_nats", "candidates", "scored"}
    assert [c["rank"] for c in mask["candidates"]] == [1, 2, 3]
    keys = {"rank", "token_id", "token", "word", "probability", "nll_nats"}
    for candidate in mask["candidates"]:
        assert set(candidate) == keys
        assert math.exp(-candidate["nll_nats"]) == pytest.approx(candidate["probability"])
    paris, souvenirs = mask["scored"]
    assert paris["word"] == "paris"
    assert paris["rank"] >= 1
    assert souvenirs["nll_nats"] == pytest.approx(sum(p["nll_nats"] for p in souvenirs["parts"]))


def test_several_texts_give_one_object_a_line_and_a_bad_one_costs_only_itself(fillmask):
    result = fillmask("predict", PARIS, "no mask here", "A [MASK] sang.", "--json")
    assert result.returncode == 2
    texts = [json.loads(line)["text"] for line in result.stdout.splitlines()]
    assert texts == [PARIS, "A [MASK] sang."]
    assert "text 2: the text has no mask" in result.stderr


def test_file_and_standard_input_agree(fillmask, tmp_path):
    lines = f"{PARIS}\n\nThe ___ sang 😀.\nשלום [MASK]\n"
    path = tmp_path / "texts.txt"
    path.write_text(lines, encoding="utf-8-sig")
    from_file = fillmask("predict", "--file", str(path), "--json")
    from_pipe = fillmask("predict", "--file", "-", "--json", stdin=lines)
    assert from_file.returncode == from_pipe.returncode == 0
    assert from_file.stdout == from_pipe.stdout
    texts = [json.loads(line)["text"] for line in from_pipe.stdout.splitlines()]
    assert texts == [PARIS, "The [MASK] sang 😀.", "שלום [MASK]"]
    broken = fillmask("predict", "--file", "-", "--json", stdin=b"fine [MASK]\n\xff\xfe [MASK]\n")
    assert broken.returncode == 1
    assert "line 2 of standard input is not UTF-8" in broken.stderr
    assert broken.json["text"] == "fine [MASK]"


def test_tables_show_texts_raw_and_losses_in_either_unit(fillmask):
    text = "[bold]A[/bold] [MASK] [red]sang"  # never read as markup
    nats = fillmask("predict", text, "--top-k", "1").stdout
    bits = fillmask("predict", text, "--top-k", "1", "--bits").stdout
    assert text in nats
    last = [float(out.split("NLL")[1].split("│")[-2]) for out in (nats, bits)]
    assert last[1] == pytest.approx(last[0] / math.log(2), abs=1e-3)


def test_models_lists_the_embedded_ones(fillmask):
    listed = [json.loads(line) for line in fillmask("models", "--json").stdout.splitlines()]
    assert {"embedded", "embedded:int8"} <= {model["reference"] for model in listed}
    assert "embedded:int8" in fillmask("models").stdout


def test_two_models_say_what_each_alone_says(fillmask):
    two = ("predict", TEXT, "--model", "embedded:int8", "--baseline", "embedded", *ASKED)
    compared, shown = fillmask(*two, "--json").json, fillmask(*two).stdout
    alone = [
        fillmask("predict", TEXT, "-m", name, "--json", "--top-k", "all", *ASKED).json
        for name in ("embedded", "embedded:int8")
    ]
    assert compared["joint"][0]["reference_nll_nats"] > 0
    assert "Reference: embedded, candidate: embedded:int8" in shown
    assert "All masks together" in shown
    for found, own, other in zip(compared["masks"], *(a["masks"] for a in alone), strict=True):
        assert found["reference_entropy_nats"] == own["entropy_nats"]
        assert found["candidate_entropy_nats"] == other["entropy_nats"]
        ids = ({c["token_id"]: c for c in side["candidates"]} for side in (own, other))
        reference, candidate = ids
        for row in found["candidates"]:
            if row["reference_token_id"] is None:
                first, second = (
                    next(word for word in side["scored"] if word["word"] == row["word"])
                    for side in (own, other)
                )
            else:
                first = reference[row["reference_token_id"]]
                second = candidate[row["candidate_token_id"]]
            for name in ("probability", "nll_nats", "rank"):
                assert row[f"reference_{name}"] == first[name]
                assert row[f"candidate_{name}"] == second[name]
        best = [side["candidates"][0]["token_id"] for side in (own, other)]
        assert found["flipped"] == (best[0] != best[1])
        assert found["kl_nats"] > found["js_nats"] > 0
        assert f"KL(reference || candidate) {found['kl_nats']:.4f}" in shown
        (cat,) = (row for row in found["candidates"] if row["word"] == "cat")
        assert f"{cat['reference_rank']:,} → {cat['candidate_rank']:,}" in shown
        assert ("first word flipped:" if found["flipped"] else "both say") in shown
    for role, name in (("reference", "embedded"), ("candidate", "embedded:int8")):
        assert compared[role] == fillmask("predict", TEXT, "-m", name, "--json", *ASKED).json


def test_the_earlier_spelling_means_what_it_meant_and_warns(fillmask):
    now = fillmask("predict", TEXT, "-m", "embedded:int8", "--baseline", "embedded", "--json")
    before = fillmask("predict", TEXT, "--compare", "embedded:int8", "--json")
    assert before.json == now.json
    assert "write --model embedded:int8 --baseline embedded" in before.stderr
    assert "warning" not in now.stderr


def test_models_with_different_tokenizers(fillmask, tiny_models):
    other = str(tiny_models.folder("roberta"))
    result = fillmask("predict", TEXT, "--baseline", other, "--json", *ASKED)
    assert result.returncode == 0, result.stderr
    assert result.json["by_word"]
    assert {mask["kl_nats"] for mask in result.json["masks"]} == {None}
    shown = fillmask("predict", TEXT, "--baseline", other).stdout
    assert "have different tokenizers" in shown
    assert "KL" not in shown.split("Mask 1 of 2")[1]


def test_a_text_that_one_of_them_cannot_take_costs_only_itself(fillmask, tiny_models):
    long, short = "word " * 200 + "[MASK]", "A [MASK]."
    other = str(tiny_models.folder("bert"))
    result = fillmask("predict", long, short, "--baseline", other, "--json")
    assert result.returncode == 2
    assert f"text 1: {other}: the text has" in result.stderr
    assert result.json["candidate"]["text"] == short
