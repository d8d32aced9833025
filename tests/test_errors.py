"""What reading a thing from outside raises is told as the thing's; the rest as a bug."""

import gzip
import json
import re
import sys

import onnx
import pytest
from safetensors import safe_open
from tokenizers import Tokenizer

from fillmask_ui.errors import (
    BUG,
    DataError,
    FillmaskError,
    TextError,
    explain,
    how_to_install,
    opening,
)


@pytest.mark.parametrize(
    "read",
    [
        lambda path: (path / "inside").stat(),
        lambda path: json.loads(path.read_bytes()),
        lambda path: path.read_text("utf-8"),
        lambda path: gzip.decompress(gzip.compress(path.read_bytes())[:-9]),
        lambda path: safe_open(path, "numpy"),
        lambda path: Tokenizer.from_file(str(path)),
        lambda path: onnx.load(path),
    ],
    ids=["OSError", "json", "UTF-8", "gzip", "safetensors", "tokenizers", "onnx"],
)
def test_what_libraries_raise_is_of_the_file(tmp_path, read):
    (tmp_path / "it").write_bytes(b"\xff = [\n" * 9)
    wanted = pytest.raises(DataError, match=r"^it cannot be read as texts: .+")
    with wanted as caught, opening("texts", "it"):
        read(tmp_path / "it")
    assert explain(caught.value)[1] == 1


@pytest.mark.parametrize(
    ("mistake", "kind"),
    [
        (lambda: {}["rows"], KeyError),
        (lambda: int("x"), ValueError),
        (lambda: None + 1, TypeError),
        (lambda: (_ for _ in ()).throw(KeyboardInterrupt), KeyboardInterrupt),
        (lambda: (_ for _ in ()).throw(TextError("own words")), TextError),
    ],
)
def test_what_is_raised_here_stays_what_it_is(mistake, kind):
    with pytest.raises(kind) as caught, opening("texts", "it"):
        mistake()
    if not isinstance(caught.value, FillmaskError | KeyboardInterrupt):
        said, code = explain(caught.value)
        assert code == BUG
        assert "please report it" in said


def test_a_library_that_is_not_whole_is_no_bug():
    import types

    errors = [
        lambda: __import__("json.nothing"),
        lambda: types.ModuleType("torch").Tensor,
    ]
    for cause, name in zip(errors, ("json", "torch"), strict=True):
        with pytest.raises((ImportError, AttributeError)) as caught:
            cause()
        message, code = explain(caught.value)
        assert code == 1 and f"the library {name} is not installed whole" in message


def test_an_extra_is_installed_into_this_checkout():
    assert re.search(r'^pip install -e ".+\[hub\]"$', how_to_install("hub"))
    if sys.platform == "linux":
        assert "download.pytorch.org/whl/cpu" in how_to_install("torch")
