"""read_sweep(): what a sweep file may say, and what is said of one that is wrong."""

import re

import pytest

from fillmask_ui.errors import FillmaskError, OptionError
from fillmask_ui.evaluation import EvaluationConfig
from fillmask_ui.features.sweep.sweep_file import read_sweep, sweep_of
from fillmask_ui.intervals import Limits
from fillmask_ui.models import ModelChoice
from fillmask_ui.options import own_options
from fillmask_ui.texts import TextChoice, TextSource

LEAST = {"models": ["embedded"], "data": ["embedded"], "metrics": ["cross-entropy"]}
WHOLE = """
name = "release"
baseline = "embedded"
seeds = [42, 1]
pass_below = 0.02
risk-below = 1

[[models]]
model = "embedded"
[[models]]
model = "embedded:int8"
label = "int8"
threads = 2
graph-optimization = "basic"

[[data]]
dataset = "embedded"
samples = 100
shuffle = false
[[data]]
dataset = "org/name"
dataset-name = "small"
column = "input_column=body"

[[metrics]]
metric = "cross-entropy"
mask-probability = 0.5
max_tokens = 64
[[metrics]]
metric = "unmasking"
top-k = 5
temperature = 1
"""


def written(tmp_path, text):
    path = tmp_path / "mine.toml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_every_choice_of_a_file(tmp_path):
    sweep = read_sweep(written(tmp_path, WHOLE))
    assert (sweep.name, sweep.baseline, sweep.seeds) == ("release", "embedded", (42, 1))
    assert sweep.limits == Limits(0.02, 1.0)
    assert [own.label for own in sweep.models] == ["embedded", "int8"]
    assert sweep.models[1].value == ModelChoice(
        "embedded:int8", threads=2, graph_optimization="basic"
    )
    assert [own.value for own in sweep.texts] == [
        TextSource(samples=100, shuffle=False),
        TextSource("dataset", "org/name", config="small", column="body"),
    ]
    first, second = (own.value for own in sweep.metrics)
    assert first.metric.recipe.probability == 0.5
    assert first.max_tokens == 64
    assert second.metric.decoding.top_k == 5
    assert second.metric.decoding.temperature == 1.0
    least = 'models = ["embedded"]\ndata = ["embedded"]\nmetrics = ["suffix"]'
    sweep = read_sweep(written(tmp_path, least))
    assert (sweep.name, sweep.baseline, sweep.seeds) == ("mine", None, (42,))
    assert sweep.limits == Limits()
    assert len(sweep.cells) == 1


def test_every_option_of_the_shell_is_a_key():
    """Each by its name there; a value of a wrong type is refused, but not as an unknown key."""
    kinds = (("models", ModelChoice, "model"), ("data", TextChoice, "dataset"))
    for key, kind, main in (*kinds, ("metrics", EvaluationConfig, "metric")):
        flags = [flag for own in own_options(kind) for flag in own.flags]
        for name in (flag.removeprefix("--") for flag in flags if flag.startswith("--")):
            if name not in (main, "seed"):
                with pytest.raises(OptionError, match=r"entry 1: .* (must be|belongs to)"):
                    sweep_of({**LEAST, key: [{main: LEAST[key][0], name: []}]}, "x")


def model(rest, reference='"embedded"'):
    return f"[[models]]\nmodel = {reference}\n{rest}"


def metric(rest, name="suffix"):
    return f'[[metrics]]\nmetric = "{name}"\n{rest}'


def data(rest):
    return f'[[data]]\ndataset = "embedded"\n{rest}'


BAD = {
    "cannot be read as a sweep, in TOML: Expected '=' after a key .*line 4": 'name "x"',
    "unknown key 'modles'; known: baseline, data,": 'modles = ["embedded"]',
    "models: field required": "#models",
    r"models must have one entry or more \(\[\[models\]\]\)": "models = []",
    r"models\[0\].*; it was 3": "models = [3]",
    "models, entry 1: no model": "[[models]]\nthreads = 1",
    "models, entry 1: unknown key 'thraeds'; known: ": model("thraeds = 2"),
    "models, entry 1: threads must be a whole number; it was '2'": model('threads = "2"'),
    "models, entry 1: no such model: '/nowhere/at/all'": 'models = ["/nowhere/at/all"]',
    "models, entry 1: no such model: '/nowhere'": model('tokenizer = "/nowhere"'),
    "entry 1: unknown variant of the embedded model 'int9'": 'models = ["embedded:int9"]',
    "models, entry 2: it asks for the same as entry 1": 2 * model('label = "b"\n'),
    "models, entry 2: it is called 'embedded', and so is entry 1: give it a label": (
        model("") + "\n" + model("threads = 1")
    ),
    "data, entry 1: there is no file /nowhere/a.csv": 'data = ["/nowhere/a.csv"]',
    "data, entry 1: standard input can be read only once": 'data = ["-"]',
    "data, entry 1: shuffle must be True or False": data("shuffle = 1"),
    "metrics, entry 1: unknown metric 'crossentropy'": 'metrics = ["crossentropy"]',
    "metrics, entry 1: the option within word belongs to pseudo-perplexity": (
        metric("within-word = true")
    ),
    "metrics, entry 1: it has a seed: list them once": metric("seed = 1"),
    "probability must be a finite number; it was nan": metric("mask-probability = nan"),
    "seeds must be one or more, each once": "seeds = []",
    "the seed must be 0 or larger": "seeds = [1, -1]",
    r"seeds\[0\]: input should be a valid integer; it was true": "seeds = [true]",
    r"each once; they were \(1, 2, 1\)": "seeds = [1, 2, 1]",
    "unknown baseline 'int8'; known: embedded: name one of the models": 'baseline = "int8"',
    "pass below must be a finite number; it was '5'": 'pass-below = "5"',
    "the border of PASS must lie below that of AT_RISK": "pass_below = 5",
}


def test_what_is_wrong_is_said_with_its_place(tmp_path):
    """Beside entries that are right, of each list that the wrong part does not have."""
    for message, wrong in BAD.items():
        right = {
            name: own for name, own in LEAST.items() if not re.match(rf"(\[\[|#)?{name}\b", wrong)
        }
        # A comment in place of a list, so that lines have their numbers.
        lines = [f'{name} = ["{right[name][0]}"]' if name in right else "#" for name in LEAST]
        with pytest.raises(FillmaskError, match=f"mine.toml.*{message}"):
            read_sweep(written(tmp_path, "\n".join([*lines, wrong])))


def test_the_key_of_a_cell_holds_what_its_numbers_depend_on():
    def key(**changes):
        (cell,) = sweep_of({**LEAST, **changes}, "x").cells
        return cell.key

    plain = key()
    assert plain == key(name="other", models=[{"model": "embedded", "label": "b"}], risk_below=0.2)
    changed = [
        key(seeds=[1]),
        key(models=["embedded:int8"]),
        key(models=[{"model": "embedded", "threads": 1}]),
        key(data=[{"dataset": "embedded", "samples": 5}]),
        key(metrics=["uniform"]),
        key(metrics=[{"metric": "cross-entropy", "max-tokens": 9}]),
        key(metrics=[{"metric": "cross-entropy", "batch-tokens": 9}]),
        key(metrics=[{"metric": "cross-entropy", "whole-word": True}]),
    ]
    assert len({plain, *changed}) == 9
