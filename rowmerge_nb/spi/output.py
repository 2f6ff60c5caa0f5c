"""What a connector tells of the files and statements that it has written. Trino's ``finishInsert`` gives such a thing, too."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from rowmerge_nb.base.words import plural


@dataclass(frozen=True)
class Written:
    """A file that a statement has written, or a statement that it gave to a database.

    Args:
        kind: what it is, as a noun in the singular: ``data file``, ``delete_delta file``, ``UPDATE statement``.
        name: its path below the table's location, or its SQL.
        rows: how many rows it holds or has changed; None if that is not known.
        bytes: its size; None for what has none.
    """

    kind: str
    name: str
    rows: int | None = None
    bytes: int | None = None


@dataclass(frozen=True)
class ConnectorOutputMetadata:
    """What ``finish_insert``, ``finish_merge``, ``finish_delete`` and ``finish_update`` may give back, for reports only.

    Args:
        written: everything that belongs to the table from now on; empty where nothing was written. A connector that does not
            tell gives no `ConnectorOutputMetadata` at all.
        notices: sentences for who reads the report, as of what the store itself does with the rows, so that it may hold others.

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
        """How many there are of each kind."""
        kinds = Counter(one.kind for one in self.written)
        return ", ".join(plural(count, kind) for kind, count in kinds.items()) or "nothing"

    @property
    def bytes(self) -> int | None:
        """The size of all together; None where one has no size."""
        sizes = [one.bytes for one in self.written if one.bytes is not None]
        return sum(sizes) if len(sizes) == len(self.written) else None
