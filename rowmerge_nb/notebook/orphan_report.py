"""The output of ``%merge doctor --orphans``."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from rowmerge_nb.notebook.display import grid_bundle, text_bundle

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rowmerge_nb.engine.catalog.leftovers import CatalogOrphans
    from rowmerge_nb.notebook.display import Bundle

_UNITS: Final = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))
_SPANS: Final = ((86_400, "days"), (3_600, "hours"), (60, "minutes"))


def orphans_bundle(catalogs: Sequence[CatalogOrphans], *, removed: bool) -> Bundle:
    now = time.time()
    rows = [
        [
            catalog.catalog,
            catalog.store,
            orphan.name,
            "" if orphan.bytes is None else shown_size(orphan.bytes),
            "" if orphan.modified is None else shown_age(now - orphan.modified),
            orphan.statement,
            orphan.process,
        ]
        for catalog in catalogs
        for orphan in catalog.orphans
    ]
    problems = [
        [catalog.catalog, catalog.store, catalog.problem, "", "", "", ""]
        for catalog in catalogs
        if catalog.problem
    ]
    subject, them = (f"{len(rows)} leftovers", "them") if len(rows) > 1 else ("1 leftover", "it")
    verb = "were" if len(rows) > 1 else "was"
    action = (
        f"{verb} removed"
        if removed
        else f"{verb} found; %merge doctor --orphans --remove removes {them}"
    )
    scope = f"{len(catalogs) - len(problems)} of {len(catalogs)} catalogs answered in full"
    if not rows and not problems:
        names = ", ".join(catalog.catalog for catalog in catalogs)
        scope = (
            f"the {len(catalogs)} catalogs: {names}"
            if len(catalogs) > 1
            else f"the catalog {names}"
        )
        return text_bundle(f"Nothing is left behind in {scope}.")
    caption = f"{subject} of dead processes {action}" if rows else "No leftovers were found"
    columns = ["catalog", "store", "object", "size", "last written", "statement", "process"]
    return grid_bundle(columns, [*rows, *problems], f"{caption}. {scope}." if problems else caption)


def shown_size(size: int) -> str:
    """Format a number of bytes.

    >>> shown_size(512), shown_size(3 << 20)
    ('512 bytes', '3.0 MiB')
    """
    return next(
        (f"{size / unit:.1f} {name}" for unit, name in _UNITS if size >= unit), f"{size} bytes"
    )


def shown_age(seconds: float) -> str:
    """Format the time since an event.

    >>> shown_age(5), shown_age(7300), shown_age(200_000)
    ('less than a minute ago', '2 hours ago', '2 days ago')
    """
    return next(
        (
            f"{int(seconds // span)} {name if seconds >= 2 * span else name[:-1]} ago"
            for span, name in _SPANS
            if seconds >= span
        ),
        "less than a minute ago",
    )
