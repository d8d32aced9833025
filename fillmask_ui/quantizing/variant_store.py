"""The store of variants that the page makes: a folder per source model, in it one per recipe.

<root>/<model>-<hash>/source.json    the model, and its own row
<root>/<model>-<hash>/<recipe>/      what `quantize` wrote, with its record of files and rows

The hash is that of the source's weights, so that another model under the same name has a folder of
its own. A variant is never written over: what is made in another way has another recipe.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from fillmask_ui.errors import DataError, FillmaskError, first_line
from fillmask_ui.files import write_text
from fillmask_ui.models.weights import weights_sha256
from fillmask_ui.quantizing.graph_pair import Opened, write_restored
from fillmask_ui.quantizing.hub_folder import RECORD, draft, note_figures, read_record
from fillmask_ui.quantizing.measure_variants import VariantFigures
from fillmask_ui.records import ModelSignature
from fillmask_ui.runs.store import slug

FORMAT = 1
_SOURCE_FILE = "source.json"
_PLAIN = "plain"  # the recipe without choices


@dataclass(frozen=True)
class Recipe:
    """What a variant is made with, beside its scheme."""

    exclude: tuple[str, ...] = ()  # what stays in full precision, as it was asked for
    calibration: str = ""  # what tells the texts of a static scheme; blank for any other

    @property
    def folder(self) -> str:
        """Its name; another choice has another one.

        >>> Recipe().folder, Recipe(("embedding",)).folder
        ('plain', 'embedding-9b7da2')
        """
        if self == Recipe():
            return _PLAIN
        digest = sha256(json.dumps([*self.exclude, self.calibration]).encode()).hexdigest()
        return f"{slug('-'.join(self.exclude) or 'calibrated')[:30]}-{digest[:6]}"


def parts_text(exclude: Sequence[str]) -> str:
    """What stays in full precision, in a few words.

    >>> parts_text(["embedding", "layer:0"]), parts_text(["a", "b", "c"])
    ('embedding, layer:0', '3 parts')
    """
    return ", ".join(exclude) if len(exclude) < 3 else f"{len(exclude)} parts"


@dataclass(frozen=True)
class StoredVariant:
    """One variant on disk."""

    scheme: str  # that made it; `export` for full precision
    path: Path  # of its .onnx file, which loads it
    size_bytes: int  # of that file
    exclude: tuple[str, ...] = ()  # what stays in full precision
    figures: VariantFigures | None = None  # its row; None where it was not measured

    def keep(self, figures: VariantFigures) -> None:
        """Write down its row, in the record and the card of its folder."""
        folder = self.path.parent.parent
        note_figures(folder, {self.path.relative_to(folder).as_posix(): figures.to_dict()})


class VariantStore:
    """All variants below one folder.

    Args:
        root: need not exist.
    """

    def __init__(self, root: Path) -> None:
        self.root = root

    def home(self, reference: str, signature: ModelSignature) -> Home:
        """Where variants of a model go; it need not exist."""
        return Home(self.root / f"{slug(reference)}-{signature.sha256[:8]}")

    def find(self, reference: str) -> Home | None:
        """Where variants of a model are, without loading it; None where there are none.

        Where the model has changed since, those measured last.
        """
        found = [home for home in self.homes() if home.reference == reference]
        return max(found, key=lambda home: home.changed, default=None)

    def homes(self) -> list[Home]:
        """The models with variants, by name."""
        files = sorted(self.root.glob(f"*/{_SOURCE_FILE}"))
        return [home for home in map(Home, (file.parent for file in files)) if home.reference]


class Home:
    """The variants of one model.

    Args:
        folder: need not exist.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def reference(self) -> str:
        """Of the source model; blank where that cannot be read."""
        return str(self._source().get("reference", ""))

    @property
    def changed(self) -> float:
        """When its source was measured last, as a file's time."""
        return (self.folder / _SOURCE_FILE).stat().st_mtime

    @property
    def baseline(self) -> VariantFigures | None:
        """The row of the source model; None where it was not measured."""
        return _figures(self._source())

    def keep_source(self, reference: str, figures: VariantFigures) -> None:
        """Write down which model this is of, and its row.

        Raises:
            DataError: if the folder cannot be written.
        """
        values = {"format": FORMAT, "reference": reference, "figures": figures.to_dict()}
        self.write(_SOURCE_FILE, json.dumps(values, indent=1))

    def write(self, name: str, content: str) -> Path:
        """Replace a file of the folder in one step; a `DataError` if that cannot be done."""
        path = self.folder / name
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            write_text(content, path)
        except (OSError, DataError) as error:
            raise DataError(
                f"{self.folder} cannot be written ({first_line(error)}): name another folder with "
                "the environment variable FILLMASK_UI_VARIANTS"
            ) from error
        return path

    def output(self, recipe: Recipe) -> Path:
        """The folder that variants of a recipe are made in."""
        return self.folder / recipe.folder

    def variant(self, scheme: str, recipe: Recipe) -> StoredVariant | None:
        """The variant of a scheme and a recipe; None where it is not there."""
        found = _variants(self.output(recipe))
        return next((own for own in found if own.scheme == scheme), None)

    def variants(self, order: Sequence[str] = ()) -> list[StoredVariant]:
        """All that are there: those of the schemes of `order` as they stand there, others last."""
        folders = sorted(path.parent for path in self.folder.glob(f"*/{RECORD}"))
        found = [own for folder in folders for own in _variants(folder)]
        places = {scheme: place for place, scheme in enumerate(order)}
        return sorted(found, key=lambda own: (places.get(own.scheme, len(places)), own.exclude))

    def _source(self) -> dict[str, Any]:
        """What is written of it; nothing where that is missing, broken or of another version."""
        try:
            values = json.loads((self.folder / _SOURCE_FILE).read_bytes())
        except (OSError, ValueError):
            return {}
        return values if values.get("format") == FORMAT else {}


def _variants(folder: Path) -> list[StoredVariant]:
    """Of one recipe, by the record of its folder; none where that cannot be read."""
    found = []
    with contextlib.suppress(FillmaskError, KeyError, TypeError):
        for name, made in ((read_record(folder) or {}).get("files") or {}).items():
            if (folder / name).is_file():
                scheme = made["scheme"]
                if made["settings"].get("weights") == "QInt8 per tensor":
                    scheme = "int8-tensor"  # earlier versions called it int8
                own = scheme, folder / name, made["size_bytes"]
                found.append(StoredVariant(*own, tuple(made["exclude"]), _figures(made)))
    return found


def _figures(values: Mapping[str, Any]) -> VariantFigures | None:
    """The row of what was read; None where there is none, or of another version."""
    with contextlib.suppress(KeyError, TypeError):
        return VariantFigures.from_dict(values["figures"])
    return None


def keep_mixed(
    home: Home, variant: StoredVariant, opened: Opened, names: Sequence[str]
) -> StoredVariant:
    """Write a variant with some more parts in full precision, if it is not there.

    Args:
        home: that the variant is in.
        variant: the one that is opened.
        opened: it and its baseline.
        names: of the parts, as in the baseline.

    Raises:
        OptionError: for an unknown part.
        DataError: if it cannot be written, or the variant's record is gone.
        ModelError: if the result does not run.
    """
    exclude = (*variant.exclude, *names)
    recipe = Recipe(exclude)
    if (known := home.variant(variant.scheme, recipe)) is not None:
        return known
    folder = variant.path.parent.parent
    name = variant.path.relative_to(folder).as_posix()
    record = read_record(folder)
    if record is None:
        raise DataError(f"{folder} has lost the record of what was made there: make it again")
    with draft(home.output(recipe)) as drafted:
        path = drafted.folder / name
        write_restored(opened, names, path)
        entry = {
            **record["files"][name],
            "exclude": list(exclude),
            "size_bytes": path.stat().st_size,
            "sha256": weights_sha256([path]),
            "alarms": [],
            "figures": None,
        }
        made_of = entry.get("made_of") or next(iter(record["sources"]))
        drafted.publish_variant(name, entry, record["sources"][made_of])
    made = home.variant(variant.scheme, recipe)
    if made is None:
        raise DataError(f"{home.folder} was changed while it was written: try again")
    return made
