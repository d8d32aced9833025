"""A tiny text, a tiny config, a run on them and its package, made once for all workers."""

import json
import random

import pytest
from small_training import STEPS
from typer.testing import CliRunner

from fillmask_ui.cli.main import app

WORDS = {
    "who": ["the cat", "a dog", "my aunt", "the old teacher", "nobody", "a small bird"],
    "does": ["sees", "likes", "paints", "follows", "forgets", "remembers"],
    "what": ["the house", "a river", "the moon", "some bread", "the garden", "a letter"],
    "when": ["in the morning", "at night", "every day", "in winter", "after lunch", "now"],
}
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
def text_file(once, sentences):
    content = "\n".join(sentences) + "\n"
    folder = once.folder("training-text", lambda own: (own / "text.txt").write_text(content))
    return folder / "text.txt"


@pytest.fixture(scope="session")
def tokenizer(sentences):
    from fillmask_ui.training.torch_weights import train_tokenizer

    return train_tokenizer(sentences, 200)


@pytest.fixture(scope="session")
def config_file(once):
    """Config file of a tiny architecture."""

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
        name = "-".join([family, *(f"{key}-{value}" for key, value in changes.items())])
        text = json.dumps(content | changes)
        home = once.folder(f"configs/{name}", lambda own: (own / f"{family}.json").write_text(text))
        return home / f"{family}.json"

    return make


@pytest.fixture(scope="session")
def train_arguments(text_file, config_file):
    """The command of the run that is made once, but for its folder."""
    arguments = ["train", "--text", str(text_file), "--config", str(config_file())]
    arguments += ["--steps", str(STEPS), "--vocabulary-size", "200", "--threads", "1"]
    arguments += ["--block-tokens", "32", "--batch-blocks", "4", "--learning-rate", "5e-3"]
    return [*arguments, "-o"]


@pytest.fixture(scope="session")
def trained(once, train_arguments):
    """A finished run, made by the command line."""

    def make(folder):
        result = CliRunner().invoke(app, [*train_arguments, str(folder)], catch_exceptions=False)
        assert result.exit_code == 0, result.output
        assert f"step {STEPS} (100%" in result.output

    return once.folder("trained-run", make)


@pytest.fixture(scope="session")
def cloze_file(once):
    items = [
        {"text": "the cat [MASK] the house.", "accepted": ["sees", "likes"], "kind": "verb"},
        {"text": "[MASK] dog sees a river.", "accepted": ["a"], "kind": "article"},
    ]
    text = "\n".join(json.dumps(item) for item in items)
    return once.folder("cloze", lambda own: (own / "cloze.jsonl").write_text(text)) / "cloze.jsonl"


@pytest.fixture(scope="session")
def packaged(once, trained, text_file, cloze_file):
    """Its package, with a trimmed vocabulary and all figures, made by the command line."""

    def make(folder):
        notes = folder / "notes.md"
        notes.write_text("---\nlicense: mit\n---\n\n# A tiny model\n")
        arguments = ["package", str(trained), "-o", str(folder / "model")]
        arguments += ["--vocabulary-size", "120", "--text", str(text_file)]
        arguments += ["--evaluate", f"{text_file}:0.1", "--cloze", str(cloze_file)]
        arguments += ["--calibration", f"{text_file}:0.05", "--notes", str(notes)]
        arguments += ["--compare", str(trained)]
        result = CliRunner().invoke(app, arguments, catch_exceptions=False)
        assert result.exit_code == 0, result.output

    return once.folder("packaged", make) / "model"


@pytest.fixture(autouse=True)
def one_thread():
    """Tiny matrices gain nothing from threads that wait for each other."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
