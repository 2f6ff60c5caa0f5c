"""The error of a catalog that does not exist."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rowmerge_nb.base.errors import AnalysisError, RowMergeError
from rowmerge_nb.base.front_end import connect_command
from rowmerge_nb.base.names import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


def unknown_catalog(
    catalog: str, catalogs: Iterable[str], failures: Mapping[str, RowMergeError] | None = None
) -> AnalysisError:
    """Build the error of a name whose catalog does not exist: NOT_SUPPORTED for Trino's own catalog
    ``system``, which no engine has.

    >>> unknown_catalog("lak", ["lake", "memory"]).hint
    "Did you mean 'lake'?"
    >>> unknown_catalog("lak", ["lake", "memory"]).missing_catalog
    'lak'
    """
    if catalog == "system":
        return AnalysisError.unsupported(
            "The catalog system is not supported by this engine",
            hint=(
                "SHOW CATALOGS lists the catalogs, and information_schema of each describes its"
                " tables."
            ),
        )
    if failures and catalog in failures:
        return unconnected_catalog(catalog, failures[catalog])
    hint = did_you_mean(catalog, catalogs) or (
        f"There are: {', '.join(sorted(catalogs))}. Connect another store:"
        f" {connect_command('STORE', 'LOCATION', catalog)}."
    )
    return AnalysisError(
        f"Catalog '{catalog}' not found",
        code="CATALOG_NOT_FOUND",
        hint=hint,
        missing_catalog=catalog,
    )


def unconnected_catalog(catalog: str, failure: RowMergeError) -> AnalysisError:
    """Build the error of a catalog of a project's file that could not be connected."""
    return AnalysisError(
        f"Catalog '{catalog}' is not connected: {failure.message}",
        code="CATALOG_NOT_FOUND",
        hint=failure.hint,
    )
