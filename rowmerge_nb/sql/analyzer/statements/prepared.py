"""The rows of DESCRIBE INPUT and DESCRIBE OUTPUT."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rowmerge_nb.spi.types import BIGINT, BOOLEAN, INTEGER, UNKNOWN, VARCHAR, Type
from rowmerge_nb.sql.analyzer import analysis as a
from rowmerge_nb.sql.analyzer.scope import ScopeField
from rowmerge_nb.sql.parser.parameters import parameter_places

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

PARAMETER_COLUMNS: Final = (("Position", INTEGER), ("Type", VARCHAR))
COLUMN_COLUMNS: Final = (
    ("Column Name", VARCHAR),
    ("Catalog", VARCHAR),
    ("Schema", VARCHAR),
    ("Table", VARCHAR),
    ("Type", VARCHAR),
    ("Type Size", INTEGER),
    ("Aliased", BOOLEAN),
)
_SIZES: Final = {
    "unknown": 1,
    "boolean": 1,
    "tinyint": 1,
    "smallint": 2,
    "integer": 4,
    "bigint": 8,
    "real": 4,
    "double": 8,
    "date": 4,
    "interval day to second": 8,
    "interval year to month": 4,
    "uuid": 16,
}
"""Bytes per value in Trino's pages; types that are in neither table have no fixed size."""
_LONGER: Final = {
    "decimal": (18, 16),
    "timestamp": (6, 12),
    "timestamp with time zone": (3, 12),
    "time": (12, 8),
    "time with time zone": (9, 12),
}
"""Types with eight bytes up to a precision, and the size beyond it."""

_UNALIASED: Final = ("SHOW CATALOGS", "SHOW CREATE")
"""Trino answers SHOW by queries; all but these use aliases."""


def parameter_rows(text: str, parameter_types: Mapping[int, Type]) -> list[tuple[int, str]]:
    """Return the rows of DESCRIBE INPUT; the keys of ``parameter_types`` are positions in the text."""
    places = parameter_places(text)
    return [
        (
            number,
            str(
                BIGINT
                if parameter.row_count
                else parameter_types.get(parameter.span.start, UNKNOWN)
            ),
        )
        for number, parameter in enumerate(places)
    ]


def column_rows(fields: Iterable[ScopeField]) -> list[tuple[str, str, str, str, str, int, bool]]:
    """Return the rows of DESCRIBE OUTPUT."""
    rows = []
    for number, field in enumerate(fields):
        catalog, schema, table = field.table if len(field.table) == 3 else ("", "", "")
        name = f"_col{number}" if field.name is None else field.name
        rows.append(
            (name, catalog, schema, table, str(field.type), _size(field.type), field.aliased)
        )
    return rows


def result_columns(analysis: a.Analysis) -> Sequence[ScopeField]:
    if isinstance(analysis, a.ListingAnalysis):
        aliased = not analysis.kind.startswith(_UNALIASED)
        return [
            ScopeField("", name, sql_type, aliased=aliased) for name, sql_type in analysis.columns
        ]
    if isinstance(analysis, a.ExplainAnalysis):
        return [ScopeField("", "Query Plan", VARCHAR)]
    returning = (
        analysis.returning if isinstance(analysis, a.RowChangeAnalysis | a.InsertAnalysis) else None
    )
    if returning is not None:
        return [ScopeField("", column.name, column.expression.type) for column in returning.columns]
    return [ScopeField("", "rows", BIGINT)]


def _size(sql_type: Type) -> int:
    if sql_type.base in _LONGER:
        most, longer = _LONGER[sql_type.base]
        return 8 if int(str(sql_type.parameters[0])) <= most else longer
    return _SIZES.get(sql_type.base, 0)
