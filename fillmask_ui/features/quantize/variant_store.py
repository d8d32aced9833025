"""The store of variants that the page makes: a folder per source model, in it one per recipe.

<root>/<model>-<hash>/source.json    the model, its own row, the settings of its last run
<root>/<model>-<hash>/<recipe>/      what `quantize` wrote, with its record of files and rows

The hash is that of the source's weights, so that another model under the same name has a folder of
its own. A variant is never written over: what is made in another way has another recipe.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fillmask_ui.errors import DataError, FillmaskError
from fillmask_ui.features.quantize.measure_variants import VariantFigures
from fillmask_ui.files import user_folder, write_text, writing
from fillmask_ui.models.weights import weights_sha256
from fillmask_ui.publishing.hub_folder import RECORD, draft, read_record
from fillmask_ui.records import ModelSignature
from fillmask_ui.runs.store import slug
from fillmask_ui.schema import from_json, from_trusted_values

if TYPE_CHECKING:
    from fillmask_ui.features.quantize.graphs import GraphPair

_SOURCE_FILE = "source.json"


@dataclass(frozen=True)
class Recipe:
    """What a variant is made with, beside its scheme."""

    exclude: tuple[str, ...] = ()  # what stays in full precision, in the user's words
    calibration: str = ""  # what tells the texts of a static scheme; blank for any other

    @property
    def folder(self) -> str:
        """A name of its own.

        >>> Recipe().folder, Recipe(("embedding",)).folder
        ('plain', 'embedding-9b7da2')
        """
        if self == Recipe():
            return "plain"
        digest = sha256(json.dumps([*self.exclude, self.calibration]).encode()).hexdigest()
        return f"{slug('-'.join(self.exclude) or 'calibrated')[:30]}-{digest[:6]}"


def parts_text(exclude: Sequence[str]) -> str:
    """What stays in full precision, in a few words.

    >>> parts_text(["embedding", "layer:0"]), parts_text(["a", "b", "c"])
    ('embedding, layer:0', '3 parts')
    """
    return ", ".join(exclude) if len(exclude) < 3 else f"{len(exclude)} parts"


@dataclass(frozen=True)
class Settings:
    """What the controls of the page held when a run was started, by their names."""

    schemes: list[str]
    more_schemes: list[str]
    exclude: str
    where: str  # `embedded` or `upload`
    upload: str | None  # path of the uploaded file
    samples: int


@dataclass(frozen=True)
class StoredVariant:
    """One variant on disk."""

    scheme: str  # that made it; `export` for full precision
    path: Path  # of its .onnx file, which loads it
    size_bytes: int  # of that file
    exclude: tuple[str, ...] = ()  # what stays in full precision
    figures: VariantFigures | None = None  # its row; None if it was not measured


class VariantStore:
    """All variants below one folder, which need not exist."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def home(self, reference: str, signature: ModelSignature) -> Home:
        return Home(self.root / f"{slug(reference)}-{signature.sha256[:8]}")

    def find(self, reference: str) -> Home | None:
        """The variants of a model; those measured last if it has changed, None for none."""
        homes = [home for home in self.homes() if home.reference == reference]
        return max(homes, key=lambda home: home.source_file.stat().st_mtime, default=None)

    def homes(self) -> list[Home]:
        files = sorted(self.root.glob(f"*/{_SOURCE_FILE}"))
        return [home for home in map(Home, (file.parent for file in files)) if home.reference]


class Home:
    """The variants of one model; the folder need not exist."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.source_file = folder, folder / _SOURCE_FILE

    @property
    def reference(self) -> str:
        """Of the source model; blank if it cannot be read."""
        return str(self._source().get("reference", ""))

    @property
    def baseline(self) -> VariantFigures | None:
        """The row of the source model; None if it was not measured."""
        return _figures(self._source())

    @property
    def settings(self) -> Settings | None:
        """Of the last run; None if that is not known."""
        with contextlib.suppress(DataError):
            return from_trusted_values(Settings, self._source().get("settings"))
        return None

    def keep_source(self, reference: str, figures: VariantFigures, settings: Settings) -> None:
        """Write down which model this is of, its row and its run; a DataError if that fails."""
        values = {
            "reference": reference,
            "figures": figures.to_dict(),
            "settings": asdict(settings),
        }
        self.write(_SOURCE_FILE, json.dumps(values, indent=1))

    def write(self, name: str, content: str) -> Path:
        """Replace a file of the folder in one step; a DataError if that fails."""
        advice = ": name another folder with the environment variable FILLMASK_UI_VARIANTS"
        with writing(self.folder, advice):
            self.folder.mkdir(parents=True, exist_ok=True)
        write_text(content, self.folder / name)
        return self.folder / name

    def output(self, recipe: Recipe) -> Path:
        """The folder that variants of a recipe are made in."""
        return self.folder / recipe.folder

    def variant(self, scheme: str, recipe: Recipe) -> StoredVariant | None:
        """The variant of a scheme and a recipe, if there is one."""
        variants = _variants(self.output(recipe))
        return next((variant for variant in variants if variant.scheme == scheme), None)

    def written(self, scheme: str, recipe: Recipe) -> StoredVariant:
        """The variant that was just written; a `DataError` if it is gone."""
        variant = self.variant(scheme, recipe)
        if variant is None:
            raise DataError(f"{self.folder} was changed while it was written: try again")
        return variant

    def variants(self, order: Sequence[str] = ()) -> list[StoredVariant]:
        """All variants, in the order of these schemes; other schemes last."""
        folders = sorted(path.parent for path in self.folder.glob(f"*/{RECORD}"))
        variants = [variant for folder in folders for variant in _variants(folder)]
        ranks = {scheme: rank for rank, scheme in enumerate(order)}
        return sorted(
            variants, key=lambda variant: (ranks.get(variant.scheme, len(ranks)), variant.exclude)
        )

    def keep_restored(
        self, variant: StoredVariant, pair: GraphPair, names: Sequence[str]
    ) -> StoredVariant:
        """Write a variant with more parts, by their names in the baseline, in full precision.

        One that exists is returned. `pair` is the variant opened beside its baseline; errors as of
        its `write_restored`.
        """
        recipe = Recipe((*variant.exclude, *names))
        if (existing := self.variant(variant.scheme, recipe)) is not None:
            return existing
        folder = variant.path.parent.parent
        name = variant.path.relative_to(folder).as_posix()
        if (record := read_record(folder)) is None:
            raise DataError(f"{folder} has lost the record of what was made there: make it again")
        with draft(self.output(recipe)) as drafted:
            path = drafted.folder / name
            pair.write_restored(names, path)
            entry = {
                **record["files"][name],
                "exclude": list(recipe.exclude),
                "size_bytes": path.stat().st_size,
                "sha256": weights_sha256([path]),
                "alarms": [],
                "figures": None,
            }
            drafted.publish_variant(name, entry, record["sources"][entry["made_of"]])
        return self.written(variant.scheme, recipe)

    def _source(self) -> dict[str, Any]:
        """What is written of it; nothing if that is missing or broken."""
        with contextlib.suppress(OSError, DataError):
            return from_json(dict[str, Any], self.source_file.read_bytes())
        return {}


def _variants(folder: Path) -> list[StoredVariant]:
    """Of one recipe, by the record of its folder; none if that cannot be read."""
    variants = []
    with contextlib.suppress(FillmaskError, KeyError, TypeError):
        for name, entry in ((read_record(folder) or {}).get("files") or {}).items():
            if (folder / name).is_file():
                variants.append(
                    StoredVariant(
                        scheme=entry["scheme"],
                        path=folder / name,
                        size_bytes=entry["size_bytes"],
                        exclude=tuple(entry["exclude"]),
                        figures=_figures(entry),
                    )
                )
    return variants


def _figures(values: Mapping[str, Any]) -> VariantFigures | None:
    """The row of what was read; None for no row, or one that cannot be read."""
    with contextlib.suppress(DataError):
        return from_trusted_values(VariantFigures, values.get("figures"))
    return None


def local_variants() -> dict[str, str]:
    """References of the variants made on this machine, and how menus name them."""
    labels = {}
    for home in VariantStore(user_folder("variants")).homes():
        for variant in home.variants():
            without = f", without {parts_text(variant.exclude)}" if variant.exclude else ""
            labels[str(variant.path)] = f"{variant.scheme} of {home.reference} · made here{without}"
    return labels
