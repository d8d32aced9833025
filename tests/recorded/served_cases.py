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
SHELL, STOPPED = "20260102-101500-table-cross-entropy", "20260103-111500-table-pseudo-perplexity"
CAT = {"run": STOPPED, "example": "18", "token": "2", "top_k": 3}
FRIENDS = {"run": SHELL, "example": "32", "token": "8", "top_k": 3}


def explore(function: str, **cases: dict[str, Any]) -> dict[str, Case]:
    return {name: ("explore", function, values) for name, values in cases.items()}


def click(do: str, token: int = -1, key: str = "", **state: Any) -> dict[str, Any]:
    return {**HIDDEN, "top_k": 2, "action": {"do": do, "token": token, "key": key}, **state}


EXPLORE: dict[str, dict[str, Case]] = {
    "explore-answer": explore(
        "answer",
        blank={"text": "  "},
        one={"text": ONE, "top_k": 3},
        several={"text": THREE, "top_k": 2, "selected": 2},
        hidden={**HIDDEN, "top_k": 2, "unit": "bits", "zoom": 10},
        words={"text": ONE, "top_k": 2, "words": "cat, unhappiness, [MASK], Zürich"},
        no_mask={"text": NONE},
        unknown={"text": "Жёлтый [MASK] лист"},
        too_long={"text": "cat " * 60 + "[MASK]"},
        far_too_long={"text": "cat " * 20_000},
        no_model={"text": ONE, "model": "./missing"},
        other_model={"text": "A ___ and a <mask>.", "model": "letters", "top_k": 2},
        broken=BROKEN,
    ),
    "explore-clicks": explore(
        "answer",
        hide=click("hide", 3),
        restore=click("restore", 0),
        choose=click("choose", 1),
        fill=click("fill", key="1:42"),
        fill_all=click("fill", key="all:30,42"),
        wrong_key=click("fill", key="7:99999"),
        no_such=click("dance", 1),
        older={**HIDDEN, "action": {"do": "hide", "token": 3, "version": "older"}},
    ),
    "explore-as-in-the-run": explore(
        "replay",
        as_run=CAT,
        alone={**CAT, "alone": True, "unit": "bits"},
        side_b={**CAT, "side": "B", "compare": "table"},
        of_cross_entropy=FRIENDS,
        gone={**CAT, "run": "gone", "text": "a [MASK]"},
        not_hidden={**FRIENDS, "token": "2", "text": "a [MASK]"},
    ),
    "explore-compared": explore(
        "compared",
        noisy={**HIDDEN, **NOISY, "top_k": 3},
        by_probability={**HIDDEN, **NOISY, "top_k": 3, "by": "probability", "zoom": 10},
        letters={**LETTERS, "text": ONE, "top_k": 3, "words": "walked, [MASK]", "unit": "bits"},
        missing={**MISSING, "text": ONE},
        no_mask={**NOISY, "text": NONE},
        alone={**FRIENDS, **NOISY, "alone": True, "text": ONE},
    )
    | explore(
        "both_replayed",
        of_run={**FRIENDS, **NOISY},
        of_run_letters={**CAT, **LETTERS},
        of_run_other={**FRIENDS, **LETTERS},
    ),
    "explore-downloads": explore(
        "download",
        csv={**HIDDEN, "label": "CSV", "top_k": 2},
        json={"text": ONE, "label": "JSON", "top_k": 2, "words": "walked"},
        whole={"text": ONE, "label": "CSV, all tokens"},
        compared_csv={**HIDDEN, **NOISY, "label": "CSV", "top_k": 2},
        compared_json={**LETTERS, "text": ONE, "label": "JSON", "top_k": 2},
        no_mask={"text": NONE, "label": "CSV"},
        many_masks={"text": "[MASK] " * 17, "label": "CSV, all tokens"},
        no_such={"text": ONE, "label": "PDF"},
    ),
    "explore-joint": explore(
        "joint",
        two={"text": TWO},
        three={"text": THREE, "unit": "bits"},
        one={"text": ONE},
        compared={"text": TWO, **NOISY},
        other_tokenizer={"text": TWO, **LETTERS},
        blank={"text": ""},
    ),
    "explore-losses": explore(
        "losses",
        hidden=HIDDEN,
        asked={"text": TWO, "words": "cat", "unit": "bits"},
        no_mask={"text": NONE},
        broken=BROKEN,
    ),
    "explore-surprise": explore(
        "surprise",
        sentence={"text": NONE},
        rest={"text": NONE, "start": 7, "unit": "bits"},
        unknown={"text": "The жёлтый cat sat."},
        too_long={"text": "cat " * 60},
        broken=BROKEN,
    ),
    "explore-apart": explore(
        "apart",
        noisy={"text": NONE, **NOISY},
        letters={"text": "The old cat sat quickly.", **LETTERS, "unit": "bits"},
        loss_of_a={"text": NONE, **NOISY, "tint": "a", "start": 8},
        missing={"text": NONE, **MISSING},
    ),
    "explore-mattered": explore(
        "mattered",
        one={"text": ONE},
        hidden={**HIDDEN, "selected": 1, "unit": "bits"},
        no_mask={"text": NONE},
        broken=BROKEN,
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
        blank={"text": ONE},
        no_mask={"text": ONE, "other": NONE},
        nothing_hidden={"text": NONE, "other": ONE},
        other_count={"text": ONE, "other": TWO},
        same={"text": ONE, "other": ONE},
    ),
    "explore-parting": explore(
        "parting",
        own={**NOISY, "sentences": [NONE, "Too short.", "A red cat and a [MASK] dog."]},
        letters={**LETTERS, "sentences": [NONE], "unit": "bits"},
        by_rank={**NOISY, "sentences": [NONE], "order": "rank", "bin": 3},
        no_second={"sentences": [NONE]},
        missing={**MISSING, "sentences": [NONE]},
    ),
    "explore-guesses": {
        **explore(
            "guesses",
            counted={"guesses": "table 3, river 2\nTable, unhappiness"},
            percent={"guesses": "table 60%\nriver 30%"},
            wrong={"guesses": "table 60%, river 2"},
            blank={"text": ONE, "guesses": " "},
        ),
        **explore(
            "guess",
            hidden={**HIDDEN, "selected": 1, "guesses": "table 3, river 2, walker"},
            truth={"text": ONE, "truth": "river", "guesses": "table 60%", "unit": "bits"},
            no_truth={"text": ONE, "guesses": "table 3"},
            no_mask={"text": NONE, "guesses": "table 3"},
            no_guess={"text": ONE, "truth": "river"},
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
        no_mask=decoding(text=NONE),
        wrong_number=decoding(A_max_steps="0"),
        wrong_kind=decoding(A_temperature="warm"),
        wrong_length=decoding(source="length", length="101"),
        many=decoding(text="[MASK] " * 101),
        no_model={"model": "./missing", "values": {}},
        broken={"values": [1]},
    ),
    "unmask-cells": {
        **unmask(
            "cell",
            first={**decoding(), "side": "A", "step": 1, "position": 2},
            last_of_b={**decoding(), "side": "B", "step": 1, "position": 9},
            no_step={**decoding(), "step": 99, "position": 2},
            no_number={**decoding(), "step": "x", "position": 2},
            wrong={**decoding(A_top_k="0"), "step": 1, "position": 2},
        ),
        **unmask(
            "history",
            history={**decoding(), "side": "B"},
            history_wrong=decoding(A_top_p="7"),
        ),
    },
    "unmask-embedded": unmask("figure", plain={"model": "embedded", "values": {"both": "1"}}),
}
