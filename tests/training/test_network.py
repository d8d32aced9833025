"""Packed rows: each segment alone, in every architecture that allows it."""

import pytest
import torch

from fillmask_ui.training.network import (
    HiddenPositionModel,
    SegmentForm,
)
from fillmask_ui.training.weights import load_weights, new_model

FAMILIES = ["bert", "roberta", "distilbert", "modernbert", "deberta-v2"]


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_has_an_attention_on_cuda(family, tokenizer, config_file, tmp_path):
    """Fused where transformers has it; DeBERTa has none."""
    model = new_model(config_file(family), tokenizer, "cuda")
    expected = "eager" if family == "deberta-v2" else "sdpa"
    assert model.config._attn_implementation == expected
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    assert load_weights(tmp_path, "cuda").model.config._attn_implementation == expected


@pytest.mark.parametrize("family", FAMILIES)
def test_packed_rows_give_the_loss_of_segments_alone(family, tokenizer, config_file):
    """Reference: the plain forward pass of transformers on each segment by itself."""
    torch.manual_seed(0)
    model = new_model(config_file(family), tokenizer).eval()
    network = HiddenPositionModel(model)
    form = network.form
    # DeBERTa's positions are relative and its mask is a row's: it reads the row as one text.
    assert form.separate == (family != "deberta-v2")
    ids = torch.randint(5, len(tokenizer), (1, 30))
    segment = torch.tensor([[1] * 11 + [2] * 16 + [0] * 3])
    position = torch.tensor([[*range(11), *range(16), *range(3)]])
    rows, cols = torch.zeros(4, dtype=torch.long), torch.tensor([0, 7, 11, 26])
    with torch.no_grad():
        got = network.logits(ids, rows, cols, segment, position)
        if form.separate:
            alone = [
                model(input_ids=ids[:, :11]).logits[0],
                model(input_ids=ids[:, 11:27]).logits[0],
            ]
            expected = torch.cat(alone)[cols]
        else:
            seen = (segment > 0).long()
            expected = model(input_ids=ids, attention_mask=seen).logits[0, cols]
    torch.testing.assert_close(got, expected, atol=1e-4, rtol=1e-4)


def test_a_sliding_window_needs_its_own_mask(tokenizer, config_file):
    model = new_model(config_file("modernbert"), tokenizer)
    assert HiddenPositionModel(model).form == SegmentForm(True, 0, window=4)


def test_plain_form_hides_padding_only():
    segment = torch.tensor([[1, 1, 2, 0]])
    inputs = SegmentForm(separate=False).inputs(segment, torch.zeros_like(segment))
    assert inputs["attention_mask"].tolist() == [[1, 1, 1, 0]]
