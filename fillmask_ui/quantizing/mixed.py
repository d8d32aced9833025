"""A kept variant with some parts in full precision, kept beside it."""

from __future__ import annotations

from collections.abc import Sequence

from fillmask_ui.errors import DataError
from fillmask_ui.models.weights import weights_sha256
from fillmask_ui.quantizing.hub_folder import draft, read_record
from fillmask_ui.quantizing.opened import Opened, write_restored
from fillmask_ui.quantizing.store import Home, Recipe, StoredVariant


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
