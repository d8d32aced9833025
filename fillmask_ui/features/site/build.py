"""A folder that any static host serves: Explore with its model in the browser, or numbers alone.

The page is Explore's own: its scripts ask a worker what they ask a server elsewhere, and the worker
fills in the same templates. A frozen page has no scripts and no model.
"""

import gzip
import hashlib
import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from fillmask_ui import __version__
from fillmask_ui.errors import FillmaskError, OptionError
from fillmask_ui.features.site.scripts import HERE, NpmError, read_pack
from fillmask_ui.files import user_folder
from fillmask_ui.filling import MAX_TOP_K, fill, surprisal
from fillmask_ui.filling.prompt import encode_text
from fillmask_ui.models.model_store import ModelStore
from fillmask_ui.models.onnx_model import ASKED, OnnxMaskedLM
from fillmask_ui.models.vocabulary import SubwordPrefixes, tokenizer_json
from fillmask_ui.show.answers import LOSSES
from fillmask_ui.show.displays import DISPLAYS
from fillmask_ui.show.render import render, sources
from fillmask_ui.text_words import UNSPACED
from fillmask_ui.ui.explore.examples import EXAMPLE_SETS, EXAMPLES
from fillmask_ui.ui.explore.explore_modes import MODES
from fillmask_ui.ui.explore.explore_state import Json, Question
from fillmask_ui.ui.explore.prediction_view import answer, model_name
from fillmask_ui.ui.page_files import core_folders
from fillmask_ui.ui.page_files import sources as page_sources
from fillmask_ui.ui.session import Session

# What the worker fills in; what these include comes along.
_TEMPLATES = (
    *(f"page/{name}.html" for name in ("bars", "surprise")),
    *(f"explore/{name}.html" for name in ("strip", "tokens", "stats", "candidates", "scored")),
    *(f"explore/guess_{part}.html" for part in ("chips", "result")),
    *(f"explore/surprise_{part}.html" for part in ("table", "word")),
)
_MODES = tuple(mode for mode in MODES if mode.name in ("", "guess"))
_PACKED = ("ort.wasm", "minijinja.wasm")  # gzip, as many hosts send files as they are


# Of a signature: what stands in place of this machine.
_VERSIONS = json.loads((HERE / "package.json").read_bytes())["dependencies"]
_READERS = ("@huggingface/tokenizers", "onnxruntime-web")
_BROWSER: dict[str, Any] = {
    "device": "WebAssembly",
    "versions": {"fillmask-ui": __version__} | {name: _VERSIONS[name] for name in _READERS},
    "cpu_features": (),
}


def build(reference: str, title: str) -> dict[str, bytes]:
    """The files of the page by name, with the model of a reference.

    Raises:
        ModelError: if the model cannot be loaded, or its graph takes texts of one shape alone.
        OptionError: if it does not run on ONNX Runtime, or npm's packages cannot be had.
    """
    session = Session(ModelStore(), reference)
    model = session.model("")
    if not isinstance(model, OnnxMaskedLM):
        raise OptionError(
            f"{model.signature.name} runs on {model.signature.runtime}, and a browser runs ONNX: "
            "write it as that first, by fillmask-ui export"
        )
    try:
        files = read_pack(user_folder("cache"))
    except NpmError as error:
        raise OptionError(f"{error}: install Node.js, which brings npm, and try again") from error
    graph = model.portable()
    tokenizer = json.loads(
        tokenizer_json(model.files.tokenizer or model.files.folder, model.signature.name)
    )
    files |= {f"{name}.gz": _gzip(files.pop(name)) for name in _PACKED}
    files |= {"model.onnx.gz": _gzip(graph.content)}
    files |= {"data.json.gz": _gzip(_json(_spelling(model, tokenizer)))}
    config = {
        "name": model.signature.name,
        "label": model_name(model),
        "signature": str(replace(model.signature, **_BROWSER)),
        "vocabulary_size": model.signature.vocabulary_size,
        "max_tokens": model.max_tokens,
        "inputs": graph.inputs,
        "asked": ASKED if graph.is_cut else None,
        "output": graph.output,
        "alone": not model.shares_padding,
        "first_position": graph.first_position,
        "levels": LOSSES.borders,
        "labels": {unit: LOSSES.labels(unit) for unit in ("nats", "bits")},
        "bytes": sum(len(files[name]) for name in files if name.endswith(".gz")),
    }
    plain: Json = {"text": EXAMPLES[0].text, "model": reference, "compare": "", "top_k": 10}
    plain |= {"words": "", "unit": "nats"}
    first = answer(session, Question(**plain)).to_dict() | {"text": plain["text"]}
    files["page.css"] = "".join(page_sources([*core_folders("explore"), HERE], "css")).encode()
    page = render(
        "site/site.html",
        title=title,
        config=config,
        sets=EXAMPLE_SETS,
        **plain,
        first=first,
        plain=json.dumps(plain),
        modes=_MODES,
        max_top_k=MAX_TOP_K,
        downloads=["JSON"],
    )
    files["index.html"] = page.encode()
    version = hashlib.sha256(b"\0".join(files[name] for name in sorted(files))).hexdigest()[:12]
    files["config.json"] = _json(config | {"version": version})
    cached = ["./", *sorted(name for name in files if name not in ("index.html", "sw.js"))]
    begin = f"const VERSION = {json.dumps(version)}, FILES = {json.dumps(cached)};\n"
    return files | {"sw.js": begin.encode() + files["sw.js"]}


def freeze(reference: str, title: str, texts: Sequence[str]) -> dict[str, bytes]:
    """One page with the answers for some texts, without scripts or a model."""
    model, answers = ModelStore().get(reference), []
    for text in texts:
        try:
            masked = model.vocabulary.mask_id in encode_text(model.vocabulary, text).ids
            record = fill(model, text, top_k=10) if masked else surprisal(model, text)
        except FillmaskError as error:
            raise type(error)(f"{text[:60]!r}: {error}") from error
        answers.append((record.encoding.text, [*DISPLAYS[type(record)].html(record)]))
    values = {"title": title, "answers": answers, "signature": model.signature}
    return {"index.html": render("site/frozen.html", **values).encode()}


def _spelling(model: OnnxMaskedLM, tokenizer: dict[str, Any]) -> dict[str, Any]:
    """The tokenizer, how each token reads, and the templates."""
    vocabulary = model.vocabulary
    ids = range(vocabulary.size)
    words = {token_id: vocabulary.word(token_id) for token_id in ids}
    return {
        "tokenizer": tokenizer,
        "sources": sources(*_TEMPLATES),
        "words": {
            token_id: word for token_id, word in words.items() if word != vocabulary.token(token_id)
        },
        "endings": [token_id for token_id in ids if vocabulary.is_continuation(token_id)],
        "prefix": SubwordPrefixes.of(map(vocabulary.token, ids)).mark,
        "unspaced": UNSPACED.pattern,
        "mask_token": vocabulary.mask_token,
        "mask_id": vocabulary.mask_id,
        "pad_id": vocabulary.pad_id,
        "unk_id": vocabulary.unk_id,
        "special_ids": sorted(vocabulary.special_ids),
    }


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def _gzip(content: bytes) -> bytes:
    """Packed; the same each time."""
    return gzip.compress(content, compresslevel=9, mtime=0)
