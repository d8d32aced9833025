"""A tiny text, a tiny config, a run on them and its package, made once for all workers."""

import json
import random

import pytest
from features.train.small_training import STEPS
from typer.testing import CliRunner

from fillmask_ui.cli.main import app

WORDS = {
    "who": ["the cat", "a dog", "my aunt", "the old teacher", "nobody", "a small bird"],
    "does": ["sees", "likes", "paints", "follows", "forgets", "remembers"],
    "what": ["the house", "a river", "the moon", "some bread", "the garden", "a letter"],
    "when": ["in the morning", "at night", "every day", "in winter", "after lunch", "now"],
}
COMMON = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "max_position_embeddings": 66,
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
}
SMALL = {"dim": 32, "n_layers": 2, "n_heads": 2, "hidden_dim": 64, "max_position_embeddings": 66}
LOCAL = {"intermediate_size": 48, "local_attention": 8, "global_attn_every_n_layers": 2}
CONFIGS = {
    "bert": {**COMMON, "intermediate_size": 64},
    "roberta": {**COMMON, "intermediate_size": 64, "pad_token_id": 0},
    "distilbert": {**SMALL, "dropout": 0.0, "attention_dropout": 0.0},
    "deberta-v2": {**COMMON, "intermediate_size": 64, "relative_attention": True},
    "modernbert": {**COMMON, **LOCAL},
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
    folder = once.folder("training-text", lambda folder: (folder / "text.txt").write_text(content))
    return folder / "text.txt"


@pytest.fixture(scope="session")
def tokenizer(once, sentences):
    """Trained once, as two trainings may differ in rare tokens."""
    from fillmask_ui.features.train.torch_weights import load_tokenizer, train_tokenizer

    def make(folder):
        train_tokenizer(sentences, 200).save_pretrained(folder)

    return load_tokenizer(once.folder("training-tokenizer", make))


@pytest.fixture(scope="session")
def config_file(once):
    """Config file of a tiny architecture."""

    def make(family: str = "bert", **changes):
        name = "-".join([family, *(f"{key}-{value}" for key, value in changes.items())])
        text = json.dumps({"model_type": family, **CONFIGS[family], **changes})
        home = once.folder(
            f"configs/{name}", lambda folder: (folder / f"{family}.json").write_text(text)
        )
        return home / f"{family}.json"

    return make


@pytest.fixture(scope="session")
def train_arguments(text_file, config_file):
    """The command of the run that is made once, but for its folder."""
    arguments = ["train", "--text", str(text_file), "--config", str(config_file())]
    arguments += ["--steps", str(STEPS), "--vocabulary-size", "200", "--threads", "1"]
    arguments += ["--block-tokens", "32", "--batch-blocks", "4", "--learning-rate", "5e-3"]
    return [*arguments, "-o"]


def invoked(*arguments):
    result = CliRunner().invoke(app, [*map(str, arguments)], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


@pytest.fixture(scope="session")
def trained(once, train_arguments):
    """A finished run, made by the command line."""

    def make(folder):
        assert f"step {STEPS} (100%" in invoked(*train_arguments, folder)

    return once.folder("trained-run", make)


@pytest.fixture(scope="session")
def cloze_file(once):
    items = [
        {"text": "the cat [MASK] the house.", "accepted": ["sees", "likes"], "kind": "verb"},
        {"text": "[MASK] dog sees a river.", "accepted": ["a"], "kind": "article"},
    ]
    text = "\n".join(json.dumps(item) for item in items)
    return (
        once.folder("cloze", lambda folder: (folder / "cloze.jsonl").write_text(text))
        / "cloze.jsonl"
    )


@pytest.fixture(scope="session")
def packaged(once, trained, text_file, cloze_file):
    """Its package, with a trimmed vocabulary and all figures, made by the command line."""

    def make(folder):
        notes = folder / "notes.md"
        notes.write_text("---\nlicense: mit\n---\n\n# A tiny model\n")
        arguments = ["package", trained, "-o", folder / "model", "--notes", notes]
        arguments += ["--vocabulary-size", "120", "--text", text_file, "--cloze", cloze_file]
        arguments += ["--evaluate", f"{text_file}:0.1", "--calibration", f"{text_file}:0.05"]
        invoked(*arguments, "--baseline", trained)

    return once.folder("packaged", make) / "model"


@pytest.fixture(autouse=True)
def one_thread():
    """Tiny matrices gain nothing from threads that wait for each other."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
