"""Masks of training: BERT's proportions, by tokens and by whole words."""

import numpy as np
import torch
from small_training import small

from fillmask_ui.training.corpus import CorpusPart
from fillmask_ui.training.masks import hide
from fillmask_ui.training.run import RunRequest, prepare


def test_masks_follow_berts_proportions():
    """80/10/10 of the share, each within five standard deviations of the binomial."""
    ids = torch.randint(10, 1000, (200, 500), generator=torch.Generator().manual_seed(1))
    special = torch.tensor([0, 1, 2])
    ids[:, 0] = 1
    hidden = hide(ids, special, 2, 1000, 0.2, torch.Generator().manual_seed(2))
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
    continues = torch.zeros(100, dtype=torch.bool)
    continues[50:60] = True
    draw = np.random.default_rng(3)
    ids, words = [], []
    for _ in range(300):
        row = [(token, n) for n in range(200) for token in pieces[int(draw.integers(4))]]
        ids.append([token for token, _ in row[:200]])
        words.append([n for _, n in row[:200]])
    ids, words = torch.tensor(ids), torch.tensor(words)
    special = torch.tensor([0, 1, 2])
    generator = torch.Generator().manual_seed(4)
    hidden = hide(ids, special, 2, 100, 0.2, generator, continues)
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


def test_a_run_hides_the_words_of_its_tokenizer(tmp_path, config_file):
    """Made-up words of nine letters, which a small vocabulary spells with several pieces."""
    draw = np.random.default_rng(0)
    words = ["".join(draw.choice(list("abcdefghij"), 9)) for _ in range(2000)]
    text = tmp_path / "text.txt"
    text.write_text("\n".join(" ".join(words[i : i + 5]) for i in range(0, 2000, 5)))

    def first_loss(folder, whole_word):
        request = RunRequest((CorpusPart(text),), folder, config=config_file(), vocabulary_size=100)
        trainer = prepare(request, small(steps=1, whole_word=whole_word)).trainer
        return trainer, next(trainer.run()).train_nll_nats

    trainer, loss = first_loss(tmp_path / "words", True)
    tokens = trainer.tokenizer.convert_ids_to_tokens(range(len(trainer.tokenizer)))
    assert trainer.continues.tolist() == [token.startswith("##") for token in tokens]
    assert trainer.continues.any()
    _, of_tokens = first_loss(tmp_path / "tokens", False)
    assert loss != of_tokens
