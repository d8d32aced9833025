"""What a broken model, a killed process or a slip may bring, and how the command has to end."""

import gzip
import json
import os
import shlex
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from stored_runs import record_at

from fillmask_ui.cli.main import commands

Make = Callable[[Path, Path], object]


@dataclass(frozen=True)
class Attempt:
    """One command line; `{}` in it is the folder of the test."""

    name: str
    command: str  # arguments of `fillmask-ui`, quoted as in a shell
    words: tuple[str, ...]  # of the message, or of standard output with code 0
    code: int  # wanted exit code: 0 done, 1 a failure outside the input, 2 wrong input
    make: Make | None = None  # called with the folder of the test, and that of a tiny model


def _put(name: str, content: bytes | str) -> Make:
    """A file in the folder of the test."""

    def make(folder: Path, model: Path) -> None:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)

    return make


# Models: a copy of the tiny one as `m`, then changed.
def _copied(change: Callable[[Path], object]) -> Make:
    def make(folder: Path, model: Path) -> None:
        shutil.copytree(model, folder / "m")
        change(folder / "m")

    return make


def _cut(name: str, share: float) -> Make:
    return _copied(lambda m: os.truncate(m / name, int((m / name).stat().st_size * share)))


def _bytes(name: str, content: bytes) -> Make:
    return _copied(lambda m: (m / name).write_bytes(content))


def _without(names: str) -> Make:
    return _copied(lambda m: [path.unlink() for path in m.glob(names)])


def _edit(path: Path, **changes: object) -> None:
    """Other values in a JSON file."""
    path.write_text(json.dumps(json.loads(path.read_text("utf-8")) | changes), "utf-8")


def _tensors(change: Callable[[dict[str, Any]], object]) -> Make:
    def edit(folder: Path) -> None:
        from safetensors.numpy import load_file, save_file

        tensors = load_file(folder / "model.safetensors")
        change(tensors)
        save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})

    return _copied(edit)


def _graph(change: Callable[[Any], object]) -> Make:
    def edit(folder: Path) -> None:
        import onnx

        graph = onnx.load(folder / "onnx" / "model.onnx")
        change(graph)
        onnx.save(graph, folder / "onnx" / "model.onnx")

    return _copied(edit)


def _behind(operator: str, **attributes: Any) -> Make:
    """One more operator on the logits."""

    def change(model: Any) -> None:
        from onnx import TensorProto, helper

        name = model.graph.output[0].name
        model.graph.node.append(helper.make_node(operator, [name], ["changed"], **attributes))
        del model.graph.output[:]
        output = helper.make_tensor_value_info("changed", TensorProto.FLOAT, None)
        model.graph.output.append(output)

    return _graph(change)


def _elsewhere(model: Any) -> None:
    tensor = model.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = 1  # EXTERNAL
    tensor.external_data.add(key="location", value="../../../../etc/passwd")


def _parts(parts: object) -> Make:
    def divide(folder: Path) -> None:
        (folder / "model.safetensors").rename(folder.parent / "outside.safetensors")
        index = json.dumps({"weight_map": parts})
        (folder / "model.safetensors.index.json").write_text(index)

    return _copied(divide)


def _fast(folder: Path, **more: object) -> None:
    """Of its own class transformers would rebuild the tokenizer from the vocabulary alone."""
    _edit(folder / "tokenizer_config.json", tokenizer_class="PreTrainedTokenizerFast", **more)


def _panic(folder: Path) -> None:
    """An expression that backtracks, at which the library in Rust panics."""
    split = {"type": "Split", "behavior": "Isolated", "invert": False}
    _edit(folder / "tokenizer.json", pre_tokenizer=split | {"pattern": {"Regex": "(a+)+$"}})
    _fast(folder)


def _without_mask(folder: Path) -> None:
    path = folder / "tokenizer.json"
    path.write_text(path.read_text("utf-8").replace("[MASK]", "[HIDE]"), "utf-8")
    _fast(folder, mask_token=None)


def _code(folder: Path) -> None:
    (folder / "modeling_own.py").write_text("open('harm', 'w')\nraise SystemExit(9)\n")
    _edit(folder / "config.json", auto_map={"AutoModelForMaskedLM": "modeling_own.Own"})


def _pickled(folder: Path) -> None:
    shutil.rmtree(folder / "onnx")
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")


def _classifier(tensors: dict[str, Any]) -> None:
    for name in [name for name in tensors if name.startswith("cls.")]:
        tensors["classifier." + name.rpartition(".")[2]] = tensors.pop(name)


def _another_layer(tensors: dict[str, Any]) -> None:
    layer = "bert.encoder.layer.1."
    more = {
        n.replace(".1.", ".2.", 1): tensor for n, tensor in tensors.items() if n.startswith(layer)
    }
    tensors.update(more)


def _narrow(tensors: dict[str, Any]) -> None:
    name = "bert.embeddings.position_embeddings.weight"
    tensors[name] = tensors[name][:7].copy()


def _model(
    name: str, make: Make, *words: str, runtime: str = "torch", code: int = 1, text: str = "A"
) -> Attempt:
    command = f"predict -m {{}}/m --runtime {runtime} '{text} [MASK].'"
    return Attempt(name, command, words, code, make)


_onnx = partial(_model, runtime="onnx")


def _config(name: str, *words: str, **changes: object) -> Attempt:
    edit = _copied(lambda m: _edit(m / "config.json", **changes))
    return _model(f"config.json: {name}", edit, *words)


_AS_MODEL = "cannot be read as a model: "
_MODELS = [
    _model("safetensors cut short", _cut("model.safetensors", 0.9), _AS_MODEL, "header"),
    _onnx("ONNX cut short", _cut("onnx/model.onnx", 0.5), "model.onnx"),
    _onnx("no tokenizer", _without("tokenizer*"), "no tokenizer beside it"),
    _onnx("tokenizer.json cut short", _cut("tokenizer.json", 0.5), "cannot be read as a tokenizer"),
    _onnx("a tokenizer that panics", _copied(_panic), "as a tokenizer", text=60 * "a" + "!"),
    _onnx("a tokenizer without a mask", _copied(_without_mask), "no mask token"),
    _model("config.json: a list", _bytes("config.json", b"[1]"), "cannot be read as a model"),
    _config("a size in words", _AS_MODEL, "hidden_size", hidden_size="large"),
    _config("BART", "choose a model for fill-mask", architectures=["BartForConditionalGeneration"]),
    _model("code beside the weights", _copied(_code), "probability", code=0),
    _model("a sequence classifier", _tensors(_classifier), "lacks", "random numbers"),
    _model("one more layer", _tensors(_another_layer), "does not use", "number of layers"),
    _model("shapes that differ", _tensors(_narrow), "do not have the shapes of its config.json"),
    _model(
        "parts outside the folder", _parts({"x": "../outside.safetensors"}), "not in its folder"
    ),
    _model("parts that are a list", _parts(["x"]), "index.json does not name .safetensors files"),
    _model("pickles alone", _copied(_pickled), "can run any code"),
    _onnx("weights outside the folder", _graph(_elsewhere), "outside the folder", "never read"),
    _onnx("an unknown operator", _behind("NoSuchOperator"), "NoSuchOperator"),
    _onnx("probabilities for logits", _behind("Softmax", axis=-1), "returns probabilities"),
    _onnx("transposed logits", _behind("Transpose", perm=[1, 0, 2]), "no masked language model"),
    _onnx("random logits", _behind("RandomNormalLike"), "other logits each time"),
]

# Texts.
_LINE = b"The cat sat on the mat today.\n"
_EVAL = "eval --json --samples 2 --max-tokens 16 "


def _texts(
    file: str, content: bytes, *words: str, code: int = 1, more: str = "", name: str = ""
) -> Attempt:
    """An evaluation of a file of this name and content."""
    command = f"{_EVAL} --dataset {{}}/{file} {more}"
    return Attempt(f"texts: {name or words[0]}", command, words, code, _put(file, content))


_TEXTS = [
    _texts("a.txt", b"", "is empty"),
    _texts("a.txt", "café au lait\n".encode("latin-1"), "not UTF-8", name="Latin-1"),
    _texts("a.jsonl", b'{"text": NaN}\n', "float", "instead of text"),
    _texts("a.txt.gz", gzip.compress(_LINE * 9, mtime=0)[:-9], "Compressed file ended"),
    _texts("a.parquet", b"PAR1" + bytes(99) + b"PAR1", "as texts", name="parquet"),
    Attempt("no texts there", _EVAL + "--dataset {}/a.txt", ("a.txt cannot be read as texts",), 1),
]

# A slip on the command line, in a folder that holds one of everything.
_TOML = 'models = ["embedded"]\nmetrics = ["uniform"]\ndata = ["{}"]\n'
LONG = {"long": "word " * 20_000, "long_masks": "[MASK] " * 600}
_TWICE = "it was named twice"
_TRAIN = "train --text {}/a.txt --init {}/m"


def _setting(folder: Path, model: Path) -> None:
    _put("a.txt", _LINE)(folder, model)
    _put("t/u/a.txt", _LINE)(folder, model)
    (folder / "link.json").symlink_to("a.txt")
    for name, more in (("a.txt", ""), ("t", 'baseline = "embedded"\n')):
        _put(f"{name[0]}.toml", more + _TOML.format(folder / name))(folder, model)
    shutil.copytree(model, folder / "m")
    record_at(folder / "runs" / "good")


# Files that would be replaced, or cannot be written.
_IN_USE = [
    ("eval --dataset {}/a.txt -o {}/a.txt", _TWICE),
    ("eval --dataset {}/a.txt -o {}/link.json", _TWICE),
    ("eval --dataset {}/t/u -o {}/t/u/a.txt", "one of the texts"),
    ("eval --dataset {}/t -o {}/t/u/a.txt", "one of the texts"),
    ("eval -o {}", "it is a folder"),
    ("eval -o {}/none/a.json", "no folder"),
    ("sweep {}/a.toml --csv {}/a.toml", _TWICE),
    ("sweep {}/a.toml --csv {}/s.csv --html {}/./s.csv", _TWICE),
    ("sweep {}/a.toml --csv {}/no/where.csv", "no folder"),
    ("unmask '[MASK]' --file {}/a.txt --history {}/a.txt", _TWICE),
    ("unmask '[MASK]' --history {}/m/onnx/model.onnx", "a file of a model"),
    ("site {}/a.txt", "is a file: name a folder"),
    ("site {}/t", "exists and holds u: name another folder, or use --force"),
    ("report good -o {}/m/config.json", "a file of a model"),
    ("runs export good -o {}/runs/good/rows.jsonl", "part of a stored run"),
    ("runs export good --format csv -o {}/a.parquet", "ends with .parquet"),
    ("quantize {}/m -o {}/m/v --scheme int8 --no-measure", "in the folder of the model"),
    (f"{_TRAIN} -o {{}}/m --steps 1", "m holds a model"),
]
_WRONG = [
    ("predict '{long_masks}'", "takes at most 512"),
    ("predict 'A [MASK].' --candidates \u200b", "has no tokens"),
    ("predict 'A [MASK].' --device abacus", "known: coreml, cpu, cuda, dml, gpu"),
    ("predict 'A [MASK].' --device cuda:x", "a name, or a name, a colon and a number"),
    ("predict 'A [MASK].' --device cpu --provider-option a=b", "CPU takes no provider options"),
    ("predict 'A [MASK].' --device qnn --provider-option a", "'a' is not KEY=VALUE"),
    ("predict --file '{long_masks}'", "no file '[MASK]"),
    ("surprise 'a [MASK]'", "the text has a mask"),
    ("layers ' '", "the text is empty"),
    ("layers 'a [MASK]' --top-k 0", "from 1 to 100"),
    ("surprise '{long}'", "20,002 tokens and this model takes at most 512"),
    ("unmask --length 9999", "at most 512"),
    ("unmask --prefix a", "--new-tokens goes with --prefix"),
    ("unmask --length 3 --prefix a --new-tokens 2", "exclude each other: give one of them"),
    ("unmask 'a [MASK]' --length 3", "give one of them"),
    ("unmask 'a [MASK]' 'a [MASK]' --history h", "--history keeps one text"),
    ("unmask 'a [MASK]' --temperature nan", "temperature"),
    ("eval --pass-below -1", "--pass-below must be at least 0"),
    ("eval --workers 2", "--workers is about Ray: add --engine ray, or leave it out"),
    ("sweep {}/a.toml --fail-on fail", "unknown verdict to fail on"),
    ("sweep {}/a.toml --fail-on regression", "with baseline in the sweep file"),
    (f"{_TRAIN} -o {{}}/run --minutes inf", "minutes must be"),
    (f"{_TRAIN} -o {{}}/run --steps 1 --block-tokens 30000", "the longest text"),
    ("site ' '", "DIR is empty"),
    ("site {}/out --frozen {}/none.txt", "none.txt"),
    ("learn nothing", "5 ledger"),
    ("--port 99999", "65535"),
]
_MISSING = [
    ("predict 'A [MASK].' --model missing.onnx", "missing.onnx"),
    ("predict 'A [MASK].' --baseline ''", "the model reference is empty"),
    ("site {}/out -m nowhere", "nowhere"),
    ("predict --file /proc/self/mem", "'/proc/self/mem' cannot be read as texts: Input/output"),
]


def _frozen(lines: bytes, words: str, code: int) -> Attempt:
    command = "site {}/out --frozen {}/s.txt"
    return Attempt(f"a frozen page: {words}", command, (words,), code, _put("s.txt", lines))


_SLIPS = [
    *(Attempt(command, command, (word,), 2, _setting) for command, word in _IN_USE),
    *(Attempt(command, command, (word,), 2, _setting) for command, word in _WRONG),
    *(Attempt(command, command, (word,), 1) for command, word in _MISSING),
    _frozen(b"\n \n", "has no text", 1),
    _frozen(b"a " * 600, "takes at most 512", 2),
]


# Stored runs: of a process that was killed, of other versions, or not there.
def _stored(change: Callable[[Path], object] = lambda run: None) -> Make:
    def make(folder: Path, model: Path) -> None:
        record_at(folder / "runs" / "good")
        record_at(folder / "runs" / "broken")
        change(folder / "runs" / "broken")

    return make


def _info(**changes: object) -> Make:
    return _stored(lambda run: _edit(run / "run.json", **changes))


def _rows(change: Callable[[bytes], bytes]) -> Make:
    def rewrite(run: Path) -> None:
        (run / "rows.jsonl").write_bytes(change((run / "rows.jsonl").read_bytes()))

    return _stored(rewrite)


def _run(name: str, command: str, make: Make, *words: str, code: int = 1) -> Attempt:
    return Attempt(f"a run {name}", command, words, code, make)


_RUNS = [
    _run("with half a row", "runs show broken", _rows(lambda r: r[:-9]), "has the rows of 40"),
    _run("without rows", "report broken -o {}/a.html", _rows(lambda r: b""), "has the rows of 0"),
    _run("with a torn row", "runs show broken", _rows(lambda r: r.replace(b"}", b"", 1)), "line 1"),
    _run("with a row twice", "runs export broken", _rows(lambda r: r + r), "repeats text"),
    _run("of another protocol", "runs show broken", _info(protocol=99), "protocol 99"),
    _run("of a later metric", "runs show broken", _info(config={"metric": "x"}), "run broken"),
    _run(
        "cut short", "runs show broken", _stored(lambda r: os.truncate(r / "run.json", 9)), "JSON"
    ),
    _run("beside a broken one", "runs list", _info(protocol=99), "good", code=0),
    _run("broken and deleted", "runs delete broken -y", _info(protocol=99), "deleted", code=0),
]


# Sweep files and records of trainings.
def _sweep(content: str, *words: str, code: int = 2) -> Attempt:
    file = _put("s.toml", content)
    return Attempt(f"a sweep: {content[:30]}", "sweep {}/s.toml", words, code, file)


def _record(name: str, file: str, content: str, *words: str) -> Attempt:
    counts = dict.fromkeys(("characters", "parameters", "segments", "tokens", "vocabulary_size"), 9)
    lists: dict[str, Any] = {key: [] for key in ("texts", "missing_in_init", "earlier")}
    maps: dict[str, Any] = {key: {} for key in ("dropout", "segment_form", "versions")}
    start = {"init": None, "config": "c.json", "requested_vocabulary_size": None}
    maps["recipe"] = {"steps": 1}

    def change(folder: Path) -> None:
        (folder / "run.json").write_text(json.dumps(lists | maps | counts | start))
        (folder / file).write_text(content)

    return Attempt(f"a training {name}", "package {}/m -o {}/out", words, 1, _copied(change))


_FILES = [
    _sweep('modles = ["embedded"]', "unknown key 'modles'; did you mean 'models'"),
    _sweep(f"seeds = [{'9' * 5000}]", "TOML", code=1),
    _record("cut short", "run.json", '{"texts": [', "run.json: invalid JSON"),
    _record("of other types", "run.json", '{"texts": 7, "characters": 1}', "run.json"),
    _record("of half a log", "log.jsonl", '{"step": 1}\n', "log.jsonl"),
]

ATTEMPTS = [*_MODELS, *_TEXTS, *_SLIPS, *_RUNS, *_FILES]
if Path("/dev/full").exists():
    _FULL = ("cannot be written", "no space left")
    _KEPT = "eval --json --samples 2 --max-tokens 16 -o /dev/full"
    ATTEMPTS += [
        Attempt("a full disk", _KEPT, (*_FULL, "is kept as"), 1),
        Attempt("a full disk of a history", "unmask '[MASK]' --history /dev/full", _FULL, 1),
    ]


def _files(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


# Without a feature there is nothing to attempt with its commands.
ATTEMPTS = [
    attempt
    for attempt in ATTEMPTS
    if (command := attempt.command.split()[0]) in commands() or command.startswith("-")
]


@pytest.mark.parametrize("attempt", ATTEMPTS, ids=lambda attempt: attempt.name[:60])
def test_an_attempt_ends_well(attempt: Attempt, fillmask, tmp_path, tiny_models, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    if attempt.make is not None:
        attempt.make(tmp_path, tiny_models.folder("bert"))
    before = _files(tmp_path)
    result = fillmask(*(word.format(tmp_path, **LONG) for word in shlex.split(attempt.command)))
    output = result.stderr if attempt.code else result.stdout
    assert result.returncode == attempt.code, result.stdout + result.stderr
    assert "Traceback" not in result.stderr
    for word in attempt.words:
        assert word.lower() in " ".join(output.lower().split())
    after = _files(tmp_path)
    assert not (tmp_path / "harm").exists()
    if attempt.code:
        assert {path: after.get(path) for path in before} == before
    if attempt.code == 2:
        assert after.keys() == before.keys()
        assert result.stdout == ""
