"""Which texts are meant: as typed (`TextChoice`), and checked (`TextSource`)."""

from __future__ import annotations

from dataclasses import dataclass

from fillmask_ui.errors import OptionError, unknown
from fillmask_ui.files import expanded
from fillmask_ui.masking import check_seed
from fillmask_ui.options import check_options, option
from fillmask_ui.texts.files import ENDINGS, FORMATS, ending, is_data_set, is_file, is_folder

EMBEDDED, FILE, FOLDER, STDIN, DATASET = "embedded", "file", "folder", "stdin", "dataset"
LINE, PARAGRAPH = "line", "paragraph"
UNITS = (LINE, PARAGRAPH)
# Fields of `TextSource` for data sets alone.
_FETCHED = ("config", "split", "revision", "streaming")
# What separates fields of a table, by names that a command line and a signature can hold.
DELIMITERS = {"tab": "\t", "comma": ",", "semicolon": ";", "bar": "|"}
_NAMES_OF_DELIMITERS = {mark: name for name, mark in DELIMITERS.items()}
CSV_QUOTES, NO_QUOTES = "csv", "none"
QUOTINGS = (CSV_QUOTES, NO_QUOTES)


@dataclass(frozen=True)
class TextSource:
    """Which texts to read, in which order; the field names are those of run.json."""

    kind: str = EMBEDDED  # `embedded`, `file`, `folder` (of files), `stdin` or `dataset`
    # path of a file or folder, id (or folder) of a Hugging Face data set; else empty
    where: str = ""
    column: str | None = None  # of the text; None for `text`, or else the only one
    config: str | None = None  # configuration of a data set
    split: str = "test"  # of a data set; slices such as `test[:10%]` work where it is not streamed
    revision: str | None = None  # branch, tag or commit of a data set
    streaming: bool = False  # read a data set over the network without storing it
    samples: int | None = option(None, "At most so many texts; None for all.", least=1)
    shuffle: bool = True  # whether the texts come in the order of a seeded permutation
    seed: int = 42  # of that permutation
    by: str = LINE  # for plain text, `line` or `paragraph` (separated by blank lines)
    encoding: str = "utf-8"  # of text files and standard input; a byte order mark is dropped
    # format of the files or standard input; None to go by the names
    format: str | None = option(None, "Of files.", choices=FORMATS)
    # key under which the rows of a JSON file lie, such as `data` or `result.rows`
    field: str | None = None
    # between the fields of a table: a name of `DELIMITERS` or a character; None to find it
    delimiter: str | None = None
    # `csv` where quotation marks enclose fields of a table, `none` where they are text; None to
    # find it
    quoting: str | None = option(None, "Of tables.", choices=QUOTINGS)
    # Where a row is a pair, as the metric says, columns of the better and worse sentence and of a
    # text before them, each None for that of a known layout; None where it is a text.
    pairs: tuple[str | None, str | None, str | None] | None = None
    group_column: str | None = None  # of a value that groups the texts; None for no groups

    def __post_init__(self) -> None:
        if self.pairs is not None and self.column is not None:
            raise OptionError(
                f"a pair has two columns, and {self.column!r} is one: name them by "
                "--better-column NAME --worse-column NAME"
            )
        if self.by not in UNITS:
            raise OptionError(unknown("unit of text", self.by, UNITS))
        check_options(self)
        check_seed(self.seed)
        try:
            "a".encode(self.encoding)
        except (LookupError, ValueError) as error:
            raise OptionError(f"unknown encoding {self.encoding!r}") from error
        layout = "a data set" if self.kind == DATASET else self.layout
        if self.by == PARAGRAPH and layout not in ("txt", None):
            raise OptionError(f"only plain text is read by paragraph; leave it out for {layout}")
        if self.kind == STDIN and layout == "parquet":
            raise OptionError("parquet cannot be read from standard input; give it as a file")
        for name in (self.column, self.group_column):
            if name is not None and layout == "txt":
                raise OptionError(f"plain text has no column {name!r} (--format csv, ...)")
        if self.field is not None and layout not in ("jsonl", None):
            raise OptionError(f"--field names a key of a JSON file; leave it out for {layout}")
        if (self.delimiter or self.quoting) and layout not in ("csv", "tsv", None):
            raise OptionError(
                f"--delimiter and --quoting are of .csv and .tsv files; leave them out for {layout}"
            )
        mark = self.mark
        if mark is not None and (len(mark) != 1 or mark in '"\r\n'):
            raise OptionError(
                f"the delimiter must be one character, or {', '.join(DELIMITERS)}; it was "
                f"{self.delimiter!r}"
            )

    @property
    def layout(self) -> str | None:
        """The given format, else the one of the name; None for data sets and folders.

        >>> TextSource("file", "news.csv.gz").layout, TextSource("file", "notes").layout
        ('csv', 'txt')
        """
        if self.kind in (EMBEDDED, DATASET):
            return "jsonl" if self.kind == EMBEDDED else None
        if self.format is not None or self.kind == FOLDER:
            return self.format
        named = ending(self.where) or "txt"
        if named not in ENDINGS:
            raise OptionError(f"{unknown('kind of file', named, ENDINGS)}; or say it (--format)")
        return ENDINGS[named]

    @property
    def mark(self) -> str | None:
        """The character of the delimiter; None to find it."""
        return DELIMITERS.get(self.delimiter or "", self.delimiter)

    @property
    def compressed(self) -> bool:
        return self.kind == FILE and self.where.lower().endswith(".gz")

    def __str__(self) -> str:
        """The signature: every choice that decides which texts come, in which order.

        >>> str(TextSource("dataset", "org/name", config="small", samples=100))
        'texts:org/name|config:small|split:test|samples:100|shuffle:42'
        """
        parts: dict[str, object] = {"texts": self.where or self.kind}
        if self.kind == DATASET:
            parts |= {name: getattr(self, name) for name in _FETCHED}
        parts["column"] = self.column
        parts["pairs"] = self.pairs and ",".join(name or "known" for name in self.pairs[:2])
        parts["given"] = self.pairs and self.pairs[2]
        parts["group"] = self.group_column
        parts["by"] = self.by if self.by != LINE else None
        parts["encoding"] = self.encoding if self.encoding.lower() != "utf-8" else None
        parts["format"] = self.format
        parts |= {name: getattr(self, name) for name in ("field", "delimiter", "quoting")}
        parts["samples"] = self.samples or "all"
        parts["shuffle"] = str(self.seed) if self.shuffle else "no"
        named = ((name, value) for name, value in parts.items() if value)
        return "|".join(name if value is True else f"{name}:{value}" for name, value in named)


@dataclass(frozen=True)
class TextChoice:
    """The options that choose texts, as typed; None keeps the default of `TextSource`."""

    option_panel = "Reading texts"

    dataset: str = option(
        EMBEDDED,
        "Hub id, a .txt, .csv, .tsv, .jsonl or .parquet file (also .gz), a folder of them, or - "
        "for standard input.",
        label="Data set",
        metavar="TEXTS",
        panel="Texts",
    )
    dataset_name: str | None = option(
        None,
        "Configuration of a Hugging Face data set.",
        label="Configuration",
        metavar="CONFIG",
        panel="Texts",
    )
    split: str | None = option(
        None, "Split, as train or test[:10%]; by default test.", panel="Texts"
    )
    revision: str | None = option(None, "Branch, tag or commit of a data set.")
    streaming: bool = option(False, "Read a data set over the network without storing it.")
    column: str | None = option(
        None,
        "Column of the texts; text or the only one by default.",
        metavar="NAME",
        panel="Texts",
    )
    field: str | None = option(
        None, "Key of a JSON file under which its rows are.", label="JSON field", metavar="KEY"
    )
    by: str | None = option(
        None, "Split plain text by line (default) or paragraph (blank lines).", choices=UNITS
    )
    format: str | None = option(
        None,
        "Format, if the file name does not show it: txt, csv, tsv, jsonl, parquet.",
        choices=FORMATS,
    )
    delimiter: str | None = option(
        None, "Separator in csv and tsv: tab, comma, semicolon, bar, or one character.", metavar="D"
    )
    quoting: str | None = option(
        None,
        "Quotation marks in csv and tsv: csv (they enclose fields) or none (they are text).",
        choices=QUOTINGS,
    )
    encoding: str | None = option(None, "Encoding of text files; utf-8 by default.")
    samples: int | None = option(
        None, "Use only the first N texts; all by default.", metavar="N", panel="Texts"
    )
    shuffle: bool = option(True, "Shuffle the texts with seed 42.", panel="Texts")
    seed: int = 42  # of the permutation; the command line has no option for it

    def source(self) -> TextSource:
        """An existing file (or a name like one), a folder of files, or a data set.

        A folder is a data set if an option of data sets is given, or if it is laid out as one and
        no option of files is given.

        >>> TextChoice("reviews.csv", column="input_column=body").source().column
        'body'
        """
        fields = {name: value for name, value in vars(self).items() if value is not None}
        reference, fields["config"] = fields.pop("dataset"), fields.pop("dataset_name", None)
        if self.column is not None:
            role, mark, name = self.column.partition("=")
            fields["column"] = (name if mark else role).strip()
            if (mark and role.strip() != "input_column") or not fields["column"]:
                raise OptionError(f"the column {self.column!r} is not input_column=NAME, or NAME")
        if self.delimiter is not None:
            typed = self.delimiter.replace("\\t", "\t")
            fields["delimiter"] = _NAMES_OF_DELIMITERS.get(typed, typed)
        if not reference.strip():
            raise OptionError("the data set has no name: give embedded, a file, folder or hub id")
        fetched = [name for name in _FETCHED if fields.get(name)]
        path = expanded(reference)
        kind, where = DATASET, reference
        if reference in (EMBEDDED, "-"):
            kind, where = STDIN if reference == "-" else EMBEDDED, ""
        elif is_folder(path):
            of_files = self.by or self.format or self.encoding
            of_files = of_files or self.field or self.delimiter or self.quoting
            kind = DATASET if fetched or (not of_files and is_data_set(path)) else FOLDER
            where = str(path)
        elif is_file(path) or ending(reference) in ENDINGS:
            kind, where = FILE, str(path)
        if fetched and kind != DATASET:
            names = ", ".join(f"--{name}" for name in fetched).replace("config", "dataset-name")
            raise OptionError(f"{reference} is no data set of the hub; leave out {names}")
        return TextSource(kind, where, **fields)


@dataclass(frozen=True)
class GroupedTextChoice(TextChoice):
    """A `TextChoice` that also says how its texts are grouped."""

    group_column: str | None = option(
        None,
        "Also give the figures for each value of this column.",
        metavar="NAME",
        panel="Texts",
    )
