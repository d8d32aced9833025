"""Every family on both runtimes, against the pipeline, models and tokenizers of transformers."""

import numpy as np
import onnx
import pytest
from models.conftest import transformers_output
from tiny_models import EVERY_FAMILY, OTHERS, batch_of, quiet, reference_tokenizer, texts_for

from fillmask_ui import fill, scoring
from fillmask_ui.models import load_model
from fillmask_ui.models.runtime_model import FULL_LOGITS
from fillmask_ui.onnx_tools.asked_positions import ASKED, gather_asked
from fillmask_ui.protocol import EncoderStates, Vocabulary

families = pytest.mark.parametrize("family", EVERY_FAMILY)
runtimes = pytest.mark.parametrize("runtime", ["onnx", "torch"])


@families
@runtimes
def test_equals_the_fill_mask_pipeline(family, runtime, loaded, tiny_models):
    """The outside reference: `transformers.pipeline("fill-mask")`, all V candidates."""
    from transformers import pipeline as make

    with quiet():
        pipeline = make("fill-mask", model=str(tiny_models.folder(family)))
    model = loaded(family, runtime)
    size = model.signature.vocabulary_size
    assert FULL_LOGITS not in model.signature.notes
    for text in texts_for(family, model.vocabulary.mask_token):
        batch = batch_of(model.vocabulary, [text])
        log_probs = scoring.exponentials(model.logits_at(*batch)).log_probabilities  # [M, V]
        best = scoring.top_k(log_probs, 5)
        expected = pipeline(text, top_k=size)
        per_mask = expected if isinstance(expected[0], list) else [expected]
        assert len(per_mask) == len(log_probs)
        for row, candidates in enumerate(per_mask):
            nll = {c["token"]: -np.log(c["score"]) for c in candidates}
            expected_nll = np.array([nll[token_id] for token_id in range(size)])
            np.testing.assert_allclose(-log_probs[row], expected_nll, atol=1e-4)
            assert [c["token"] for c in candidates[:5]] == list(best.token_ids[row])


@pytest.mark.parametrize("family", OTHERS)
def test_other_families_load_and_run(family, tiny_models):
    """Quickly, on PyTorch alone: logits and tokens of transformers."""
    folder = tiny_models.folder(family, onnx=False)
    model = load_model(folder, runtime="torch")
    texts = texts_for(family, model.vocabulary.mask_token)
    batch = batch_of(model.vocabulary, texts)
    expected = transformers_output(folder, batch).logits.numpy()[batch.rows, batch.cols]
    np.testing.assert_allclose(model.logits_at(*batch), expected, atol=1e-4)
    ids = reference_tokenizer(folder)(texts)["input_ids"]
    assert [list(model.vocabulary.encode(text).ids) for text in texts] == ids
    assert model.max_tokens == 64 and model.signature.notes == ()


@families
def test_runtimes_batches_and_orders_agree(family, loaded):
    onnx_model, torch_model = loaded(family, "onnx"), loaded(family, "torch")
    texts = texts_for(family, onnx_model.vocabulary.mask_token)
    batch = batch_of(onnx_model.vocabulary, texts)
    expected = torch_model.logits_at(*batch)
    rows, cols = np.nonzero(batch.attention_mask)
    order = np.random.default_rng(3).permutation(len(rows))
    # The weights are drawn so that guesses are far from uniform; else little would be compared.
    probabilities = np.exp(scoring.exponentials(expected).log_probabilities)
    assert probabilities.max() > 5 / onnx_model.signature.vocabulary_size
    for model in (onnx_model, torch_model):
        together = model.logits_at(*batch)
        assert together.shape == (len(batch.rows), model.signature.vocabulary_size)
        assert together.dtype == np.float32
        np.testing.assert_allclose(together, expected, atol=1e-4)
        alone = [model.logits_at(*batch_of(model.vocabulary, [text])) for text in texts]
        np.testing.assert_allclose(together, np.concatenate(alone), atol=1e-4)
        straight = model.logits_at(batch.input_ids, batch.attention_mask, rows, cols)
        shuffled = model.logits_at(batch.input_ids, batch.attention_mask, rows[order], cols[order])
        np.testing.assert_allclose(shuffled, straight[order], atol=1e-4)
        # The position table: 64 usable positions, of RoBERTa-like families in 66 rows.
        assert model.max_tokens == model.signature.max_tokens == 64
        words = model.vocabulary.encode(" ".join(["a"] * 200)).ids
        ids = np.array([[*words[:63], words[-1]]])
        logits = model.logits_at(ids, np.ones_like(ids), np.array([0]), np.array([5]))
        assert np.isfinite(logits).all()


@families
@runtimes
def test_last_hidden_state(family, runtime, loaded, tiny_models):
    model = loaded(family, runtime)
    assert isinstance(model, EncoderStates)
    batch = batch_of(model.vocabulary, texts_for(family, model.vocabulary.mask_token))
    rows, cols = np.nonzero(batch.attention_mask)
    order = np.random.default_rng(5).permutation(len(rows))
    inputs = batch.input_ids, batch.attention_mask, rows[order], cols[order]
    states = model.states_at(*inputs)
    expected = transformers_output(tiny_models.folder(family), batch).hidden_states[-1].numpy()
    assert states.dtype == np.float32
    np.testing.assert_allclose(states, expected[inputs[2:]], atol=1e-4)


@families
def test_tokenized_as_transformers_does(family, loaded, tiny_models):
    vocabulary = loaded(family, "onnx").vocabulary
    tokenizer = reference_tokenizer(tiny_models.folder(family))
    texts = texts_for(family, vocabulary.mask_token)
    for text in [*texts, " ".join(["long"] * 200), "", "  two  blanks ", "naïve 東京 🙂 שלום"]:
        encoding = vocabulary.encode(text)
        with quiet():
            expected = tokenizer(text, return_special_tokens_mask=True)
        assert list(encoding.ids) == expected["input_ids"]
        flags = zip(encoding.special, expected["special_tokens_mask"], encoding.ids, strict=True)
        in_text = {vocabulary.mask_id, tokenizer.unk_token_id}
        assert all(
            is_added == bool(flag) for is_added, flag, token in flags if token not in in_text
        )
        assert list(encoding.tokens) == tokenizer.convert_ids_to_tokens(encoding.ids)
        check_encoding(vocabulary, encoding)
    assert vocabulary.special_ids == frozenset(tokenizer.all_special_ids)
    assert vocabulary.size == len(tokenizer)


def check_encoding(vocabulary: Vocabulary, encoding) -> None:
    """What holds for every encoding: spans in order, within the text, masks marked in it."""
    assert len(encoding.spans) == len(encoding.word_ids) == len(encoding.special) == len(encoding)
    for token_id, span, special in zip(encoding.ids, encoding.spans, encoding.special, strict=True):
        assert 0 <= span.start <= span.end <= len(encoding.text)
        if special:
            assert span.start == span.end
        if token_id == vocabulary.mask_id:
            assert encoding.text[span.start : span.end] == vocabulary.mask_token
    pairs = zip(encoding.spans, encoding.special, strict=True)
    starts = [span.start for span, special in pairs if not special]
    assert starts == sorted(starts)
    words = [word for word in encoding.word_ids if word is not None]
    assert words == sorted(words)


@families
def test_heads_run_on_asked_positions_alone(family, loaded, tiny_models):
    """The Gather stands before the last feed-forward part; the head of torch sees M rows."""
    cut = gather_asked(onnx.load(tiny_models.folder(family) / "onnx" / "model.onnx"), "logits")
    row_values, products = set[str](), 0
    for node in cut.graph.node:
        if row_values.intersection(node.input) or (
            node.op_type == "Gather" and ASKED in node.input
        ):
            row_values.update(node.output)
            products += node.op_type in ("MatMul", "Gemm")
    assert products >= 3
    model = loaded(family, "torch")
    seen = []
    projection = model._model.get_output_embeddings()
    handle = projection.register_forward_hook(lambda _m, args, _out: seen.append(args[0].shape))
    batch = batch_of(model.vocabulary, texts_for(family, model.vocabulary.mask_token))
    model.logits_at(*batch)
    handle.remove()
    assert [shape[:-1] for shape in seen] == [(1, len(batch.rows))]


@families
@runtimes
def test_texts_filled_together_are_each_as_alone(family, runtime, loaded):
    """Within the rounding of float32; the first text is padded, the last ones are alike."""
    model = loaded(family, runtime)
    texts = [*texts_for(family, model.vocabulary.mask_token)] * 2
    for text, filling in zip(texts, fill(model, texts, top_k=None), strict=True):
        alone = fill(model, text, top_k=None)
        assert filling.encoding == alone.encoding and len(filling.joint) == len(alone.joint)
        for mask, alone_mask in zip(filling.masks, alone.masks, strict=True):
            nlls = [
                {c.token_id: c.nll_nats for c in filled.candidates} for filled in (mask, alone_mask)
            ]
            assert nlls[0] == pytest.approx(nlls[1], abs=1e-4)
