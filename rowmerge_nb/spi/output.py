"""A connector's reports of written files and statements, as of Trino's ``finishInsert``."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from rowmerge_nb.base.words import plural


@dataclass(frozen=True)
class Written:
    """A written file, or a statement sent to a database.

    Args:
        kind: a singular noun: ``data file``, ``delete_delta file``, ``UPDATE statement``.
        name: the path below the table's location, or the SQL.
    """

    kind: str
    name: str
    rows: int | None = None
    bytes: int | None = None


@dataclass(frozen=True)
class ConnectorOutputMetadata:
    """The optional result of ``finish_insert``, ``finish_create_table``, ``finish_merge``, ``finish_delete`` and
    ``finish_update``, for reports only.

    Args:
        written: everything that now belongs to the table; empty if nothing was written.
        notices: sentences for the report, for example if the store may alter the rows.

    >>> output = ConnectorOutputMetadata((Written("data file", "a.parquet", 7, 900), Written("data file", "b.parquet", 2, 800)))
    >>> output.summary, output.bytes
    ('2 data files', 1700)
    >>> ConnectorOutputMetadata().summary
    'nothing'
    """

    written: tuple[Written, ...] = ()
    notices: tuple[str, ...] = ()

    @property
    def summary(self) -> str:
        """The number of items per kind."""
        counts = Counter(one.kind for one in self.written)
        return ", ".join(plural(count, noun) for noun, count in counts.items()) or "nothing"

    @property
    def bytes(self) -> int | None:
        """The total size; None if an item has no size."""
        sizes = [one.bytes for one in self.written if one.bytes is not None]
        return sum(sizes) if len(sizes) == len(self.written) else None
