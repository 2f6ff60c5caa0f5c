"""The trace of a statement as plain frozen data: numbers, text and Arrow data.

Reports are drawn from it alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa

from rowmerge_nb.base.choices import Flow, RepeatedMatches, StatementState, TraceLevel
from rowmerge_nb.spi.operations import Operation
from rowmerge_nb.spi.output import ConnectorOutputMetadata
from rowmerge_nb.spi.page import PageLayout
from rowmerge_nb.trace.near import NearKeys
from rowmerge_nb.trace.node_records import NodeRecord
from rowmerge_nb.trace.raised import Raised

CHANGED_TWICE: Final = "changed twice"
"""The kind of the notice that says of target rows that more than one clause has changed them."""


@dataclass(frozen=True)
class Call:
    """One call of the connector's contract.

    Args:
        order: position in the log, from 1: the coordinator's calls before the tasks, the tasks' by
            writer, the coordinator's after.
        given: the arguments besides session and handles, abbreviated: ``2 fragments``, ``D 3, I
            2``.
        gave: the result, abbreviated: ``DELETE_ROW_AND_INSERT_ROW``, ``1 fragment``; ``""`` for
            nothing or unknown.
        bytes: size of the page or of the fragments.
        injected: the injected fault if it raised nothing, as in the option ``fault``.

    >>> Call(1, "writer", "finish", number=0).where
    'writer 0'
    """

    order: int
    caller: str
    method: str
    given: str = ""
    gave: str = ""
    rows: int | None = None
    bytes: int | None = None
    seconds: float = 0.0
    started: float = 0.0
    error: str | None = None
    number: int | None = None
    injected: str = ""

    @property
    def where(self) -> str:
        """The caller in words: ``coordinator``, ``writer 0``, ``split 3``."""
        return self.caller if self.number is None else f"{self.caller} {self.number}"


@dataclass(frozen=True)
class Term:
    """A condition, or a part of one with its own truth value.

    Args:
        operator: ``AND``, ``OR`` or ``NOT``; ``""`` for a leaf.
        reads: the columns it reads: ``source`` or ``target``, and the name within the witness.
        strict: NULL operands make it unknown, so an unknown result is due to a NULL.

    >>> both = Term("a AND b", "AND", (Term("a"), Term("b")))
    >>> [term.text for term in both.walk()]
    ['a AND b', 'a', 'b']
    """

    text: str
    operator: str = ""
    terms: tuple[Term, ...] = ()
    reads: tuple[tuple[str, str], ...] = ()
    strict: bool = False

    def walk(self) -> Iterator[Term]:
        """Yield the condition and its parts in preorder, the order of `PageSample.truths`."""
        yield self
        for term in self.terms:
            yield from term.walk()


@dataclass(frozen=True)
class ClauseRecord:
    """A WHEN clause and its number of joined rows; record -1 counts rows for which no clause fired.

    ``matched`` is False for both kinds of NOT MATCHED; see ``by_source``. DO NOTHING has the
    operation NONE. ``head`` is the clause up to its operation. ``condition`` is the AND condition,
    or WHERE of UPDATE and DELETE. ``values`` pairs assigned columns with SQL.
    """

    number: int
    operation: Operation
    matched: bool | None
    text: str
    line: int
    rows: int | None
    conditional: bool = False
    by_source: bool = False
    head: str = ""
    condition: Term | None = None
    values: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Placement:
    """How an exchange assigned sampled rows to writers: the row's number modulo ``writers``, which
    includes idle ones.

    Args:
        numbers: per row of `PageSample.after` the engine's hash, the connector's bucket, or, for an
            even spread, the number of the run.

    >>> Placement(2, (-3, 4)).chosen
    (1, 0)
    """

    writers: int
    numbers: tuple[int, ...]

    @property
    def chosen(self) -> tuple[int, ...]:
        """The writer of each row."""
        return tuple(number % self.writers for number in self.numbers)


@dataclass(frozen=True)
class PageSample:
    """Rows of the page before ``transform_page``, and their output rows.

    Args:
        before: sampled rows, all channels, in the layout of the connector documents.
        after: the output rows, grouped by input row, the DELETE half first.
        produced: output rows per row of ``before`` (0, 1 or 2).
        writers: the writer (older flow: split) per row of ``after``; -1 if unknown.
        witness: both sides' values per row of ``before``: structs ``source`` and ``target`` (NULL
            if unmatched), int64 ``source_row`` (position in the source). None if rows do not carry
            it.
        transformed: False without ``transform_page`` (DELETE and the older flow): ``before`` equals
            ``after``.
        truths: a text channel per condition (``on`` or the clause's number), with a letter for each
            part in the order of `Term.walk`: ``t`` true, ``f`` false, ``u`` unknown, ``e`` failed,
            ``?`` not known. NULL if not evaluated for the row. None without a witness.
    """

    before: pa.RecordBatch
    after: pa.RecordBatch
    produced: tuple[int, ...]
    writers: tuple[int, ...]
    witness: pa.RecordBatch | None
    total_before: int
    total_after: int
    complete: bool
    layout: PageLayout
    transformed: bool = True
    truths: pa.RecordBatch | None = None
    tasks: tuple[int, ...] = ()
    placement: Placement | None = None

    @property
    def row_ids(self) -> pa.Array:
        """The row ids of ``before``."""
        return self.before.column(
            self.layout.before.row_id if self.transformed else self.layout.after.row_id
        )


@dataclass(frozen=True)
class AskedRows:
    """Joined rows that the user requested by a condition, however large the statement is.

    Args:
        pages: both sides' values; None if there are none or they are not known.
        more: further rows satisfy the condition.
    """

    condition: str
    pages: PageSample | None = None
    more: bool = False
    problem: str = ""


@dataclass(frozen=True)
class StoredSample:
    """First rows of one sink's pages.

    In the older flow, ``writer`` is the split, and the page has the row ids and the new values of
    an UPDATE.

    Args:
        layout: the channels; None for a page source.
    """

    writer: int
    page: pa.RecordBatch
    total: int
    layout: PageLayout | None = None


@dataclass(frozen=True)
class WriterRecord:
    """One writer's work.

    Args:
        rows: rows stored per operation number.
        counted: changed rows: positions minus the sum of insert_from_update.
        state: ``finished`` or ``aborted``.
    """

    writer: int
    rows: Mapping[int, int]
    pages: int
    fragments: int
    fragment_bytes: int
    counted: int
    state: str = "finished"


@dataclass(frozen=True)
class MatchedRow:
    """A matching source row, and the clause it took (-1 for none)."""

    source_row: int | None
    values: Mapping[str, Any]
    case_number: int


@dataclass(frozen=True)
class MatchPattern:
    """Target rows with the same combination of matches; counts stop at 2, which means "several".

    Args:
        acting: matches for which a changing clause fired: ``updates`` plus ``deletes``.
        repeated: one clause, or no clause, took several of them.
        rows: the number of target rows.
    """

    matches: int
    acting: int
    updates: int
    deletes: int
    repeated: bool
    rows: int


@dataclass(frozen=True)
class DuplicateGroup:
    """A target row with several matches.

    Args:
        target: its values; empty if they could not be fetched.
        sources: the first matching source rows.
        case_number: the clause that fired more than once; None for several clauses.
    """

    row_id: Any
    target: Mapping[str, Any]
    sources: tuple[MatchedRow, ...]
    case_number: int | None
    total: int = 0


@dataclass(frozen=True)
class NoticeRecord:
    """A notice for the user; ``kind`` is `CHANGED_TWICE` or ``""``."""

    message: str
    line: int | None = None
    column: int | None = None
    kind: str = ""


@dataclass(frozen=True)
class VerificationRecord:
    """The result of another engine (option ``verify``).

    Args:
        engine: ``DuckDB`` or ``PostgreSQL``.
        state: ``agrees``, ``differs``, ``other rule`` (for repeated matches) or ``not compared``.
    """

    engine: str
    state: str
    message: str


@dataclass(frozen=True)
class WrongRow:
    """A row that the store should hold differently.

    Args:
        sentence: the difference, with values.
        writer: the writer whose sink got the change, if any.
        joined_row: index in the sample ``before``; None for a row that the statement did not touch.
    """

    sentence: str
    writer: int | None = None
    joined_row: int | None = None


@dataclass(frozen=True)
class CommitCheck:
    """The result of reading the table after the commit (option ``check``).

    Args:
        state: ``agrees``, ``differs`` or ``not compared``.
        rows: some of them.
    """

    state: str
    message: str
    wrong: int = 0
    rows: tuple[WrongRow, ...] = ()


@dataclass(frozen=True)
class Consequence:
    """A fact about the state of a failed statement.

    Args:
        text: the fact, a predicate of ``method`` if that is set: ``was not called``.
        method: the contract method, or ``""``.

    >>> str(Consequence("was not called", "finish_merge"))
    'finish_merge was not called'
    """

    text: str
    method: str = ""

    def __str__(self) -> str:
        return f"{self.method} {self.text}".lstrip()


@dataclass(frozen=True)
class ErrorRecord:
    """The error that ended the statement.

    Args:
        consequences: what had happened by then: open sinks, the rollback.
        changed: whether the change persists; None if unknown.
    """

    code: str
    message: str
    line: int | None
    column: int | None
    length: int
    hint: str | None
    step: str
    consequences: tuple[Consequence, ...] = ()
    changed: bool | None = False


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
