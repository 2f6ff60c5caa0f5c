"""What an engine lends to the run of a statement, and the versions of the table that the run
changes.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from rowmerge_nb.base.errors import RowMergeError
    from rowmerge_nb.engine.catalog.transaction import StatementTransaction
    from rowmerge_nb.engine.catalog.views import Views
    from rowmerge_nb.plan.rules import RuleSettings
    from rowmerge_nb.spi.handles import ConnectorTableVersion
    from rowmerge_nb.sql.analyzer.analysis import CheckConstraint, Notice, TableBinding
    from rowmerge_nb.sql.tree.statements import Span
    from rowmerge_nb.sql.typed.expressions import Origin

ConstraintReader: TypeAlias = (
    "Callable[[TableBinding, tuple[Origin, ...], Span | None], "
    "tuple[tuple[CheckConstraint, ...], tuple[Origin, ...], tuple[TableBinding, ...]]]"
)


@dataclass(frozen=True, kw_only=True)
class Services:
    """What the engine lends to a run.

    Args:
        spark: returns the Spark session, which it starts if necessary.
        row_count: counts the target's rows in a version, after the commit.
        read_version: reads the target's version in a new transaction; None without versions.
        read_constraints: the analyzer's `read_constraints`, for a table that the statement makes or
            alters.
        note_failure: records in an error of Spark whether the session can still be used.
    """

    connector: str
    spark: Callable[[], Any]
    row_count: Callable[[ConnectorTableVersion | None], int | None]
    read_version: Callable[[], ConnectorTableVersion | None]
    settings: RuleSettings
    views: Views
    read_constraints: ConstraintReader
    note_failure: Callable[[RowMergeError], object] = lambda _: None
    notices: tuple[Notice, ...] = ()


@dataclass
class TargetVersions:
    """The version of the target that a statement is made from.

    Attributes:
        is_overtaken: whether others committed between the read and the commit, which was put on
            top; ``before`` is then their version.
    """

    is_kept: bool = False
    before: ConnectorTableVersion | None = None
    is_overtaken: bool = False

    def read(self, transaction: StatementTransaction, target: TableBinding | None) -> None:
        if target is None or target.handle is None:
            return
        metadata = transaction.metadata(target.catalog)
        self.is_kept = metadata.keeps_versions
        self.before = metadata.get_table_version(transaction.session, target.handle)

    def note_commit(self, version: ConnectorTableVersion | None) -> None:
        """Take over the version that the commit was put on top of, if it is not the one that was
        read.
        """
        if (
            version is not None
            and version.made_from is not None
            and version.made_from != self.before
        ):
            self.is_overtaken, self.before = True, version.made_from

    def rows_before(
        self, row_count: Callable[[ConnectorTableVersion | None], int | None], rows_read: int | None
    ) -> int | None:
        """Return the target's rows before the commit: those that were read, or those of the version
        that came between; None if unknown.
        """
        if not self.is_overtaken:
            return rows_read
        with suppress(Exception):
            return row_count(self.before)
        return None
