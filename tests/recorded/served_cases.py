"""What browsers ask of the page: group -> case -> tab, function and the values sent.

A group is one recorded file. Those with `embedded` in their name ask the shipped model, all
others the models of the workshop.
"""

from typing import Any

Case = tuple[str, str, Any]

ONE = "The cat sat on the [MASK]."
TWO = "The [MASK] sat on the [MASK]."
THREE = "A [MASK] dog ran from the [MASK] to the [MASK]."
NONE = "The cat sat on the table and looked at the bird."
FRANCE = "The capital of France is [MASK]."
BOILED = "She drinks a cup of tea in the morning."
HIDDEN = {"text": TWO, "base": TWO, "hidden": ["walker", "table"]}
NOISY, LETTERS, MISSING = ({"compare": name} for name in ("noisy", "letters", "./missing"))
EMBEDDED = {"model": "embedded", "top_k": 4}
BROKEN = {
    "text": ONE,
    "top_k": "many",
    "unit": "pints",
    "selected": -3,
    "base": 7,
    "hidden": "cat",
    "zoom": 3,
    "words": ["cat"],
    "run": 9,
    "action": "hide",
    "start": "x",
}


def explore(function: str, **cases: dict[str, Any]) -> dict[str, Case]:
    return {name: ("explore", function, values) for name, values in cases.items()}


def click(do: str, token: int = -1, key: str = "", **state: Any) -> dict[str, Any]:
    return {**HIDDEN, "top_k": 2, "action": {"do": do, "token": token, "key": key}, **state}


EXPLORE: dict[str, dict[str, Case]] = {
    "explore-answer": explore(
        "answer",
        one={"text": ONE, "top_k": 3},
        several={"text": THREE, "top_k": 2, "selected": 2},
        hidden={**HIDDEN, "top_k": 2, "unit": "bits", "zoom": 10},
        words={"text": ONE, "top_k": 2, "words": "cat, unhappiness, [MASK], Zürich"},
        other_model={"text": "A ___ and a <mask>.", "model": "letters", "top_k": 2},
    ),
    "explore-clicks": explore(
        "answer",
        hide=click("hide", 3),
        restore=click("restore", 0),
        choose=click("choose", 1),
        fill=click("fill", key="1:42"),
        fill_all=click("fill", key="all:30,42"),
        wrong_key=click("fill", key="7:99999"),
        older={**HIDDEN, "action": {"do": "hide", "token": 3, "version": "older"}},
    ),
    "explore-compared": explore(
        "compared",
        noisy={**HIDDEN, **NOISY, "top_k": 3},
        by_probability={**HIDDEN, **NOISY, "top_k": 3, "by": "probability", "zoom": 10},
        letters={**LETTERS, "text": ONE, "top_k": 3, "words": "walked, [MASK]", "unit": "bits"},
    ),
    "explore-downloads": explore(
        "download",
        csv={**HIDDEN, "label": "CSV", "top_k": 2},
        json={"text": ONE, "label": "JSON", "top_k": 2, "words": "walked"},
        whole={"text": ONE, "label": "CSV, all tokens"},
        compared_csv={**HIDDEN, **NOISY, "label": "CSV", "top_k": 2},
        compared_json={**LETTERS, "text": ONE, "label": "JSON", "top_k": 2},
    ),
    "explore-joint": explore(
        "joint",
        two={"text": TWO},
        three={"text": THREE, "unit": "bits"},
        compared={"text": TWO, **NOISY},
        other_tokenizer={"text": TWO, **LETTERS},
    ),
    "explore-losses": explore(
        "losses",
        hidden=HIDDEN,
        asked={"text": TWO, "words": "cat", "unit": "bits"},
    ),
    "explore-surprise": explore(
        "surprise",
        sentence={"text": NONE},
        rest={"text": NONE, "start": 7, "unit": "bits"},
        unknown={"text": "The жёлтый cat sat."},
    ),
    "explore-apart": explore(
        "apart",
        noisy={"text": NONE, **NOISY},
        letters={"text": "The old cat sat quickly.", **LETTERS, "unit": "bits"},
        loss_of_a={"text": NONE, **NOISY, "tint": "a", "start": 8},
    ),
    "explore-mattered": explore(
        "mattered",
        one={"text": ONE},
        hidden={**HIDDEN, "selected": 1, "unit": "bits"},
    ),
    "explore-pair": explore(
        "pair",
        two={"text": ONE, "other": "The dog sat on the [MASK].", "top_k": 3},
        words={
            **HIDDEN,
            "other": "A [MASK] ran to the [MASK].",
            "selected": 1,
            "words": "walked, [MASK]",
            "unit": "bits",
            "top_k": 2,
        },
    ),
    "explore-parting": explore(
        "parting",
        own={**NOISY, "sentences": [NONE, "Too short.", "A red cat and a [MASK] dog."]},
        letters={**LETTERS, "sentences": [NONE], "unit": "bits"},
        by_rank={**NOISY, "sentences": [NONE], "order": "rank", "bin": 3},
    ),
    "explore-guesses": {
        **explore(
            "guesses",
            counted={"guesses": "table 3, river 2\nTable, unhappiness"},
            percent={"guesses": "table 60%\nriver 30%"},
            blank={"text": ONE, "guesses": " "},
        ),
        **explore(
            "guess",
            hidden={**HIDDEN, "selected": 1, "guesses": "table 3, river 2, walker"},
            truth={"text": ONE, "truth": "river", "guesses": "table 60%", "unit": "bits"},
            no_truth={"text": ONE, "guesses": "table 3"},
        ),
    },
    "explore-embedded": {
        **explore(
            "answer",
            one={**EMBEDDED, "text": FRANCE, "words": "Paris, Timbuktu"},
            two={**EMBEDDED, "text": TWO, "selected": 1},
        ),
        **explore("joint", joint={**EMBEDDED, "text": TWO}),
        **explore("surprise", surprise={**EMBEDDED, "text": BOILED}),
        **explore("mattered", mattered={**EMBEDDED, "text": FRANCE, "selected": 0}),
        **explore("layers", layers={**EMBEDDED, "text": FRANCE}, layers_refused={"text": ONE}),
        **explore("compared", compared={**EMBEDDED, "text": FRANCE, **NOISY}),
        **explore("parting", parting={"model": "embedded", **NOISY, "sentences": [NONE]}),
        **explore("pair", pair={**EMBEDDED, "text": FRANCE, "other": FRANCE.replace("F", "G")}),
    },
}

PLAYED = {"A_order": "entropy", "A_max_steps": "3", "A_remask": "1", "B_max_steps": "1"}


def unmask(function: str, **cases: dict[str, Any]) -> dict[str, Case]:
    return {name: ("unmask", function, values) for name, values in cases.items()}


def decoding(**values: str) -> dict[str, Any]:
    return {"model": "table", "values": {"text": THREE, **PLAYED, **values}}


UNMASK: dict[str, dict[str, Case]] = {
    "unmask-figure": unmask(
        "figure",
        both=decoding(both="1"),
        one=decoding(),
        prompt=decoding(source="prompt", prefix="The old cat", suffix=".", new_tokens="3"),
        length=decoding(source="length", length="4", A_order="left_to_right"),
        threshold=decoding(A_max_steps="", A_threshold="1.5", A_remask="0"),
        drawn=decoding(A_order="none", A_temperature="1.3", A_top_k="9", A_seed="5"),
    ),
    "unmask-cells": {
        **unmask(
            "cell",
            first={**decoding(), "side": "A", "step": 1, "position": 2},
        ),
        **unmask(
            "history",
            history={**decoding(), "side": "B"},
        ),
    },
    "unmask-embedded": unmask("figure", plain={"model": "embedded", "values": {"both": "1"}}),
}
