"""What statements have left behind in the stores of all catalogs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rowmerge_nb.engine.spark.marks import orphaned_marks
from rowmerge_nb.errors import RowMergeError, error_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rowmerge_nb.spi.connector import Connector, Orphan

__all__ = ["CatalogOrphans", "orphans_of"]


@dataclass(frozen=True)
class CatalogOrphans:
    """What was found in one catalog.

    Args:
        catalog: the catalog's name.
        store: its kind of store.
        orphans: what dead processes have left behind, or what of it was removed.
        problem: why the store, or a part of it, could not be asked; ``""`` if all of it could.
    """

    catalog: str
    store: str
    orphans: tuple[Orphan, ...] = ()
    problem: str = ""


def orphans_of(connectors: Mapping[str, Connector], *, remove: bool) -> list[CatalogOrphans]:
    """Ask every catalog; one that does not answer is told and keeps the others from nothing.

    >>> orphans_of({}, remove=False)
    []
    """
    found = []
    for catalog, connector in sorted(connectors.items()):
        try:
            orphans = tuple(connector.remove_orphans() if remove else connector.orphans())
            if (directory := connector.shared_directory) is not None:
                orphans += tuple(orphaned_marks(directory, remove=remove))
            problem = " ".join(f"{sentence.rstrip('.')}." for sentence in connector.orphan_problems())
            found.append(CatalogOrphans(catalog, connector.name, orphans, problem))
        except RowMergeError as error:
            found.append(CatalogOrphans(catalog, connector.name, problem=str(error)))
        except Exception as error:  # noqa: BLE001 - whatever a connector raises must not hide what the others have
            found.append(CatalogOrphans(catalog, connector.name, problem=error_text(error)))
    return found
