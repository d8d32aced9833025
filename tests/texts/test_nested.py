"""Rows under a key of a JSON file, columns inside of columns, and tokens for texts.

Against `datasets.load_dataset("json", field=...)` and `flatten` of the same library.
"""

import json

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from text_files import read, texts_of

from fillmask_ui.errors import DataError
from fillmask_ui.texts import TextChoice, open_texts

ROWS = [
    {"id": 1, "text": "One.", "translation": {"en": "A dog.", "de": "Ein Hund."}},
    {"id": 2, "text": "Two.", "translation": {"en": "A cat.", "de": "Eine Katze."}},
]
TOKENS = [{"id": 1, "tokens": ["A", "dog", "ran", "."]}, {"id": 2, "tokens": []}]


@pytest.fixture
def theirs(tmp_path):
    """Rows of a file through the datasets library, flattened."""

    def load(path, **options):
        examples = datasets.load_dataset(
            "json",
            data_files=str(path),
            split="train",
            cache_dir=str(tmp_path / "cache"),
            **options,
        )
        return examples.flatten()

    return load


@pytest.mark.parametrize("indent", [None, 1])
def test_rows_under_a_key_are_those_of_the_datasets_library(tmp_path, theirs, indent):
    """datasets#372 and unitxt#1188: a list of rows, or lists by column, under a key."""
    by_column = {"id": [1, 2], "text": ["One.", "Two."]}
    path = tmp_path / "a.json"
    path.write_text(json.dumps({"version": "1", "data": ROWS, "columns": by_column}, indent=indent))
    for field in ("data", "columns"):
        assert (
            texts_of(path, field=field) == theirs(path, field=field)["text"][:] == ["One.", "Two."]
        )
    expected = [(0, "Ein Hund."), (1, "Eine Katze.")]
    examples = read(path, field="data", column="translation.de")
    assert [(example.id, example.text) for example in examples] == expected
    path.write_text(json.dumps({"result": {"rows": ROWS}}, indent=indent))
    assert texts_of(path, field="result.rows") == ["One.", "Two."]


@pytest.mark.parametrize(
    ("field", "message"),
    [
        ("rows", "unknown key of .* 'rows'; known: data, uneven, "),
        ("version", "holds neither a list of rows"),
        ("uneven", "or lists of one length"),
    ],
)
def test_a_key_without_rows_is_named(tmp_path, field, message):
    path = tmp_path / "a.json"
    path.write_text('{"version": "1", "data": [{"text": "a"}], "uneven": {"a": [1], "b": []}}')
    with pytest.raises(DataError, match=message):
        texts_of(path, field=field)


def nested_file(folder, kind):
    path = folder / f"a.{kind}"
    if kind == "jsonl":
        path.write_text("".join(f"{json.dumps(row)}\n" for row in ROWS))
    else:
        pq.write_table(pa.Table.from_pylist(ROWS), path)
    return path


@pytest.mark.parametrize("kind", ["jsonl", "parquet"])
def test_dotted_columns_are_those_of_flatten(tmp_path, theirs, kind):
    path = nested_file(tmp_path, kind)
    flat = theirs(nested_file(tmp_path, "jsonl"))
    for column in ("translation.en", "translation.de", "text"):
        assert texts_of(path, column=column) == flat[column][:]
    with pytest.raises(DataError, match=r"no column 'translation.fr'; it has .*'translation.en'"):
        texts_of(path, column="translation.fr")
    with pytest.raises(DataError, match="holds dict instead of text"):
        texts_of(path, column="translation")


def test_a_name_with_a_dot_is_itself_and_nothing_inside_of_null_is_empty(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"a.b": "flat", "a": {"b": "inside"}}\n{"a": null}\n{"a": {"b": "x"}}\n')
    assert texts_of(path, column="a.b") == ["flat", "", "x"]


@pytest.mark.parametrize("streaming", [False, True])
def test_nested_columns_and_tokens_of_a_data_set(tmp_path, streaming):
    """A folder that the library loads; its features say which columns lie inside of others."""
    features = datasets.Features(
        {
            "translation": datasets.Translation(languages=["en", "de"]),
            "tokens": datasets.Sequence(datasets.Value("string")),
        }
    )
    rows = {
        "translation": [row["translation"] for row in ROWS],
        "tokens": [row["tokens"] for row in TOKENS],
    }
    folder = tmp_path / "mine"
    folder.mkdir()
    data = datasets.Dataset.from_dict(rows, features=features)
    data.to_parquet(folder / "test.parquet")
    for column in ("translation.en", "translation.de"):
        texts = texts_of(folder, column=column, streaming=streaming)
        assert texts == data.flatten()[column][:]
    assert texts_of(folder, column="tokens", streaming=streaming) == ["A dog ran .", ""]


@pytest.mark.parametrize("kind", ["jsonl", "parquet"])
def test_tokens_are_joined_by_blanks_which_is_noted(tmp_path, kind):
    path = tmp_path / f"a.{kind}"
    if kind == "jsonl":
        path.write_text("".join(f"{json.dumps(row)}\n" for row in TOKENS))
    else:
        pq.write_table(pa.Table.from_pylist(TOKENS), path)
    warnings = []
    choice = TextChoice(str(path), column="tokens", shuffle=False)
    texts = open_texts(choice.source(), warn=warnings.append)
    assert len(warnings) == 1  # before the first text
    assert [example.text for example in texts] == [" ".join(row["tokens"]) for row in TOKENS]
    assert "column 'tokens' holds tokens; they are joined by blanks" in warnings[0]
    assert texts.report.notes == (*warnings,)
