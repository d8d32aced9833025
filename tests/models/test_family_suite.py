"""Every family that transformers maps to a masked language model: equal to it, or refused."""

from pathlib import Path

import numpy as np
import pytest
from all_families import ONE_LENGTH, REFUSED, TEXTS, make_family
from models.test_padding import differ, one_by_one
from tiny_models import batch_of

from fillmask_ui.errors import ModelError
from fillmask_ui.models import load_model
from fillmask_ui.models import runtime_model as sharing


def outcome(folder: Path) -> str:
    """How a model answers: `equal`, `equal, by length`, what refuses it, or what is wrong."""
    try:
        model = load_model(folder, runtime="torch")
    except ModelError as error:
        return str(error).replace(str(folder), "it")
    batch = batch_of(model.vocabulary, TEXTS)
    expected = one_by_one(folder, batch)
    alone = [model.logits_at(*batch_of(model.vocabulary, [text])) for text in TEXTS]
    # Guesses far from uniform, else little would be compared.
    if not np.abs(expected).max() > 1:
        return "its logits are too small"
    errors = differ(np.concatenate(alone), expected), differ(model.logits_at(*batch), expected)
    if not max(errors) < 1e-5:
        return "differs by {:.2g} alone and by {:.2g} in a batch".format(*errors)
    by_length = sharing.SHARING[sharing.ONE_LENGTH] in model.signature.notes
    return "equal, by length" if by_length else "equal"


@pytest.mark.slow
def test_every_family_equals_transformers_or_is_refused_in_a_line(tmp_path):
    """Reference: the model of transformers, each text by itself, at all its masks."""
    from transformers.models.auto.modeling_auto import MODEL_FOR_MASKED_LM_MAPPING_NAMES

    outcomes = {}
    for family in MODEL_FOR_MASKED_LM_MAPPING_NAMES:
        make_family(family, tmp_path / family)
        outcomes[family] = outcome(tmp_path / family)
    print("\n".join(f"| {family} | {answer} |" for family, answer in sorted(outcomes.items())))
    for family, answer in outcomes.items():
        if family in REFUSED:
            assert REFUSED[family] in answer and "\n" not in answer
        else:
            assert answer == ("equal, by length" if family in ONE_LENGTH else "equal"), family
    assert set(outcomes) >= {*ONE_LENGTH, *REFUSED} and len(outcomes) > 45
