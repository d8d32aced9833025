"""`fillmask-ui predict --compare`: both models as each alone says it."""

import json

import pytest

TEXT = "The dog [MASK] at the [MASK]."
ASKED = ("--candidates", "cat,souvenir")


@pytest.fixture
def compared(fillmask):
    return fillmask("predict", TEXT, "--compare", "embedded:int8", "--json", *ASKED)


def test_every_number_is_the_one_that_predict_prints_for_that_model_alone(fillmask, compared):
    assert compared.returncode == 0, compared.stderr
    alone = [
        fillmask("predict", TEXT, "-m", name, "--json", "--top-k", "all", *ASKED).json
        for name in ("embedded", "embedded:int8")
    ]
    for mask, own, other in zip(compared.json["masks"], *(a["masks"] for a in alone), strict=True):
        found = mask["compare"]
        assert found["model"] == "embedded:int8"
        assert found["entropy_nats"] == own["entropy_nats"]
        assert found["other_entropy_nats"] == other["entropy_nats"]
        one, two = ({c["token_id"]: c for c in side["candidates"]} for side in (own, other))
        for row in found["candidates"]:
            if row["token_id"] is None:
                first, second = (
                    next(word for word in side["scored"] if word["word"] == row["word"])
                    for side in (own, other)
                )
            else:
                first, second = one[row["token_id"]], two[row["other_token_id"]]
            for name in ("probability", "nll_nats", "rank"):
                assert row[name] == first[name]
                assert row[f"other_{name}"] == second[name]
        best = [side["candidates"][0]["token_id"] for side in (own, other)]
        assert found["flipped"] == (best[0] != best[1])
        assert found["kl_nats"] > found["js_nats"] > 0
    assert compared.json["joint_compare"][0]["nll_nats"] > 0


def test_the_rest_is_as_without_it(fillmask, compared):
    values = compared.json
    del values["joint_compare"]
    for mask in values["masks"]:
        del mask["compare"]
    assert values == fillmask("predict", TEXT, "--json", *ASKED).json


def test_the_same_model_twice(fillmask):
    (mask,) = fillmask("predict", "A [MASK].", "--compare", "embedded", "--json").json["masks"]
    found = mask["compare"]
    assert (found["kl_nats"], found["js_nats"], found["flipped"]) == (0, 0, False)
    assert all(c["probability"] == c["other_probability"] for c in found["candidates"])


def test_the_table_says_what_changes(fillmask, compared):
    result = fillmask("predict", TEXT, "--compare", "embedded:int8", *ASKED)
    assert result.returncode == 0, result.stderr
    assert "A: embedded, B: embedded:int8" in result.stdout
    for mask in compared.json["masks"]:
        found = mask["compare"]
        assert f"KL(A || B) {found['kl_nats']:.4f}" in result.stdout
        (cat,) = (row for row in found["candidates"] if row["word"] == "cat")
        assert f"{cat['rank']:,} → {cat['other_rank']:,}" in result.stdout
        story = "first word flipped:" if found["flipped"] else "both say"
        assert story in result.stdout
    assert "All masks together" in result.stdout


def test_models_with_different_tokenizers(fillmask, tiny_models):
    other = str(tiny_models.folder("roberta"))
    result = fillmask("predict", TEXT, "--compare", other, "--json", *ASKED)
    assert result.returncode == 0, result.stderr
    for mask in result.json["masks"]:
        assert mask["compare"]["by_word"]
        assert mask["compare"]["kl_nats"] is None
    shown = fillmask("predict", TEXT, "--compare", other).stdout
    assert "have different tokenizers" in shown
    assert "KL" not in shown.split("Mask 1 of 2")[1]


@pytest.mark.parametrize(
    ("arguments", "message", "code"),
    [
        ([TEXT, "--compare", "no/such/folder"], "no/such/folder", 1),
        ([TEXT, "--compare", ""], "", None),
        (["no mask", "--compare", "embedded:int8"], "embedded: the text has no mask", 2),
        ([TEXT, "--compare", "embedded", "-k", "0"], "1 to 100", 2),
    ],
)
def test_wrong_input_gets_a_message_and_a_code(fillmask, arguments, message, code):
    result = fillmask("predict", *arguments)
    assert result.returncode == code if code else result.returncode in (1, 2)
    assert message in result.stderr and result.stderr.startswith("error: ")
    assert "Traceback" not in result.stderr
    assert result.stdout == ""


def test_a_text_that_one_of_them_cannot_take_costs_only_itself(fillmask, tiny_models):
    long, short = "word " * 200 + "[MASK]", "A [MASK]."
    other = str(tiny_models.folder("bert"))
    result = fillmask("predict", long, short, "--compare", other, "--json")
    assert result.returncode == 2
    assert f"text 1: {other}: the text has" in result.stderr
    assert json.loads(result.stdout)["text"] == short
