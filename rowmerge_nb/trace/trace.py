"""The trace: what happened while a statement ran, as plain frozen data.

A report is drawn from a trace and nothing else, so a saved trace opens without Spark. Everything in here is numbers, text and
Arrow data; the plan is in it as `NodeRecord` entries.
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
        order: position in the log, from 1: coordinator's calls before the tasks', tasks' by writer, then the coordinator's again.
        caller: who made it: ``coordinator``, ``writer``, or in the older flow ``split``.
        method: the method's name in the contract.
        given: what it was called with beside the session and handles, in a few words: ``2 fragments``, ``D 3, I 2``.
        gave: what came back, in a few words: ``DELETE_ROW_AND_INSERT_ROW``, ``1 fragment``; ``""`` where that is nothing, or not known.
        rows: positions of the page, where a page is passed.
        bytes: size of the page or of the fragments.
        seconds: how long the call took.
        started: seconds since the statement began, on the caller's clock.
        error: the message of what it raised, or None.
        number: which writer or split it was; None for the coordinator.
        injected: what a fault on purpose did to it without raising an error, as the option ``fault`` writes it; ``""`` for nothing.

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
        """Who made it, in words: ``coordinator``, ``writer 0``, ``split 3``."""
        return self.caller if self.number is None else f"{self.caller} {self.number}"


@dataclass(frozen=True)
class Term:
    """A condition, or a part of one that is true, false or unknown by itself.

    Args:
        text: the part as written.
        operator: ``AND``, ``OR`` or ``NOT`` of what is made of further parts; ``""`` of what is not.
        terms: those parts, in their order.
        reads: the columns that it reads: the side, ``source`` or ``target``, and the column's name among those of the witness.
        strict: it compares values that are NULL where a column is: if it is unknown, a NULL is to blame.

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
        """Yield the condition and all its parts, each before its own parts: the order of the letters in `PageSample.truths`."""
        yield self
        for term in self.terms:
            yield from term.walk()


@dataclass(frozen=True)
class ClauseRecord:
    """A WHEN clause and how many joined rows it took; the last record (number -1) counts rows for which none fired.

    ``matched`` is False for both kinds of NOT MATCHED, which ``by_source`` tells apart; the operation of DO NOTHING is NONE; ``head`` is
    the clause as written up to its operation; ``condition`` is what stands behind AND, of UPDATE and DELETE the WHERE condition, and
    ``values`` are the columns that get a value, each with the text of that.
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
    """How an exchange found the writer of each sampled row: the writer's number is the row's, modulo how many writers there are.

    Args:
        writers: among how many it chose; those that get no row are counted.
        numbers: per row of `PageSample.after` the engine's hash, or the bucket that the connector's function has given; where rows are spread
            evenly, the number of the run that they are in.

    >>> Placement(2, (-3, 4)).chosen
    (1, 0)
    """

    writers: int
    numbers: tuple[int, ...]

    @property
    def chosen(self) -> tuple[int, ...]:
        """Per row the writer that it went to."""
        return tuple(number % self.writers for number in self.numbers)


@dataclass(frozen=True)
class PageSample:
    """Rows of the page before ``transform_page``, and what became of each.

    Args:
        before: sampled rows, all channels, in the document's order.
        after: the rows they became, all channels; those of one input row stand together, the DELETE half first.
        produced: per row of ``before`` how many rows of ``after`` it became (0, 1 or 2).
        writers: per row of ``after`` the writer it went to, in the older flow the split; -1 where that is not known.
        witness: per row of ``before`` the values of both sides: struct channels ``source`` and ``target`` (NULL if unmatched),
            int64 channel ``source_row`` (position in the source); None where rows do not carry it.
        total_before: rows that went into ``transform_page`` in the whole statement.
        total_after: rows that came out.
        complete: the sample is everything.
        layout: where the channels of both pages lie.
        transformed: False where there was no ``transform_page``, as in a DELETE and in the older flow: ``before`` is the same as ``after``.
        truths: per row of ``before`` what its conditions came to: a text channel for each, ``on`` or the clause's number, with a letter
            for the condition and each of its parts (`Term.walk`): ``t`` true, ``f`` false, ``u`` unknown, ``e`` it cannot be computed,
            ``?`` not known. NULL where the condition was not asked for the row. None where rows do not carry both sides' values.
        tasks: how many rows of ``before`` each task has made, in their order; empty where that is not known.
        placement: how the rows of ``after`` found their writers; None without an exchange.
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
        """The row id of every row of ``before``."""
        return self.before.column(self.layout.before.row_id if self.transformed else self.layout.after.row_id)


@dataclass(frozen=True)
class AskedRows:
    """Joined rows that somebody has asked for, which are there however large the statement is.

    Args:
        condition: the condition that they satisfy, as it was written.
        pages: the rows, with both sides' values; None where there is none, and where they are not known.
        more: so many of them are told at most, and there are more.
        problem: why they are not known, a sentence; ``""`` if they are.
    """

    condition: str
    pages: PageSample | None = None
    more: bool = False
    problem: str = ""


@dataclass(frozen=True)
class StoredSample:
    """First rows of the pages that one writer's sink got: table columns, operation, (case_number,) row_id.

    In the older flow ``writer`` is the split, and the page is what its page source got back: row_id, and of an UPDATE the new values.

    Args:
        writer: the writer's number.
        page: the rows.
        total: how many rows it got in all.
        layout: where the channels of a sink's page lie; None of what a page source got back.
    """

    writer: int
    page: pa.RecordBatch
    total: int
    layout: PageLayout | None = None


@dataclass(frozen=True)
class WriterRecord:
    """What one writer did.

    Args:
        writer: its number, from 0.
        rows: rows stored per operation number.
        pages: how many pages its sink got.
        fragments: how many fragments its sink gave.
        fragment_bytes: their size.
        counted: rows changed: positions minus the sum of insert_from_update.
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
    """A source row that matched, and the clause that it took (-1: none)."""

    source_row: int | None
    values: Mapping[str, Any]
    case_number: int


@dataclass(frozen=True)
class MatchPattern:
    """Target rows that were matched more than once in the same way; numbers stop at 2, which means "several".

    Args:
        matches: source rows that matched.
        acting: those for which a clause fired that changes rows; ``updates`` and ``deletes`` are its parts.
        repeated: one clause, or no clause, took several of them.
        rows: how many target rows are like this.
    """

    matches: int
    acting: int
    updates: int
    deletes: int
    repeated: bool
    rows: int


@dataclass(frozen=True)
class DuplicateGroup:
    """A target row that was matched more than once.

    Args:
        row_id: the target row's id as plain Python data.
        target: the target row's values by column; empty where they could not be fetched.
        sources: the source rows that matched it, the first ones of many.
        total: how many source rows matched it.
        case_number: the clause that fired more than once, or None where it is about several clauses.
    """

    row_id: Any
    target: Mapping[str, Any]
    sources: tuple[MatchedRow, ...]
    case_number: int | None
    total: int = 0


@dataclass(frozen=True)
class NoticeRecord:
    """Something the user should know; position within the statement where it has one.

    ``kind`` says what it is about where that is of interest to a report: `CHANGED_TWICE`; otherwise it is ``""``.
    """

    message: str
    line: int | None = None
    column: int | None = None
    kind: str = ""


@dataclass(frozen=True)
class VerificationRecord:
    """What another engine said of the statement (option ``verify``).

    Args:
        engine: its name, ``DuckDB`` or ``PostgreSQL``.
        state: ``agrees``, ``differs``, ``other rule`` (for repeated matches) or ``not compared``.
        message: a sentence.
    """

    engine: str
    state: str
    message: str


@dataclass(frozen=True)
class WrongRow:
    """A row that the store does not hold as the statement must have left it.

    Args:
        sentence: what is wrong with it, with its values.
        writer: the writer whose sink got the change; None where no writer had to do with the row.
        joined_row: which row of the sample ``before`` it comes from; None of a row that the statement did not touch.
    """

    sentence: str
    writer: int | None = None
    joined_row: int | None = None


@dataclass(frozen=True)
class CommitCheck:
    """What a reading after the commit has found (option ``check``).

    Args:
        state: ``agrees``, ``differs`` or ``not compared``.
        message: a sentence.
        wrong: how many rows are not as they must be.
        rows: some of them.
    """

    state: str
    message: str
    wrong: int = 0
    rows: tuple[WrongRow, ...] = ()


@dataclass(frozen=True)
class Consequence:
    """A fact about what had happened when a statement failed.

    Args:
        text: the fact, of which ``method`` is the subject if it is there: ``was not called``, ``no writer was created``.
        method: the method of the contract that it is about, or ``""``.

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
        consequences: what had happened by then: which sinks existed, what was rolled back.
        changed: whether the statement's change is there all the same; None if nobody knows.
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
    """All that is known of one statement's run.

    Args:
        statement: its text.
        kind: ``MERGE``, ``INSERT``, ``CREATE TABLE``, ``CREATE TABLE AS``, ``DROP TABLE``, ``SELECT``, ``CREATE VIEW``,
            ``SHOW TABLES``, and whatever else a statement's first words are; ``RESTORE`` and ``UNDO`` of what no statement says.
        state: ``finished``, ``failed``, ``planned`` (dry run: planned, not begun) or ``explained``.
        skipped: IF EXISTS or IF NOT EXISTS left everything as it was.
        target: the target's name as written, and ``qualified`` its full name.
        name: of a statement that changes rows the target's catalog, schema and table.
        connector: the kind of store, and ``catalog`` its name.
        paradigm: name of the row change paradigm; ``""`` for statements without one.
        era: ``documents`` or ``current``; ``duplicates`` is the rule, ``trino`` or ``standard``.
        flow: of UPDATE and DELETE ``merge``, or ``updatable`` where the page sources that read the rows changed them.
        committed: the change was made to last; False of a rehearsal, which was rolled back in the end, and of what did not finish.
        level: how much was recorded: ``auto``, ``full`` or ``off``.
        plan: the plan's nodes, the root first, depth first.
        rows: per node id the rows that went in from each source and the rows that came out; None where not known.
        clauses: the WHEN clauses with their counts; empty unless MERGE.
        on: the ON condition; None unless MERGE.
        near: what the rows without a partner are near to; None where that was not looked for.
        joined: rows out of the join; ``matched`` and ``unmatched`` are its parts, under a FULL join also ``alone``: target rows without
            a source row; ``source_rows`` rows of the source where known.
        count: rows changed, the statement's answer; None unless it finished.
        rows_before: rows of the target before and ``rows_after`` after, where the connector knows them.
        unread: why the version that was committed cannot be looked at; ``""`` if it can.
        pages: what ``transform_page`` did; in the older flow, which has none, the changed rows on both sides, as a writer's page has them.
        asked: joined rows that were asked for; None where nobody has.
        untouched: target rows that were not joined, of UPDATE and DELETE that WHERE has not chosen, the first ones; None where that is not known.
        stored: what the sinks got, or the page sources got back.
        writers: one record per sink.
        output: the files and statements that were written; None where the connector does not tell, and unless it finished.
        calls: the calls of the contract, in order.
        duplicate_groups: target rows that were matched more than once (of a failed check, or of a warning).
        multiple_matches: how target rows with more than one match were matched; None where that is not known.
        notices: what the user should know.
        error: the error, if it failed.
        raised: what the connector's code has raised, in order: first what ended the statement, then what cleaning up has raised.
        returned: how many rows RETURNING gave; None without it.
        verification: what another engine said of it, where one was asked.
        check: what was found in the store after the commit, where that was looked for.
        seconds: per step how long it took.
        added: the columns that it has added to the target, each with its type; those that it would have added unless it finished.
        version_before: the version of the target that the statement was made from, and ``version_after`` the one that its commit has made; None
            where the store keeps no versions, and where there was none.
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
        """Show the report in a notebook: of a trace that was saved, its fields would be a page of Python."""
        from rowmerge_nb.report.bundle import mime_bundle

        return mime_bundle(self)
