"""A tiny text, a tiny config, and runs on them that take a second."""

import json
import random

import pytest

WORDS = {
    "who": ["the cat", "a dog", "my aunt", "the old teacher", "nobody", "a small bird"],
    "does": ["sees", "likes", "paints", "follows", "forgets", "remembers"],
    "what": ["the house", "a river", "the moon", "some bread", "the garden", "a letter"],
    "when": ["in the morning", "at night", "every day", "in winter", "after lunch", "now"],
}


@pytest.fixture(scope="session")
def sentences():
    """600 lines of one to three sentences."""
    draw = random.Random(0)
    return [
        " ".join(
            " ".join(draw.choice(words) for words in WORDS.values()) + "."
            for _ in range(draw.randint(1, 3))
        )
        for _ in range(600)
    ]


@pytest.fixture(scope="session")
def text_file(tmp_path_factory, sentences):
    path = tmp_path_factory.mktemp("text") / "text.txt"
    path.write_text("\n".join(sentences) + "\n", encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def tokenizer(sentences):
    from fillmask_ui.training.weights import train_tokenizer

    return train_tokenizer(sentences, 200)


TINY = {
    "bert": {"intermediate_size": 64},
    "roberta": {"intermediate_size": 64, "pad_token_id": 0},
    "distilbert": {
        "dim": 32,
        "n_layers": 2,
        "n_heads": 2,
        "hidden_dim": 64,
        "dropout": 0.0,
        "attention_dropout": 0.0,
    },
    "deberta-v2": {"intermediate_size": 64, "relative_attention": True},
    "modernbert": {
        "intermediate_size": 48,
        "local_attention": 8,
        "global_attn_every_n_layers": 2,
    },
}


@pytest.fixture(scope="session")
def config_file(tmp_path_factory):
    """Config file of a tiny architecture."""
    folder = tmp_path_factory.mktemp("configs")

    def make(family: str = "bert", **changes):
        content = {
            "model_type": family,
            "hidden_size": 32,
            "num_hidden_layers": 2,
            "num_attention_heads": 2,
            "max_position_embeddings": 66,
            "hidden_dropout_prob": 0.0,
            "attention_probs_dropout_prob": 0.0,
            **TINY[family],
        }
        if family == "distilbert":
            for name in ("hidden_size", "num_hidden_layers", "num_attention_heads"):
                del content[name]
        path = folder / f"{'-'.join([family, *changes])}.json"
        path.write_text(json.dumps(content | changes))
        return path

    return make


@pytest.fixture(autouse=True)
def one_thread():
    """Tiny matrices gain nothing from threads that wait for each other."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
