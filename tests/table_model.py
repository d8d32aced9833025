"""A masked language model of a few numpy tables: real, deterministic and fast.

The logits at a position are a sum of three rows, one each for the token that the model sees to
the left, to the right and at the position itself. Nothing else in a batch changes them.
"""

import re

import numpy as np

from fillmask_ui.records import Encoding, ModelSignature, Span

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
_WORDS = """
    the a cat dog sat ran on under mat river house and in of to was it red blue old
    walk talk jump play quick slow kind happi sad un re warm cold light dark stone
"""
WORDS = tuple(_WORDS.split())
_ENDINGS = "s ed ing ly ness er est y able ful less d"
ENDINGS = tuple("##" + ending for ending in _ENDINGS.split())
PUNCTUATION = (".", ",", "'", "!")
TOKENS = (*SPECIAL, *WORDS, *PUNCTUATION, *ENDINGS)


class TableVocabulary:
    """WordPiece over `TOKENS`: longest match first, punctuation split off.

    Args:
        tokens: vocabulary strings, the five special ones first.
    """

    mask_token = "[MASK]"
    pad_id, unk_id, cls_id, sep_id, mask_id = range(5)
    special_ids = frozenset(range(5))

    def __init__(self, tokens=TOKENS):
        self.tokens = tuple(tokens)
        self.ids = {token: index for index, token in enumerate(self.tokens)}
        self.size = len(self.tokens)

    def encode(self, text):
        ids, spans, word_ids = [self.cls_id], [Span(0, 0)], [None]
        for word, match in enumerate(re.finditer(r"\[MASK\]|\w+|[^\w\s]", text)):
            for token_id, start, end in self._pieces(match.group()):
                ids.append(token_id)
                spans.append(Span(match.start() + start, match.start() + end))
                word_ids.append(None if token_id == self.mask_id else word)
        special = (True, *[False] * (len(ids) - 1), True)
        ids, spans, word_ids = (*ids, self.sep_id), (*spans, Span(0, 0)), (*word_ids, None)
        tokens = tuple(self.tokens[index] for index in ids)
        return Encoding(text, ids, tokens, spans, word_ids, special)

    def _pieces(self, word):
        if word in self.ids:
            return [(self.ids[word], 0, len(word))]
        pieces, start = [], 0
        while start < len(word):
            for end in range(len(word), start, -1):
                piece = ("##" if start else "") + word[start:end].lower()
                if piece in self.ids:
                    pieces.append((self.ids[piece], start, end))
                    start = end
                    break
            else:
                return [(self.unk_id, 0, len(word))]
        return pieces

    def encode_word(self, word, before=" "):
        return tuple(token_id for token_id, _, _ in self._pieces(word))

    def token(self, token_id):
        return self.tokens[token_id] if token_id < self.size else f"[{token_id}]"

    def word(self, token_id):
        return self.token(token_id).removeprefix("##")

    def is_continuation(self, token_id):
        return self.token(token_id).startswith("##")


def letter_vocabulary():
    """Another tokenizer for the same words: other ids, more and smaller pieces."""
    letters = "abcdefghijklmnopqrstuvwxyz"
    tokens = [*letters, *("##" + letter for letter in letters)]
    short_words = [word for word in WORDS if len(word) < 5]
    return TableVocabulary((*SPECIAL, *tokens, *short_words, *PUNCTUATION, *ENDINGS))


class TableModel:
    """See the module.

    Args:
        seed: of the tables.
        noise: standard deviation of what is added to the tables, from `noise_seed`.
        width: V, at least the vocabulary's size.
        max_tokens: longest text.
        vocabulary: its tokenizer.
        scale: 0 makes every token equally likely.
    """

    def __init__(
        self,
        seed=0,
        *,
        noise=0.0,
        noise_seed=1,
        width=None,
        max_tokens=64,
        vocabulary=None,
        scale=1.5,
    ):
        self.vocabulary = vocabulary or TableVocabulary()
        self.max_tokens = max_tokens
        width = width or self.vocabulary.size
        tables = np.random.default_rng(seed).normal(size=(3, width, width)) * scale
        tables[2] += 3 * scale * np.eye(width)
        tables += np.random.default_rng(noise_seed).normal(size=tables.shape) * noise
        tables[2, self.vocabulary.mask_id] = 0
        self.left, self.right, self.own = tables.astype(np.float32)
        self.calls = []
        self.signature = ModelSignature(
            name=f"table-{seed}-{noise:g}",
            architecture="table",
            runtime="numpy",
            device="cpu",
            precision="float32",
            sha256=f"{seed:032x}{noise_seed:032x}",
            parameters=3 * width * width,
            size_bytes=12 * width * width,
            vocabulary_size=width,
            max_tokens=max_tokens,
            versions={"numpy": np.__version__},
        )

    def logits_at(self, input_ids, attention_mask, rows, cols):
        self.calls.append((input_ids.shape, len(rows)))
        assert input_ids.shape == attention_mask.shape
        assert ((cols > 0) & (cols < attention_mask[rows].sum(axis=1) - 1)).all()
        return (
            self.left[input_ids[rows, cols - 1]]
            + self.right[input_ids[rows, cols + 1]]
            + self.own[input_ids[rows, cols]]
        )


def log_softmax_at(model, ids, position):
    """torch's log-softmax over the logits at one position of one text, float64 [V]."""
    import torch

    mask, rows, cols = np.ones((1, len(ids)), int), np.array([0]), np.array([position])
    logits = model.logits_at(np.array([ids]), mask, rows, cols)
    return torch.log_softmax(torch.from_numpy(logits).double(), dim=-1)[0]


def sample_texts(count, seed=0, longest=12):
    """Texts of 1 to `longest` words, drawn from the vocabulary."""
    rng = np.random.default_rng(seed)
    texts = []
    for _ in range(count):
        words = [
            WORDS[rng.integers(len(WORDS))] + rng.choice(["", "", "", "s", "ed", "lyness"])
            for _ in range(rng.integers(1, longest + 1))
        ]
        texts.append(" ".join(words) + rng.choice(["", ".", "!"]))
    return texts
