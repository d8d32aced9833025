"""Every family on both runtimes, against the pipeline and the tokenizers of transformers."""

from __future__ import annotations

import numpy as np
import pytest
from tiny_models import FAMILIES, batch_of, quiet, texts_for

from fillmask_ui import scoring
from fillmask_ui.protocol import MaskedLM, Vocabulary

pytestmark = pytest.mark.parametrize("family", FAMILIES)
runtimes = pytest.mark.parametrize("runtime", ["onnx", "torch"])


@pytest.fixture
def pipeline(family, tiny_models):
    from transformers import pipeline as make

    with quiet():
        return make("fill-mask", model=str(tiny_models.folder(family)))


@runtimes
def test_equals_the_fill_mask_pipeline(family, runtime, loaded, pipeline):
    """The outside reference: `transformers.pipeline("fill-mask")`, all V candidates."""
    model = loaded(family, runtime)
    size = model.signature.vocabulary_size
    for text in texts_for(family, model.vocabulary.mask_token):
        batch = batch_of(model.vocabulary, [text])
        log_probs = scoring.exponentials(model.logits_at(*batch)).log_probabilities  # [M, V]
        best = scoring.top_k(log_probs, 5)
        expected = pipeline(text, top_k=size)
        per_mask = expected if isinstance(expected[0], list) else [expected]
        assert len(per_mask) == len(log_probs)
        for row, candidates in enumerate(per_mask):
            assert len({c["token"] for c in candidates}) == size
            nll = {c["token"]: -np.log(c["score"]) for c in candidates}
            wanted = np.array([nll[token_id] for token_id in range(size)])
            np.testing.assert_allclose(-log_probs[row], wanted, atol=1e-4)
            assert [c["token"] for c in candidates[:5]] == list(best.token_ids[row])


def test_runtimes_agree(family, loaded):
    onnx, torch = loaded(family, "onnx"), loaded(family, "torch")
    batch = batch_of(onnx.vocabulary, texts_for(family, onnx.vocabulary.mask_token))
    from_onnx, from_torch = onnx.logits_at(*batch), torch.logits_at(*batch)
    assert from_onnx.shape == (len(batch.rows), onnx.signature.vocabulary_size)
    assert from_onnx.dtype == from_torch.dtype == np.float32
    np.testing.assert_allclose(from_onnx, from_torch, atol=1e-4)
    # The weights are drawn so that guesses are far from uniform; else little would be compared.
    probabilities = np.exp(scoring.exponentials(from_torch).log_probabilities)
    assert probabilities.max() > 5 / onnx.signature.vocabulary_size


@runtimes
def test_padding_changes_nothing(family, runtime, loaded):
    model = loaded(family, runtime)
    texts = texts_for(family, model.vocabulary.mask_token)
    together = model.logits_at(*batch_of(model.vocabulary, texts))
    alone = [model.logits_at(*batch_of(model.vocabulary, [text])) for text in texts]
    np.testing.assert_allclose(together, np.concatenate(alone), atol=1e-4)


@runtimes
def test_questions_may_come_in_any_order(family, runtime, loaded):
    model = loaded(family, runtime)
    batch = batch_of(model.vocabulary, texts_for(family, model.vocabulary.mask_token))
    rows, cols = np.nonzero(batch.attention_mask)
    order = np.random.default_rng(3).permutation(len(rows))
    straight = model.logits_at(batch.input_ids, batch.attention_mask, rows, cols)
    shuffled = model.logits_at(batch.input_ids, batch.attention_mask, rows[order], cols[order])
    np.testing.assert_allclose(shuffled, straight[order], atol=1e-4)


def test_the_projection_runs_on_asked_positions_alone(family, loaded):
    """Each of these heads can be cut; the hook must see M rows, not B x T."""
    model = loaded(family, "torch")
    assert model.signature.notes == ()
    assert model._model.base_model._forward_hooks  # already the head's first step does
    projection = model._model.get_output_embeddings()
    seen = []
    handle = projection.register_forward_hook(lambda _m, args, _out: seen.append(args[0].shape))
    try:
        batch = batch_of(model.vocabulary, texts_for(family, model.vocabulary.mask_token))
        model.logits_at(*batch)
    finally:
        handle.remove()
    assert [shape[:-1] for shape in seen] == [(1, len(batch.rows))]


def test_tokenized_as_transformers_does(family, loaded, tiny_models):
    from transformers import AutoTokenizer

    model = loaded(family, "onnx")
    with quiet():
        tokenizer = AutoTokenizer.from_pretrained(tiny_models.folder(family))
    texts = texts_for(family, model.vocabulary.mask_token)
    texts += [" ".join(["long"] * 200), "", "  two  blanks ", "naïve 東京 🙂 שלום"]
    for text in texts:
        encoding = model.vocabulary.encode(text)
        with quiet():
            expected = tokenizer(text, return_special_tokens_mask=True)
        assert list(encoding.ids) == expected["input_ids"]
        special = [
            bool(flag) and token_id != model.vocabulary.mask_id
            for flag, token_id in zip(
                expected["special_tokens_mask"], expected["input_ids"], strict=True
            )
        ]
        assert [f for f, t in zip(encoding.special, encoding.ids, strict=True)] == [
            f and t != tokenizer.unk_token_id for f, t in zip(special, encoding.ids, strict=True)
        ]
        assert list(encoding.tokens) == tokenizer.convert_ids_to_tokens(encoding.ids)
        check_encoding(model.vocabulary, encoding)
    assert model.vocabulary.special_ids == frozenset(tokenizer.all_special_ids)
    assert model.vocabulary.size == len(tokenizer)


def check_encoding(vocabulary: Vocabulary, encoding) -> None:
    """What holds for every encoding: spans in order, within the text, masks marked in it."""
    assert len(encoding.spans) == len(encoding.word_ids) == len(encoding.special) == len(encoding)
    for token_id, span, special in zip(encoding.ids, encoding.spans, encoding.special, strict=True):
        assert 0 <= span.start <= span.end <= len(encoding.text)
        if special:
            assert span.start == span.end
        if token_id == vocabulary.mask_id:
            assert encoding.text[span.start : span.end] == vocabulary.mask_token
    starts = [
        s.start for s, special in zip(encoding.spans, encoding.special, strict=True) if not special
    ]
    assert starts == sorted(starts)
    words = [w for w in encoding.word_ids if w is not None]
    assert words == sorted(words)


def test_usable_length_is_that_of_the_position_table(family, loaded):
    """All families are made with 64 usable positions; RoBERTa-like ones with 66 rows."""
    for runtime in ("onnx", "torch"):
        model: MaskedLM = loaded(family, runtime)
        assert model.max_tokens == model.signature.max_tokens == 64
        words = model.vocabulary.encode(" ".join(["a"] * 200)).ids
        ids = np.array([[*words[:63], words[-1]]])
        logits = model.logits_at(ids, np.ones_like(ids), np.array([0]), np.array([5]))
        assert np.isfinite(logits).all()
