"""The trace of a statement as plain frozen data: numbers, text and Arrow data.

Reports are drawn from it alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from rowmerge_nb.base.choices import Flow, RepeatedMatches, StatementState, TraceLevel
from rowmerge_nb.spi.output import ConnectorOutputMetadata
from rowmerge_nb.trace.check_records import CommitCheck, VerificationRecord
from rowmerge_nb.trace.clause_record import ClauseRecord, Term
from rowmerge_nb.trace.contract_calls import Call, WriterRecord
from rowmerge_nb.trace.error_record import ErrorRecord
from rowmerge_nb.trace.join_record import DuplicateGroup, MatchPattern
from rowmerge_nb.trace.near import NearKeys
from rowmerge_nb.trace.node_records import NodeRecord
from rowmerge_nb.trace.notice_record import NoticeRecord
from rowmerge_nb.trace.page_samples import AskedRows, PageSample, StoredSample
from rowmerge_nb.trace.raised import Raised


@dataclass(frozen=True, kw_only=True)
class Trace:
    """One statement's run.

    Args:
        kind: the first words of the statement (``MERGE``, ``CREATE TABLE AS``, ...), or ``RESTORE``
            or ``UNDO``.
        state: ``finished``, ``failed``, ``planned`` (dry run) or ``explained``.
        target: the target's name as written; ``qualified`` is its full name.
        name: catalog, schema and table of a statement that changes rows.
        paradigm: ``""`` for other statements.
        era: ``documents`` or ``current``; ``duplicates`` is ``trino`` or ``standard``.
        committed: False for a rehearsal or an unfinished statement.
        rows: per node id the input rows per source, and the output rows; None if unknown.
        clauses: the WHEN clauses with counts (MERGE only, like ``on``).
        joined: output rows of the join: ``matched`` plus ``unmatched`` plus, under FULL, ``alone``
            (target rows without a source row). ``source_rows`` counts the source if known.
        count: rows changed; None unless it finished.
        rows_before: rows of the target before, and ``rows_after`` after, if known.
        unread: why the committed version cannot be read.
        pages: input and output of ``transform_page``; in the older flow, the changed rows on both
            sides.
        asked: joined rows requested by a condition.
        untouched: the first target rows that were not joined or not selected by WHERE; None if
            unknown.
        output: the written files and statements; None if not reported, or unfinished.
        multiple_matches: the match patterns of such rows; None if unknown.
        raised: errors of the connector's code: the one that ended the statement, then those of the
            cleanup.
        added: columns added to the target, or to be added by an unfinished statement.
        version_before: the target's version before the statement, and ``version_after`` that of its
            commit, if any.
    """

    statement: str
    kind: str
    state: StatementState
    skipped: bool = False
    target: str = ""
    qualified: str = ""
    connector: str = ""
    catalog: str = ""
    paradigm: str = ""
    era: str = "documents"
    duplicates: RepeatedMatches = RepeatedMatches.TRINO
    level: TraceLevel = TraceLevel.AUTO
    plan: tuple[NodeRecord, ...] = ()
    rows: Mapping[str, tuple[tuple[int | None, ...], int | None]] = field(default_factory=dict)
    clauses: tuple[ClauseRecord, ...] = ()
    joined: int | None = None
    matched: int | None = None
    unmatched: int | None = None
    source_rows: int | None = None
    count: int | None = None
    rows_before: int | None = None
    rows_after: int | None = None
    unread: str = ""
    pages: PageSample | None = None
    asked: AskedRows | None = None
    untouched: pa.RecordBatch | None = None
    stored: tuple[StoredSample, ...] = ()
    writers: tuple[WriterRecord, ...] = ()
    output: ConnectorOutputMetadata | None = None
    calls: tuple[Call, ...] = ()
    duplicate_groups: tuple[DuplicateGroup, ...] = ()
    multiple_matches: tuple[MatchPattern, ...] | None = None
    notices: tuple[NoticeRecord, ...] = ()
    error: ErrorRecord | None = None
    raised: tuple[Raised, ...] = ()
    alone: int | None = None
    returned: int | None = None
    verification: VerificationRecord | None = None
    check: CommitCheck | None = None
    flow: Flow = Flow.MERGE
    committed: bool = True
    name: tuple[str, ...] = ()
    on: Term | None = None
    near: NearKeys | None = None
    seconds: Mapping[str, float] = field(default_factory=dict)
    version_before: int | str | None = None
    version_after: int | str | None = None
    added: tuple[tuple[str, str], ...] = ()

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        from rowmerge_nb.report.bundle import mime_bundle

        return mime_bundle(self)
