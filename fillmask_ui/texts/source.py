"""Which texts are meant: every choice in one record, and its signature."""

from __future__ import annotations

import codecs
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from fillmask_ui.errors import OptionError, unknown
from fillmask_ui.texts.lines import is_file, is_folder

EMBEDDED, FILE, STDIN, DATASET = "embedded", "file", "stdin", "dataset"
KINDS = (EMBEDDED, FILE, STDIN, DATASET)
LINE, PARAGRAPH = "line", "paragraph"
UNITS = (LINE, PARAGRAPH)
FORMATS = ("txt", "csv", "tsv", "jsonl", "parquet")
# Other endings under which the same formats are found.
_ENDINGS = {**{name: name for name in FORMATS}, "text": "txt", "ndjson": "jsonl", "pq": "parquet"}


@dataclass(frozen=True)
class TextSource:
    """Which texts to read; `text_source` fills it in from what a user types.

    Attributes:
        kind: `embedded`, `file`, `stdin` or `dataset`.
        where: path of a file, id (or folder) of a Hugging Face data set; else empty.
        column: which column holds the text; None for `text`, or the only one there is.
        config: configuration of a data set (the published command's `--dataset-name`).
        split: of a data set; slices such as `test[:10%]` work where it is not streamed.
        revision: branch, tag or commit of a data set.
        streaming: read a data set over the network while it is used, without storing it.
        samples: at most so many texts; None for all.
        shuffle: whether the texts come in the order of a seeded permutation.
        seed: of that permutation.
        by: for plain text, `line` or `paragraph` (separated by blank lines).
        encoding: of text files and standard input; a byte order mark is dropped.
        format: of a file or standard input: txt, csv, tsv, jsonl or parquet; None for what the
            file's name says.

    Raises:
        OptionError: for values that are not known or out of range.
    """

    kind: str = EMBEDDED
    where: str = ""
    column: str | None = None
    config: str | None = None
    split: str = "test"
    revision: str | None = None
    streaming: bool = False
    samples: int | None = None
    shuffle: bool = True
    seed: int = 42
    by: str = LINE
    encoding: str = "utf-8"
    format: str | None = None

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise OptionError(unknown("kind of texts", self.kind, KINDS))
        if self.by not in UNITS:
            raise OptionError(unknown("unit of text", self.by, UNITS))
        if self.format is not None and self.format not in FORMATS:
            raise OptionError(unknown("format", self.format, FORMATS))
        if self.kind in (FILE, DATASET) and not self.where:
            raise OptionError(f"texts from a {self.kind} need its name; it was empty")
        if self.samples is not None and self.samples < 1:
            raise OptionError(
                f"the number of samples must be 1 or more; it was {self.samples} "
                "(leave it out for all texts)"
            )
        if self.seed < 0:
            raise OptionError(f"the seed must be 0 or more; it was {self.seed}")
        self._check_encoding()
        layout = self.layout
        if self.by == PARAGRAPH and layout != "txt":
            raise OptionError(
                "only plain text is read by paragraph; rows of "
                f"{layout or 'a data set'} are one text each: leave the unit at 'line'"
            )
        if self.kind == STDIN and layout == "parquet":
            raise OptionError("parquet cannot be read from standard input; give it as a file")
        if self.column is not None and layout == "txt":
            raise OptionError(
                f"plain text has no columns, but column {self.column!r} was asked for; leave it "
                "out or say which format it is (csv, tsv or jsonl)"
            )

    def _check_encoding(self) -> None:
        try:
            "a".encode(self.encoding)  # refuses codecs that are not for text, such as `hex`
            codecs.getincrementaldecoder(self.encoding)
        except (LookupError, ValueError) as error:
            raise OptionError(
                f"unknown encoding {self.encoding!r}; common ones: utf-8, utf-16, latin-1, "
                "cp1252, shift_jis, gb18030"
            ) from error

    @property
    def layout(self) -> str | None:
        """The format that applies: the one asked for, else what the name says; None for a data set.

        Raises:
            OptionError: if the name of a file has no known ending.

        >>> TextSource("file", "news.csv.gz").layout
        'csv'
        """
        if self.kind == EMBEDDED:
            return "jsonl"
        if self.kind == DATASET:
            return None
        if self.format is not None:
            return self.format
        if self.kind == STDIN:
            return "txt"
        ending = Path(self.where.lower().removesuffix(".gz")).suffix.removeprefix(".")
        if ending not in _ENDINGS:
            hint = "; a .json file with one object a line is called .jsonl"
            raise OptionError(
                f"{self.where}: {unknown('kind of file', ending, _ENDINGS)} "
                f"(also .gz of the text ones){hint if ending == 'json' else ''}; "
                "rename the file or say its format"
            )
        return _ENDINGS[ending]

    @property
    def compressed(self) -> bool:
        """Whether a file is read through gzip."""
        return self.kind == FILE and self.where.lower().endswith(".gz")

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON-ready values; `TextSource(**values)` gives the source back."""
        return asdict(self)

    def __str__(self) -> str:
        """The signature: every choice that decides which texts come, in which order.

        >>> str(TextSource("dataset", "org/name", config="small", samples=100))
        'texts:org/name|config:small|split:test|samples:100|shuffle:42'
        """
        parts = [f"texts:{self.where or self.kind}"]
        if self.kind == DATASET:
            named = {"config": self.config, "split": self.split, "revision": self.revision}
            parts += [f"{name}:{value}" for name, value in named.items() if value]
            parts += ["streaming"] if self.streaming else []
        if self.column:
            parts.append(f"column:{self.column}")
        if self.by != LINE:
            parts.append(f"by:{self.by}")
        if self.encoding.lower() != "utf-8":
            parts.append(f"encoding:{self.encoding}")
        if self.format:
            parts.append(f"format:{self.format}")
        parts.append(f"samples:{'all' if self.samples is None else self.samples}")
        parts.append(f"shuffle:{self.seed if self.shuffle else 'no'}")
        return "|".join(parts)


def text_source(reference: str = EMBEDDED, **choices: Any) -> TextSource:
    """The source that a reference as typed means.

    Args:
        reference: `embedded`; `-` for standard input; the path of a file; else the id of a
            Hugging Face data set, or a folder that the datasets library can load.
        choices: the other attributes of `TextSource`; those that are None keep their default.

    Raises:
        OptionError: for values that are not known or out of range.

    >>> text_source("reviews.csv", column="body").kind
    'file'
    >>> text_source("Salesforce/wikitext", config="wikitext-2-raw-v1").kind
    'dataset'
    >>> text_source("-", format="jsonl").kind
    'stdin'
    """
    given = {name: value for name, value in choices.items() if value is not None}
    if reference == EMBEDDED:
        return TextSource(EMBEDDED, **given)
    if reference == "-":
        return TextSource(STDIN, **given)
    path = Path(reference).expanduser()
    ending = Path(reference.lower().removesuffix(".gz")).suffix.removeprefix(".")
    if is_file(path) or (ending in _ENDINGS and not is_folder(path)):
        return TextSource(FILE, str(path), **given)
    return TextSource(DATASET, str(path) if is_folder(path) else reference, **given)


def parse_column(value: str | None) -> str | None:
    """The column that an option names: `input_column=text` as the published command has it.

    Raises:
        OptionError: for another role than `input_column`, or an empty name.

    >>> parse_column("input_column=text"), parse_column("body"), parse_column(None)
    ('text', 'body', None)
    """
    if value is None:
        return None
    role, separator, name = value.partition("=")
    if not separator:
        role, name = "input_column", value
    if role.strip() != "input_column" or not name.strip():
        raise OptionError(
            f"the column must be given as input_column=NAME (or just NAME); it was {value!r}"
        )
    return name.strip()
