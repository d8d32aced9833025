"""The store of variants: a folder per source model, in it one per way of making them.

<root>/<model>-<hash>/source.json                     the model, and its own row
<root>/<model>-<hash>/<recipe>/onnx/*.onnx            what was made, with all that loads it
<root>/<model>-<hash>/<recipe>/<scheme>.variant.json  of one variant: where it lies, its row

The hash is that of the source's weights, so that another model under the same name has a folder of
its own. A variant is never written over: what is made in another way has another recipe.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from fillmask_ui.assets import VARIANTS
from fillmask_ui.errors import DataError
from fillmask_ui.quantizing.measure import VariantFigures
from fillmask_ui.records import ModelSignature
from fillmask_ui.runs.store import slug

FORMAT = 1
_SOURCE_FILE = "source.json"
_ENDING = ".variant.json"
_PLAIN = "plain"  # the recipe without choices


@dataclass(frozen=True)
class Recipe:
    """What a variant was made with, beside its scheme."""

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


@dataclass(frozen=True)
class StoredVariant:
    """One variant on disk."""

    scheme: str  # that made it
    reference: str  # that loads it: the path of its .onnx file
    size_bytes: int  # of its weights
    recipe: Recipe = Recipe()
    figures: VariantFigures | None = None  # its row; None where it was not measured


class VariantStore:
    """All variants below one folder.

    Args:
        root: need not exist.
    """

    def __init__(self, root: Path) -> None:
        self.root = root

    def home(self, reference: str, signature: ModelSignature) -> Home:
        """Where variants of a model go; made if it is not there."""
        home = Home(self.root / f"{slug(reference)}-{signature.sha256[:8]}")
        if home.reference != reference:
            home.keep_source(reference, None)
        return home

    def find(self, reference: str) -> Home | None:
        """Where variants of a model are, without loading it; None where there are none.

        Where the model has changed since, those made last.
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
        return str(_read(self.folder / _SOURCE_FILE).get("reference", ""))

    @property
    def changed(self) -> float:
        """When its source was measured last, as a file's time."""
        return (self.folder / _SOURCE_FILE).stat().st_mtime

    @property
    def baseline(self) -> VariantFigures | None:
        """The row of the source model; None where it was not measured."""
        return _figures(_read(self.folder / _SOURCE_FILE))

    def keep_source(self, reference: str, figures: VariantFigures | None) -> None:
        """Write down which model this is of, and its row."""
        values = {"reference": reference, "figures": figures and figures.to_dict()}
        _write(self.folder / _SOURCE_FILE, values)

    def output(self, recipe: Recipe) -> Path:
        """The folder that variants of a recipe are made in."""
        return self.folder / recipe.folder

    def keep(self, variant: StoredVariant) -> None:
        """Write down what was made, and its row."""
        output = self.output(variant.recipe)
        values = {
            "scheme": variant.scheme,
            "file": Path(variant.reference).relative_to(output).as_posix(),
            "size_bytes": variant.size_bytes,
            "exclude": list(variant.recipe.exclude),
            "calibration": variant.recipe.calibration,
            "figures": variant.figures and variant.figures.to_dict(),
        }
        _write(output / f"{variant.scheme}{_ENDING}", values)

    def variant(self, scheme: str, recipe: Recipe) -> StoredVariant | None:
        """The variant of a scheme and a recipe; None where it is not there."""
        return _variant(self.output(recipe) / f"{scheme}{_ENDING}")

    def variants(self, order: Sequence[str] = ()) -> list[StoredVariant]:
        """All that are there: those of the schemes of `order` as they stand there, others last."""
        found = list(filter(None, map(_variant, sorted(self.folder.glob(f"*/*{_ENDING}")))))
        places = {scheme: place for place, scheme in enumerate(order)}
        return sorted(
            found, key=lambda own: (places.get(own.scheme, len(places)), own.recipe != Recipe())
        )


def default_root(environment: Mapping[str, str], platform: str, home: Path) -> Path:
    """Where variants are kept: `FILLMASK_UI_VARIANTS`, or where a `sys.platform` has user data.

    >>> default_root({}, "linux", Path("/home/ada")).as_posix()
    '/home/ada/.local/share/fillmask-ui/variants'
    """
    return VARIANTS.path(environment, platform, home)


def _variant(path: Path) -> StoredVariant | None:
    values = _read(path)
    with contextlib.suppress(KeyError, TypeError):
        file = path.parent / values["file"]
        if file.is_file():
            recipe = Recipe(tuple(values["exclude"]), values["calibration"])
            size, figures = values["size_bytes"], _figures(values)
            return StoredVariant(values["scheme"], str(file), size, recipe, figures)
    return None


def _figures(values: Mapping[str, Any]) -> VariantFigures | None:
    """The row of what was read; None where there is none, or of another version."""
    with contextlib.suppress(KeyError, TypeError):
        return VariantFigures.from_dict(values["figures"])
    return None


def _read(path: Path) -> dict[str, Any]:
    """What a file holds; nothing where it is missing, broken or of another version."""
    try:
        values = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    known = isinstance(values, dict) and values.get("format") == FORMAT
    return values if known else {}


def _write(path: Path, values: Mapping[str, Any]) -> None:
    """Replace a file in one step."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh = path.with_suffix(".new")
        fresh.write_text(json.dumps({"format": FORMAT, **values}, indent=1), "utf-8")
        fresh.replace(path)
    except OSError as error:
        raise DataError(
            f"{path.parent} cannot be written ({error.strerror}): name another folder with the "
            "environment variable FILLMASK_UI_VARIANTS"
        ) from error


def stored_references(root: Path) -> Iterator[StoredVariant]:
    """Every variant below a folder, for menus of models."""
    for home in VariantStore(root).homes():
        yield from home.variants()
