"""BERT's masks, and packed rows in which each segment is alone where an architecture allows it."""

import numpy as np
import pytest
import torch
from transformers import PreTrainedTokenizerFast

from fillmask_ui.features.train.hidden_position_loss import (
    HiddenPositionModel,
    SegmentForm,
    TokenHider,
)
from fillmask_ui.features.train.torch_weights import new_model


def wordpiece(tokens):
    """A tokenizer of these tokens behind `[PAD]`, `[CLS]` and `[MASK]`."""
    from tokenizers import Tokenizer, models

    vocabulary = {token: n for n, token in enumerate(["[PAD]", "[CLS]", "[MASK]", *tokens])}
    backend = Tokenizer(models.WordPiece(vocabulary, unk_token="[PAD]"))
    special = {"pad_token": "[PAD]", "cls_token": "[CLS]", "mask_token": "[MASK]"}
    return PreTrainedTokenizerFast(tokenizer_object=backend, **special)


def test_masks_follow_berts_proportions():
    """80/10/10 of the share, each within five standard deviations of the binomial."""
    hiding = TokenHider(wordpiece([f"w{n}" for n in range(997)]), 1000)
    ids = torch.randint(10, 1000, (200, 500), generator=torch.Generator().manual_seed(1))
    ids[:, 0] = 1
    hidden = hiding.hide(ids, 0.2, torch.Generator().manual_seed(2))
    count = len(hidden.rows)
    assert abs(count / (200 * 499) - 0.2) < 5 * (0.2 * 0.8 / (200 * 499)) ** 0.5
    assert not (hidden.cols == 0).any()
    assert torch.equal(ids[hidden.rows, hidden.cols], hidden.targets)
    shown = hidden.input_ids[hidden.rows, hidden.cols]
    masked = float((shown == 2).float().mean())
    kept = float((shown == hidden.targets).float().mean())
    assert abs(masked - 0.8) < 5 * (0.8 * 0.2 / count) ** 0.5
    assert abs(kept - 0.1) < 5 * (0.1 * 0.9 / count) ** 0.5
    untouched = torch.ones_like(ids, dtype=torch.bool)
    untouched[hidden.rows, hidden.cols] = False
    assert torch.equal(hidden.input_ids[untouched], ids[untouched])


def test_whole_words_are_hidden_whole():
    """Words of one, two and three pieces by hand; a piece behind a special token is a word."""
    pieces = {1: [10], 2: [11, 50], 3: [12, 51, 52], 0: [1, 53]}
    names = [f"##{n}" if 50 <= n < 60 else f"w{n}" for n in range(3, 100)]
    hiding = TokenHider(wordpiece(names), 100, whole_words=True)
    assert hiding.continues.nonzero().flatten().tolist() == list(range(50, 60))
    draw = np.random.default_rng(3)
    ids, words = [], []
    for _ in range(300):
        row = [(token, n) for n in range(200) for token in pieces[int(draw.integers(4))]]
        ids.append([token for token, _ in row[:200]])
        words.append([n for _, n in row[:200]])
    ids, words = torch.tensor(ids), torch.tensor(words)
    hidden = hiding.hide(ids, 0.2, torch.Generator().manual_seed(4))
    chosen = torch.zeros_like(ids, dtype=torch.bool)
    chosen[hidden.rows, hidden.cols] = True
    ordinary = ids != 1
    assert not chosen[~ordinary].any()
    together = (words[:, 1:] == words[:, :-1]) & ordinary[:, 1:] & ordinary[:, :-1]
    assert torch.equal(chosen[:, 1:][together], chosen[:, :-1][together])
    starts = ordinary.clone()
    starts[:, 1:] &= ~together
    share = float(chosen[starts].float().mean())
    assert abs(share - 0.2) < 5 * (0.2 * 0.8 / int(starts.sum())) ** 0.5
    # Each piece has its own 80/10/10, as in the code of BERT's authors.
    shown = hidden.input_ids[hidden.rows, hidden.cols]
    count = len(shown)
    assert abs(float((shown == 2).float().mean()) - 0.81) < 5 * (0.8 * 0.2 / count) ** 0.5
    by_token = hiding.hide(ids, 0.2, torch.Generator().manual_seed(4), words=False)
    assert not torch.equal(by_token.input_ids, hidden.input_ids)


@pytest.mark.parametrize("family", ["bert", "roberta", "modernbert", "deberta-v2"])
def test_packed_rows_give_the_loss_of_segments_alone(family, tokenizer, config_file):
    """Reference: the plain forward pass of transformers on each segment by itself."""
    torch.manual_seed(0)
    model = new_model(config_file(family), tokenizer).eval()
    network = HiddenPositionModel(model)
    form = network.form
    # DeBERTa's positions are relative and its mask is a row's: it reads the row as one text.
    assert form.separate == (family != "deberta-v2")
    assert form.window == (4 if family == "modernbert" else None)
    ids = torch.randint(5, len(tokenizer), (1, 30))
    segment = torch.tensor([[1] * 11 + [2] * 16 + [0] * 3])
    position = torch.tensor([[*range(11), *range(16), *range(3)]])
    rows, cols = torch.zeros(4, dtype=torch.long), torch.tensor([0, 7, 11, 26])
    with torch.no_grad():
        got = network.logits(ids, rows, cols, segment, position)
        if form.separate:
            parts = ids.split([11, 16, 3], dim=1)[:2]
            expected = torch.cat([model(input_ids=part).logits[0] for part in parts])[cols]
        else:
            seen = (segment > 0).long()
            expected = model(input_ids=ids, attention_mask=seen).logits[0, cols]
    torch.testing.assert_close(got, expected, atol=1e-4, rtol=1e-4)
    plain = SegmentForm(separate=False).inputs(segment, position)
    assert plain["attention_mask"].tolist() == [[1] * 27 + [0] * 3]
