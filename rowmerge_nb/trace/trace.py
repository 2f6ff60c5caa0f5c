"""The trace of a statement as plain frozen data: numbers, text and Arrow data.

Reports are drawn from it alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rowmerge_nb.base.choices import StatementState
from rowmerge_nb.trace.check_records import Checks
from rowmerge_nb.trace.clause_record import ClauseRecord
from rowmerge_nb.trace.contract_calls import Call, WriterRecord
from rowmerge_nb.trace.error_record import ErrorRecord
from rowmerge_nb.trace.join_record import JoinRecord
from rowmerge_nb.trace.node_records import NodeRecord
from rowmerge_nb.trace.notice_record import NoticeRecord
from rowmerge_nb.trace.row_samples import RowSamples
from rowmerge_nb.trace.run_settings import RunSettings
from rowmerge_nb.trace.target_record import TargetRecord


@dataclass(frozen=True, kw_only=True)
class Trace:
    """One statement's run.

    Args:
        kind: the first words of the statement (``MERGE``, ``CREATE TABLE AS``, ...), or ``RESTORE``
            or ``UNDO``.
        state: ``finished``, ``failed``, ``planned`` (dry run) or ``explained``.
        skipped: IF EXISTS or IF NOT EXISTS left everything unchanged.
        committed: False for a rehearsal or an unfinished statement.
        count: rows changed; None unless it finished.
        returned: the number of rows of RETURNING; None without it, or unfinished.
        clauses: the WHEN clauses with counts (MERGE only, like ``join.on``).
        rows: per node id the input rows per source, and the output rows; None if unknown.

    >>> trace = Trace(statement="DROP TABLE t", kind="DROP TABLE", state=StatementState.FINISHED)
    >>> trace.target.name, trace.join.rows, trace.samples.pages
    ('', None, None)
    """

    statement: str
    kind: str
    state: StatementState
    skipped: bool = False
    committed: bool = True
    count: int | None = None
    returned: int | None = None
    error: ErrorRecord | None = None
    notices: tuple[NoticeRecord, ...] = ()
    seconds: Mapping[str, float] = field(default_factory=dict)
    target: TargetRecord = field(default_factory=TargetRecord)
    settings: RunSettings = field(default_factory=RunSettings)
    clauses: tuple[ClauseRecord, ...] = ()
    plan: tuple[NodeRecord, ...] = ()
    rows: Mapping[str, tuple[tuple[int | None, ...], int | None]] = field(default_factory=dict)
    join: JoinRecord = field(default_factory=JoinRecord)
    writers: tuple[WriterRecord, ...] = ()
    calls: tuple[Call, ...] = ()
    samples: RowSamples = field(default_factory=RowSamples)
    checks: Checks = field(default_factory=Checks)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        from rowmerge_nb.report.bundle import mime_bundle

        return mime_bundle(self)
