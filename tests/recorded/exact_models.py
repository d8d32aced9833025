"""Three small ONNX models whose logits have the same bits on every machine.

The logits at a position are table_left[id to the left] + table_own[id] + table_right[id to the
right]: gathers and additions only. Every table entry is a whole number of 2**-18, so that the
float32 sums are exact in any order.
"""

import itertools
import json
import string
from pathlib import Path

import numpy as np

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
PAD, MASK = 0, 4
_WORDS = """
    the a an and of to in on is was it he she they we you not be by for with at from up down
    cat dog bird fish horse house garden river town city road door table book train rain snow sun
    morning night day year time school teacher child children friend man woman people water bread
    old new young small big red blue green cold hot warm dark light quick slow happy quiet long
    sat ran walk talk play read sleep slept came went saw said opened looked stood fell
    every no all one two three first last under over behind before after when where what who
"""
WORDS = tuple(_WORDS.split())
LETTERS = tuple(string.ascii_lowercase + string.digits)
MARKS = (".", ",", "!", "?", "'", "-", ":", ";", "(", ")", '"', "&")
ENDINGS = ("s", "ed", "ing", "er", "est", "ly", "ness", "y", "able", "ful", "less", "un")
TOKENS = (*SPECIAL, *WORDS, *LETTERS, *MARKS, *(f"##{part}" for part in (*ENDINGS, *LETTERS)))
# Another tokenizer for the same texts: other ids, more and smaller pieces.
LETTER_TOKENS = (
    *SPECIAL,
    *MARKS,
    *LETTERS,
    *(f"##{letter}" for letter in LETTERS),
    *(word for word in WORDS if 1 < len(word) < 5),
)
LONGEST = 48
STEP = 2.0**-18


def build_all(root: Path, texts: list[str]) -> None:
    """Folders `table`, `noisy` (the same with noise) and `letters` (another tokenizer)."""
    build(root / "table", TOKENS, texts, seed=1)
    build(root / "noisy", TOKENS, texts, seed=1, noise_seed=2)
    build(root / "letters", LETTER_TOKENS, texts, seed=3)


def build(
    folder: Path, tokens: tuple[str, ...], texts: list[str], *, seed: int, noise_seed: int = 0
) -> None:
    """One model in Hugging Face layout: config.json, tokenizer and onnx/model.onnx."""
    from transformers import BertTokenizer

    (folder / "onnx").mkdir(parents=True)
    ids = {token: index for index, token in enumerate(tokens)}
    tokenizer = BertTokenizer(vocab=ids, model_max_length=LONGEST)
    tokenizer.save_pretrained(folder)
    config = {
        "architectures": ["BertForMaskedLM"],
        "model_type": "bert",
        "vocab_size": len(tokens),
        "max_position_embeddings": LONGEST,
        "pad_token_id": PAD,
        "hidden_size": 8,
        "num_hidden_layers": 1,
        "num_attention_heads": 1,
        "intermediate_size": 8,
    }
    (folder / "config.json").write_text(json.dumps(config))
    left, center, right = _tables(len(tokens), seed, noise_seed)
    for text in texts:
        ids = tokenizer(text, truncation=True)["input_ids"]
        for before, after in set(itertools.pairwise(ids)):
            left[before, after] += 2
            right[after, before] += 2
    _write_graph(folder / "onnx" / "model.onnx", left, center, right)


def _tables(size: int, seed: int, noise_seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    tables = rng.integers(-(2**19), 2**19, (3, size, size)) * STEP  # [3, V, V] within 2 of 0
    tables[1] += 3 * np.eye(size)
    tables[1, MASK] = 0
    tables[:, :, : len(SPECIAL)] -= 3
    if noise_seed:
        noise = np.random.default_rng(noise_seed)
        tables += noise.integers(-(2**17), 2**17, tables.shape) * STEP
    return tables.astype(np.float32)


def _write_graph(path: Path, left: np.ndarray, center: np.ndarray, right: np.ndarray) -> None:
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    whole = {
        "around": [0, 1, 0, 1],
        "columns": [1],
        "at_start": [0],
        "at_two": [2],
        "before_end": [-2],
        "far": [2**31],
    }
    constants = {
        **{name: np.array(values, np.int64) for name, values in whole.items()},
        "table_left": left,
        "table_own": center,
        "table_right": right,
    }
    nodes = [
        # What the attention mask hides is padding, whose id is 0.
        helper.make_node("Mul", ["input_ids", "attention_mask"], ["ids"]),
        helper.make_node("Pad", ["ids", "around"], ["padded"]),
        helper.make_node("Slice", ["padded", "at_start", "before_end", "columns"], ["left_ids"]),
        helper.make_node("Slice", ["padded", "at_two", "far", "columns"], ["right_ids"]),
        helper.make_node("Gather", ["table_left", "left_ids"], ["from_left"]),
        helper.make_node("Gather", ["table_own", "ids"], ["from_own"]),
        helper.make_node("Gather", ["table_right", "right_ids"], ["from_right"]),
        helper.make_node("Add", ["from_left", "from_own"], ["two"]),
        helper.make_node("Add", ["two", "from_right"], ["logits"]),
    ]
    free = ["batch", "tokens"]
    graph = helper.make_graph(
        nodes,
        "tables",
        [
            helper.make_tensor_value_info(name, TensorProto.INT64, free)
            for name in ("input_ids", "attention_mask")
        ],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, [*free, len(center)])],
        [numpy_helper.from_array(values, name) for name, values in constants.items()],
    )
    # Fixed, so that the file has the same bytes whatever version of onnx writes it.
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8, producer_name="recorded"
    )
    onnx.save(model, path)
