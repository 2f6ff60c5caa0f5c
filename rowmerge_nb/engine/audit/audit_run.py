"""An audit from its arguments to its result: evaluate, compare, find the rows that differ, and see which known difference explains them."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from rowmerge_nb.base.choices import Flow, RepeatedMatches, TraceLevel
from rowmerge_nb.base.errors import ParseError, RowMergeError, checked
from rowmerge_nb.base.names import did_you_mean
from rowmerge_nb.base.words import join
from rowmerge_nb.engine.audit.audited_tables import Audited, Point, columns_in, given_state, state_of, version_in_words
from rowmerge_nb.engine.audit.evidence import Evidence, key_of
from rowmerge_nb.engine.audit.statement_readings import Variant, momentary, variants_of
from rowmerge_nb.engine.spark.frames import is_frame
from rowmerge_nb.sql.tree import statements as t
from rowmerge_nb.sql.tree import syntax as s
from rowmerge_nb.trace.audit import Audit, AuditCounts, Cause, Explanation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rowmerge_nb.engine.audit.connector import TableState
    from rowmerge_nb.engine.catalog.engine_catalogs import TableName
    from rowmerge_nb.engine.options import Options
    from rowmerge_nb.engine.runner import StatementRunner
    from rowmerge_nb.engine.tasks.bags import Bag
    from rowmerge_nb.trace.audit import AuditedRow
    from rowmerge_nb.trace.trace import Trace

MOST_ROWS: Final = 100
"""So many of the rows that differ are told, if nothing else is asked for."""
_VERSION: Final = "a version's number, a snapshot's id, the name of a tag or a branch, a date or datetime, or a DataFrame"
REFUSED: Final = {
    "dry_run": "an audit evaluates the statement",
    "era": "pages of an audit have one form",
    "fault": "an audit calls no sink of the connector's",
    "flow": "an audit evaluates by the machinery of MERGE",
    "near": "an audit looks for what explains the rows that differ by itself",
    "paradigm": "nothing is stored",
    "rehearse": "an audit is a rehearsal anyway",
    "trace": "an audit keeps the rows that differ",
    "verify": "the table is compared with what another engine has committed",
    "duplicates": "repeated matches do not end an audit, and are told",
}
"""Options of a statement that an audit has not, and why."""


@dataclass(frozen=True)
class Request:
    """What is to be audited, as the user has it.

    Args:
        statement: the statement's text.
        table: the table's name; None for the statement's target.
        before: what names the state before, or its rows.
        after: what names the state afterwards, or its rows; None for the table as it is.
        source: of sources what names their states, or their rows: of each by its name, or one for all.
        by: the columns that tell which row is meant; None for those that ON reads.
        rows: so many of the rows that differ are told.
    """

    statement: str
    table: str | None
    before: Any
    after: Any = None
    source: Any = None
    by: Any = None
    rows: int = MOST_ROWS


def audit(runner: StatementRunner, request: Request, options: Options, given: Mapping[str, Any]) -> Audit:
    """Audit what another engine has committed; see `rowmerge_nb.engine.engine.Engine.audit`.

    Args:
        runner: runs the engine's statements.
        request: what is to be audited.
        options: how the statement is run.
        given: the options that the user has written.
    """
    _check_options(given)
    tree = _parsed(request.statement, options)
    name = _target(runner, tree, request.table)
    before, after = _states(runner, name, request, options)
    sources = _sources(runner, tree, request.source)
    run = replace(options, rehearse=True, duplicates=RepeatedMatches.NONE, flow=Flow.MERGE, trace=TraceLevel.AUTO, near=0)
    run = replace(run, verify=None, paradigm=None, dry_run=False)
    tables = Audited(runner, name, before, after, sources, run)
    by = _columns(request.by, tables.names)
    return _Audit(tables, tree, request, ".".join(name), by).result(sources)


class _Audit:
    """One audit on its way."""

    def __init__(
        self, tables: Audited, tree: t.Merge | t.Update | t.Delete, request: Request, name: str, by: tuple[str, ...] | None
    ) -> None:
        self.tables, self.tree, self.request, self.name, self.by = tables, tree, request, name, by
        self.seconds: dict[str, float] = {}

    def result(self, sources: Mapping[tuple[str, ...], Any]) -> Audit:
        """Evaluate, compare, and explain."""
        with self._timed("evaluate"):
            wanted, result = self.tables.run(self.tree.text)
        if unknown := [name for name in sources if name and name not in self.tables.asked]:
            raise RowMergeError(
                f"The statement reads no table '{'.'.join(unknown[0])}', of which a state is given",
                code="INVALID_ARGUMENTS",
                hint="Give states of the tables that the statement names.",
            )
        with self._timed("compare"):
            before, after, committed = self.tables.committed()
        wrong = wanted - committed
        trace = result.trace
        counts = AuditCounts(
            before,
            after,
            committed.less.total,
            committed.more.total,
            wanted.less.total,
            wanted.more.total,
            wrong.more.total,
            wrong.less.total,
        )
        found = Audit(
            statement=self.tree.text,
            kind=trace.kind,
            table=self.name,
            before=version_in_words(self.request.before),
            after=version_in_words(self.request.after),
            counts=counts,
            clauses=tuple(clause for clause in trace.clauses if clause.number >= 0),
            columns=tuple((name, str(kind)) for name, kind in self.tables.columns),
            repeated=tuple(p for p in trace.multiple_matches or () if p.repeated or p.acting > 1),
            notices=tuple(dict.fromkeys(self._notices(trace))),
            seconds=self.seconds,
        )
        return self._explained(found, trace, wrong, committed) if wrong.size else found

    def _notices(self, trace: Trace) -> Iterator[str]:
        yield from self.tables.notices
        yield from (notice.message for notice in trace.notices)
        if names := momentary(self.tree):
            yield f"The statement asks for {join(names)}, which an audit answers anew: columns with its value differ."

    def _explained(self, found: Audit, trace: Trace, wrong: Bag, committed: Bag) -> Audit:
        with self._timed("find rows"):
            key = self.by or key_of(trace, self.tables.names)
            evidence = Evidence(self.tables, self.tree, trace, wrong, key, self.request.rows)
            rows = evidence.rows()
        explanations = list(_by_rows(rows))
        with self._timed("explain"):
            explained, rows = self._variants(rows, wrong, committed, evidence)
        told = sum(len(row.missing) + len(row.unexpected) for row in rows)
        return replace(found, rows=tuple(rows), told=told, explanations=(*explanations, *explained))

    def _variants(
        self, rows: list[AuditedRow], wrong: Bag, committed: Bag, evidence: Evidence
    ) -> tuple[list[Explanation], list[AuditedRow]]:
        """Evaluate the statement as other engines may have read it; what leaves fewer wrong rows, and none that were right, explains.

        It explains the rows of a key, or it does not: what leaves one of them wrong says nothing of the others.
        """
        found: list[tuple[Explanation, Bag]] = []
        integers = {name.lower(): pa.types.is_integer(kind.arrow) for name, kind in self.tables.columns}
        for variant in variants_of(self.tree, integers):
            if not evidence.speaks_for(variant.cause, rows):
                continue
            left, text = self._left(variant, committed)
            if left is None or left.size >= wrong.size or (wrong - left).size != wrong.size - left.size:
                continue
            if evidence.is_explained(rows, left):
                found.append((Explanation(variant.cause, variant.sentence, wrong.size - left.size, wrong.size, text), left))
            if not left.size:
                # What explains all of them leaves nothing to what explains some.
                found = found[-1:]
                break
        for one, left in found:
            rows = evidence.with_cause(rows, left, one.cause)
        return sorted((one for one, _ in found), key=lambda one: -one.rows), rows

    def _left(self, variant: Variant, committed: Bag) -> tuple[Bag | None, str]:
        """Return the rows that would still differ, and the statement; None where it cannot be said that way."""
        chosen = variant
        if len(variant.changes) > 1 and variant.cause is not Cause.ORDER and not self._can_be_said(variant.statement):
            said = [part.changes[0] for part in variant.parts if self._can_be_said(part.statement)]
            chosen = replace(variant, changes=tuple(said))
        if not chosen.changes:
            return None, ""
        try:
            wanted, _ = self.tables.run(chosen.statement, trace=TraceLevel.OFF)
        except RowMergeError:
            return None, ""
        return wanted - committed, chosen.statement

    def _can_be_said(self, sql: str) -> bool:
        try:
            self.tables.run(sql, dry_run=True)
        except RowMergeError:
            return False
        return True

    @contextmanager
    def _timed(self, step: str) -> Iterator[None]:
        started = time.perf_counter()
        yield
        self.seconds[step] = time.perf_counter() - started


def _by_rows(rows: Sequence[AuditedRow]) -> Iterator[Explanation]:
    """Yield what the rows say by themselves: of the rows that are told alone."""
    told = sum(len(row.missing) + len(row.unexpected) for row in rows)
    sentences = {
        Cause.DUPLICATES: "several source rows change one target row, and the table holds what one of them makes of it",
        Cause.TIME_ZONE: "moments are shifted by the same hours in all columns of a row",
    }
    for cause, sentence in sentences.items():
        explained = [row for row in rows if cause in row.causes]
        if explained:
            remarks = sorted({row.remark for row in explained if row.remark})
            said = f"{sentence}: {join(remarks)}" if remarks else sentence
            yield Explanation(cause, said, sum(len(r.missing) + len(r.unexpected) for r in explained), told)


# -- arguments ------------------------------------------------------------------------------------------------------------


def _check_options(given: Mapping[str, Any]) -> None:
    for name, why in REFUSED.items():
        if given.get(name):
            raise RowMergeError(f"An audit has no option '{name}': {why}", code="INVALID_ARGUMENTS", hint=f"Leave {name} out.")


def _parsed(statement: Any, options: Options) -> t.Merge | t.Update | t.Delete:
    from rowmerge_nb.engine.errors.position import placed_in
    from rowmerge_nb.sql.parser.statement_reader import parse, split_statements

    checked(
        statement,
        "statement",
        lambda given: isinstance(given, str) and bool(given.strip()),
        "the text of a MERGE, UPDATE or DELETE",
    )
    found = split_statements(statement)
    if len(found) != 1:
        raise ParseError(
            f"An audit takes one statement; this text has {len(found)}",
            hint="Audit the statements one by one, each between two states.",
        )
    text, offset = found[0]
    with placed_in(statement, text, offset):
        tree = parse(text, dialect=options.dialect)
    if not isinstance(tree, t.Merge | t.Update | t.Delete):
        raise RowMergeError(
            "An audit is about a MERGE, an UPDATE or a DELETE; this is none of them",
            code="NOT_SUPPORTED",
            hint="Rows of other statements are compared by result.check_rows(...).",
        )
    if isinstance(tree, t.Merge) and tree.evolution is not None:
        msg = "An audit compares rows of the same columns, before and after; WITH SCHEMA EVOLUTION may add some"
        hint = "Leave the words out, and give before=... as rows that have the new columns already, with NULL in them."
        with placed_in(statement, text, offset):
            raise RowMergeError(msg, code="NOT_SUPPORTED", hint=hint).at(tree.evolution)
    return tree


def _target(runner: StatementRunner, tree: t.Merge | t.Update | t.Delete, table: Any) -> TableName:
    """Return the full name of the audited table, which is the statement's target."""
    target = _full(runner, [part.value for part in tree.target.parts])
    if table is None:
        return target
    checked(
        table,
        "table",
        lambda given: isinstance(given, str) and bool(given),
        "the name of a table, as 'accounts' or 'lake.default.accounts'",
    )
    named = runner.catalogs.full_name(table)
    if named != target:
        raise RowMergeError(
            f"The statement changes {'.'.join(target)}, and not {'.'.join(named)}",
            code="INVALID_ARGUMENTS",
            hint=f"Give '{'.'.join(target)}' as table, or the statement that changes the other one.",
        )
    return target


def _full(runner: StatementRunner, parts: Sequence[str]) -> TableName:
    catalog, schema, table = (*runner.catalogs.default[: 3 - len(parts)], *parts)
    return catalog, schema, table


def _is_point(given: Any) -> bool:
    return (isinstance(given, int | str | dt.date) and not isinstance(given, bool) and given != "") or is_frame(given)


def _states(runner: StatementRunner, name: TableName, request: Request, options: Options) -> tuple[TableState, TableState]:
    checked(request.before, "before", _is_point, _VERSION)
    checked(
        request.after, "after", lambda given: given is None or _is_point(given), f"{_VERSION}, or None for the table as it is"
    )
    checked(
        request.rows,
        "rows",
        lambda given: isinstance(given, int) and not isinstance(given, bool) and given > 0,
        "how many rows are told, from 1",
    )
    before, after = request.before, request.after
    if not is_frame(before):
        first = state_of(runner, name, before)
        return first, given_state(name, after, columns_in(runner, first, options)) if is_frame(after) else state_of(
            runner, name, after
        )
    if is_frame(after):
        first = given_state(name, before)
        return first, given_state(name, after, columns_in(runner, first, options))
    last = state_of(runner, name, after)
    return given_state(name, before, columns_in(runner, last, options)), last


def _sources(
    runner: StatementRunner, tree: t.Merge | t.Update | t.Delete, source: Any
) -> dict[tuple[str, ...], Point | TableState]:
    """Return the states of sources that the user has given, by the tables' full names; one for all under ``()``."""
    if source is None:
        return {}
    if isinstance(source, Mapping):
        found: dict[tuple[str, ...], Point | TableState] = {}
        for table, point in source.items():
            checked(table, "source", str, "names of tables, each with its state")
            checked(point, f"source[{table!r}]", _is_point, _VERSION)
            name = runner.catalogs.full_name(table)
            found[name] = given_state(name, point) if is_frame(point) else point
        return found
    checked(source, "source", _is_point, f"{_VERSION}; or a dictionary of them by the names of tables")
    if not is_frame(source):
        return {(): source}
    relation = tree.source if isinstance(tree, t.Merge) else None
    while isinstance(relation, s.Aliased):
        relation = relation.relation
    if not isinstance(relation, s.Table):
        raise RowMergeError(
            "Which table of the statement the rows of source are is not clear",
            code="INVALID_ARGUMENTS",
            hint="Give a dictionary: source={'news': rows}.",
        )
    name = _full(runner, [part.value for part in relation.name.parts])
    return {name: given_state(name, source)}


def _columns(by: Any, names: Sequence[str]) -> tuple[str, ...] | None:
    """Return the columns that tell which row is meant, as the table has them."""
    if by is None:
        return None
    given = [by] if isinstance(by, str) else by
    checked(
        given, "by", lambda them: isinstance(them, list | tuple) and len(them) > 0, "the name of a column, or a list of names"
    )
    known = {name.lower(): name for name in names}
    for name in given:
        if str(name).lower() not in known:
            raise RowMergeError(
                f"The table has no column '{name}'",
                code="INVALID_ARGUMENTS",
                hint=did_you_mean(str(name), list(names)) or f"There are: {', '.join(names)}.",
            )
    return tuple(known[str(name).lower()] for name in given)
