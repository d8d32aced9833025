"""The necessary operations, against counts by hand."""

import pytest

from fillmask_ui.bench.flops import EncoderShape

# Two layers of width 4 with inner width 8, and 10 words.
TINY = {"num_hidden_layers": 2, "hidden_size": 4, "intermediate_size": 8, "vocab_size": 10}


def test_a_text_of_three_tokens_with_one_hidden():
    """Multiplications of matrices [rows, inner] x [inner, columns], one by one."""
    first = (
        4 * (3 * 4 * 4)  # query, key, value, output: [3, 4] x [4, 4]
        + 2 * (3 * 4 * 8)  # feed-forward, in and out
        + 2 * (3 * 4 * 3)  # scores [3, 4] x [4, 3], weighted sum [3, 3] x [3, 4]
    )
    last = (
        2 * (3 * 4 * 4)  # key, value of all three tokens
        + 2 * (1 * 4 * 4)  # query, output of the hidden one
        + 2 * (1 * 4 * 8)
        + 2 * (1 * 4 * 3)
    )
    head = 1 * 4 * 4 + 1 * 4 * 10
    assert EncoderShape.of(TINY).operations([(3, 1)]) == 2 * (first + last + head)


def test_texts_add_up():
    shape = EncoderShape.of(TINY)
    parts = [shape.operations([text]) for text in ((3, 1), (7, 2))]
    assert shape.operations([(3, 1), (7, 2)]) == sum(parts)


def test_narrow_embeddings_are_widened_for_each_token():
    """As in ALBERT and ELECTRA: [3, 2] x [2, 4] first, a head of width 2 in the end."""
    narrow = EncoderShape.of({**TINY, "embedding_size": 2}).operations([(3, 1)])
    wide = EncoderShape.of(TINY).operations([(3, 1)])
    widened, narrow_head, wide_head = 3 * 2 * 4, 4 * 2 + 2 * 10, 4 * 4 + 4 * 10
    assert narrow - wide == 2 * (widened + narrow_head - wide_head)


def test_local_attention_is_counted_as_local():
    near = EncoderShape.of({**TINY, "local_attention": 4}).operations([(9, 1)])
    assert EncoderShape.of(TINY).operations([(9, 1)]) - near == 2 * 2 * 10 * 5 * 4


def test_distilbert_calls_its_sizes_otherwise():
    other = {"n_layers": 2, "dim": 4, "hidden_dim": 8, "vocab_size": 10}
    assert EncoderShape.of(other) == EncoderShape.of(TINY)


@pytest.mark.parametrize("missing", TINY)
def test_a_config_that_leaves_a_size_out_has_no_shape(missing):
    assert EncoderShape.of({**TINY, missing: None}) is None
