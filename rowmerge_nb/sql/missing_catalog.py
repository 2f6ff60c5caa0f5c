"""The error of a catalog that does not exist."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rowmerge_nb.base.errors import AnalysisError
from rowmerge_nb.base.names import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterable


def unknown_catalog(catalog: str, catalogs: Iterable[str]) -> AnalysisError:
    """Build the error of a name whose catalog does not exist: NOT_SUPPORTED for Trino's own catalog
    ``system``, which no engine has.

    Args:
        catalog: the catalog's name.
        catalogs: the names of all catalogs.

    >>> unknown_catalog("lak", ["lake", "memory"]).hint
    "Did you mean 'lake'?"
    """
    if catalog == "system":
        return AnalysisError(
            "The catalog system is not supported by this engine",
            code="NOT_SUPPORTED",
            hint=(
                "SHOW CATALOGS lists the catalogs, and information_schema of each describes its"
                " tables."
            ),
        )
    hint = did_you_mean(catalog, catalogs) or f"There are: {', '.join(sorted(catalogs))}."
    return AnalysisError(f"Catalog '{catalog}' not found", code="CATALOG_NOT_FOUND", hint=hint)
