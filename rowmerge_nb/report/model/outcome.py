"""The first lines of a report: the outcome and the balance."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Final

from rowmerge_nb.base.choices import ROW_CHANGES, Flow, RepeatedMatches, StatementState
from rowmerge_nb.base.words import MINUS, join, number, plural
from rowmerge_nb.report.model.clauses import operation_counts
from rowmerge_nb.report.model.placing import DELETE_AND_INSERT, writers_phrase
from rowmerge_nb.report.words.display_values import visible
from rowmerge_nb.report.words.phrases import Phrase, Run
from rowmerge_nb.trace.node_records import ScanFacts
from rowmerge_nb.trace.notice_record import CHANGED_TWICE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rowmerge_nb.trace.node_records import NodeRecord
    from rowmerge_nb.trace.trace import Trace

MOST_GROUPS: Final = 20
"""The limit of duplicate groups in a trace, see
`rowmerge_nb.engine.statements.duplicates.NAMED_GROUPS`.
"""


@dataclass(frozen=True)
class Balance:
    """Rows before, stored changes and rows after, as a sum:
    ``5 rows − 4 deletes + 5 inserts (an update is both) = 6 rows``.

    ``holds`` is None if the connector does not count, or if rows deleted twice explain the
    difference.
    """

    expected: int
    sum: str
    holds: bool | None
    remark: str

    @property
    def text(self) -> str:
        lead = "THE BALANCE DOES NOT HOLD" if self.holds is False else "Balance"
        return f"{lead}: {self.sum}{self.remark}"


@dataclass(frozen=True)
class Outcome:
    """The result of a statement.

    Args:
        tag: ``dry run``, ``explain``, or a remark about a rehearsal.
        elapsed: seconds of the whole statement.
        meta: paradigm, connector, writers.
    """

    tag: str
    subject: str
    sentence: Phrase
    elapsed: float | None
    meta: Phrase
    balance: Balance | None


_DEFINED: Final = {
    "CREATE VIEW": ("View", "created"),
    "DROP VIEW": ("View", "dropped"),
    "ALTER VIEW": ("View", "renamed"),
    "CREATE SCHEMA": ("Schema", "created"),
    "DROP SCHEMA": ("Schema", "dropped"),
    "TRUNCATE TABLE": ("Table", "emptied"),
    "ALTER TABLE": ("Table", "altered"),
    "COMMENT": ("Comment on", "set"),
    "PREPARE": ("Statement", "prepared"),
    "DEALLOCATE PREPARE": ("Statement", "forgotten"),
}
"""Statements that define something: its noun and the participle."""

_SESSION: Final = {
    "USE": "Names without a catalog or schema are looked up there from now on.",
    "SET TIME ZONE": "The session has this time zone from now on.",
    "SET SESSION": "The session has this property from now on.",
    "RESET SESSION": "The session no longer has this property.",
    "START TRANSACTION": (
        "The transaction has begun: until COMMIT or ROLLBACK a table is read as it is when it is"
        " first named."
    ),
    "COMMIT": "The transaction is ended.",
    "ROLLBACK": "The transaction is ended.",
}


def build_outcome(trace: Trace) -> Outcome:
    rehearsed = (
        "rehearsal, rolled back"
        if trace.state == StatementState.FINISHED and not trace.committed
        else ""
    )
    tag = {StatementState.PLANNED: "dry run", StatementState.EXPLAINED: "explain"}.get(
        trace.state, rehearsed
    )
    sentence = (
        _planned(trace)
        if trace.state in {StatementState.PLANNED, StatementState.EXPLAINED}
        else _failed(trace)
        if trace.state == StatementState.FAILED
        else _finished(trace)
    )
    elapsed = trace.seconds.get("total", sum(trace.seconds.values())) if trace.seconds else None
    verb = {"MERGE": "MERGE INTO", "INSERT": "INSERT INTO", "DELETE": "DELETE FROM"}.get(
        trace.kind, trace.kind
    )
    balance = build_balance(trace)
    sentence = (*sentence, *_alarm(trace, balance))
    return Outcome(
        tag=tag,
        subject=f"{verb} {visible(trace.target.name)}".strip(),
        sentence=sentence,
        elapsed=elapsed,
        meta=_meta(trace),
        balance=balance,
    )


def _alarm(trace: Trace, balance: Balance | None) -> Phrase:
    if balance is not None and balance.holds is False:
        return (Run(f" {plural(balance.expected, 'row')} were expected.", "err"),)
    if trace.checks.commit is not None and trace.checks.commit.state == "differs":
        return (
            Run(
                " The store does not hold them:"
                f" {plural(trace.checks.commit.wrong, 'row')}"
                f" {'is' if trace.checks.commit.wrong == 1 else 'are'} wrong.",
                "err",
            ),
        )
    if trace.target.unread_reason:
        return (
            Run(
                " What was committed could not be inspected:"
                f" {visible(trace.target.unread_reason.rstrip('.'))}.",
                "err",
            ),
        )
    return ()


def _planned(trace: Trace) -> Phrase:
    what = (
        Run("Plan of "),
        Run(trace.kind + (" INTO" if trace.kind in {"MERGE", "INSERT"} else "")),
    )
    name = (Run(" "), Run(visible(trace.target.name), "code")) if trace.target.name else ()
    dry = trace.state == StatementState.PLANNED
    return (
        *what,
        *name,
        Run(
            ". Planned, not run: nothing was written." if dry else ". Nothing was read or written."
        ),
        *_would(trace),
        *_evolved(trace, "would be", "would be"),
    )


def _would(trace: Trace) -> Phrase:
    reads = [
        (record, record.would)
        for record in trace.plan
        if record.would is not None and not record.sources
    ]
    words = join([f"{rows} of {_name_read(record)}" for record, rows in reads])
    below = {
        record.sources[0] for record in trace.plan if record.kind in {"MergeWriter", "TableWriter"}
    }
    stored_rows = next((record.would for record in trace.plan if record.id in below), None)
    verb = {"INSERT": "insert", "DELETE": "delete"}.get(trace.kind)
    changes = (
        f" and {verb} {stored_rows}"
        if verb and stored_rows is not None and trace.settings.flow != Flow.UPDATABLE
        else ""
    )
    return (Run(f" It would read {words}{changes}."),) if words else ()


def _name_read(record: NodeRecord) -> str:
    if isinstance(record.facts, ScanFacts):
        return visible(record.facts.name)
    return "the query" if record.kind == "Source" else visible(record.name)


def _failed(trace: Trace) -> Phrase:
    error = trace.error
    return (
        (Run(error.code, "err"), Run(" " + visible(error.message)))
        if error
        else (Run(f"{trace.kind} failed.", "err"),)
    )


def _finished(trace: Trace) -> Phrase:
    if trace.kind == "MERGE":
        return (*_changes(trace), *_evolved(trace, "was", "were"), *_sizes(trace))
    if trace.kind in _SESSION:
        return (Run(_SESSION[trace.kind]),)
    if trace.kind.startswith("SHOW"):
        return (Run("The catalogs answered."),)
    if trace.kind == "SELECT":
        count = trace.count
        return (Run("The query ran." if count is None else f"{plural(count, 'row')} selected."),)
    name = Run(visible(trace.target.name), "code")
    if trace.kind in _DEFINED:
        return _defined(trace, name)
    if trace.kind in {"CREATE TABLE", "CREATE TABLE AS", "DROP TABLE"}:
        return _created_or_dropped(trace, name)
    if trace.kind in {"RESTORE", "UNDO"}:
        return _restored(trace, name)
    if trace.kind == "CALL":
        return (Run("Procedure "), name, Run(" was run."))
    if trace.kind == "ALTER TABLE EXECUTE":
        return _executed(trace, name)
    return _changed_rows(trace, name)


def _defined(trace: Trace, name: Run) -> Phrase:
    what, participle = _DEFINED[trace.kind]
    if not trace.skipped:
        return (Run(f"{what} "), name, Run(f" {participle}."))
    if trace.kind == "ALTER TABLE":
        return (Run("There is nothing to alter."),)
    if trace.kind.startswith("DROP"):
        return (Run(f"The {what.lower()} does not exist; nothing was dropped."),)
    return (Run(f"{what} "), name, Run(" already exists and is unchanged."))


def _created_or_dropped(trace: Trace, name: Run) -> Phrase:
    if trace.kind == "DROP TABLE":
        if trace.skipped or not trace.target.name:
            return (Run("The table does not exist; nothing was dropped."),)
        return (Run("Table "), name, Run(" dropped."))
    if trace.skipped:
        return (Run("Table "), name, Run(" already exists and is unchanged."))
    if trace.kind == "CREATE TABLE" or trace.count is None:
        return (Run("Table "), name, Run(" created."))
    return (Run("Table "), name, Run(f" created with {plural(trace.count, 'row')}."))


def _restored(trace: Trace, name: Run) -> Phrase:
    version = trace.target.version_after
    if version is None:
        there = " is as it was before its first version."
    elif trace.kind == "UNDO":
        there = f" has its earlier rows again, in version {version}."
    else:
        there = f" is in version {version} now."
    return (Run("Table "), name, Run(there), *_sizes(trace))


def _changed_rows(trace: Trace, name: Run) -> Phrase:
    if is_pushed(trace) and trace.count is None:
        return (
            Run("Rows deleted", "D"),
            Run(" from "),
            name,
            Run(" by the connector itself, which does not count them."),
            *_sizes(trace),
        )
    verb, style, preposition = {
        "INSERT": ("inserted", "I", "into"),
        "DELETE": ("deleted", "D", "from"),
        "UPDATE": ("updated", "U", "in"),
    }.get(trace.kind, ("changed", "b", "in"))
    return (
        Run(f"{plural(trace.count or 0, 'row')} {verb}", style),
        Run(f" {preposition} "),
        name,
        *_returned(trace),
        Run("."),
        *_sizes(trace),
    )


def is_pushed(trace: Trace) -> bool:
    return any(record.kind == "TableDelete" for record in trace.plan)


def _executed(trace: Trace, table: Run) -> Phrase:
    if trace.skipped:
        return (Run("There is nothing to do in table "), table, Run("; it is unchanged."))
    files = trace.target.output.written if trace.target.output is not None else ()
    if not files:
        return (Run("The procedure was run on table "), table, Run("."))
    rows, file_count = sum(one.rows or 0 for one in files), plural(len(files), "file")
    return (
        Run(f"{plural(rows, 'row')} of table "),
        table,
        Run(f" {'was' if rows == 1 else 'were'} written anew, into {file_count}."),
    )


def _changes(trace: Trace) -> Phrase:
    counts = operation_counts(trace)
    if not counts or any(rows is None for rows in counts.values()):
        return (Run(f"{plural(trace.count or 0, 'row')} changed", "b"), Run("."))
    runs: list[Run] = []
    for style, verb in (("I", "inserted"), ("U", "updated"), ("D", "deleted")):
        rows = counts.get(style) or 0
        if rows:
            words = f"{number(rows)} {verb}" if runs else f"{plural(rows, 'row')} {verb}"
            runs += [Run(", ")] * bool(runs) + [Run(words, style)]
    none = sum(record.rows or 0 for record in trace.clauses if record.number < 0)
    idle = (counts.get("N") or 0) - none
    if not runs:
        runs = [Run("No row changed", "b")]
    what = (
        "source row"
        if trace.join.rows == trace.join.source_rows or trace.join.source_rows is None
        else "joined row"
    )
    what = what if trace.join.unmatched_target_rows is None else "joined row"
    if none:
        runs.append(Run(f"; no clause fired for {plural(none, what)}"))
    if idle:
        runs.append(Run(f"; {plural(idle, what)} took DO NOTHING"))
    return (*runs, *_returned(trace), Run("."))


def _evolved(trace: Trace, one: str, several: str) -> Phrase:
    changes = trace.target.type_changes
    fields = [(path, new) for path, old, new in changes if not old]
    types = [
        (
            Run(" The type of "),
            Run(visible(path), "code"),
            Run(f" {one} changed from {old} to {new}."),
        )
        for path, old, new in changes
        if old
    ]
    return (
        *_added("column", trace.target.added_columns, one, several),
        *_added("field", fields, one, several),
        *chain.from_iterable(types),
    )


def _added(noun: str, added: Sequence[tuple[str, str]], one: str, several: str) -> Phrase:
    if not added:
        return ()
    names = join([f"{visible(name)} {sql_type}" for name, sql_type in added])
    return (
        Run(f" The {noun if len(added) == 1 else f'{noun}s'} "),
        Run(names, "code"),
        Run(f" {one if len(added) == 1 else several} added."),
    )


def _returned(trace: Trace) -> Phrase:
    return () if trace.returned is None else (Run(f"; {plural(trace.returned, 'row')} returned"),)


def _sizes(trace: Trace) -> Phrase:
    before, after = trace.target.rows_before, trace.target.rows_after
    if before is None or after is None:
        return ()
    return (
        Run(" "),
        Run(visible(trace.target.name), "code"),
        Run(f" {number(before)} → {plural(after, 'row')}.", "nw"),
    )


def _meta(trace: Trace) -> Phrase:
    runs: list[Run] = []
    settings, connector, catalog = trace.settings, trace.target.connector, trace.target.catalog
    is_updatable = settings.flow == Flow.UPDATABLE
    if settings.paradigm:
        runs += [Run(f"row change paradigm {settings.paradigm}"), Run(", ")]
    if connector:
        remark = f" (catalog {catalog})" if catalog and catalog != connector else ""
        runs += [Run("connector "), Run(connector, "code"), Run(remark + ", ")]
    if is_updatable:
        runs.append(Run("flow updatable: page sources change the rows that they have read, "))
    if trace.writers:
        writers = plural(len(trace.writers), "split") if is_updatable else writers_phrase(trace)
        runs.append(Run(f"{writers}, "))
    elif trace.state == StatementState.FINISHED and trace.kind in ROW_CHANGES:
        none = "no split" if is_updatable else "no writer: no row reached a sink"
        if is_pushed(trace):
            none = "the connector deleted the rows itself: no row was read, and no sink created"
        runs.append(Run(f"{none}, "))
    if trace.kind in ROW_CHANGES and settings.era != "documents":
        runs.append(Run(f"pages of era {settings.era}, "))
    if trace.kind == "MERGE" and settings.duplicates != RepeatedMatches.TRINO:
        runs.append(Run(f"duplicate rule {settings.duplicates}, "))
    if trace.state in {StatementState.EXPLAINED, StatementState.PLANNED} and runs:
        has_counts = any(record.would is not None for record in trace.plan)
        explanation = (
            "nothing was executed: the rows are those expected, as far as they are known"
            if has_counts
            else _NO_COUNTS
        )
        runs.append(Run(f"{explanation}, "))
    if not runs:
        return ()
    runs[-1] = Run(runs[-1].text.removesuffix(", ") + ".")
    runs[0] = Run(runs[0].text[0].upper() + runs[0].text[1:])
    return tuple(runs)


_NO_COUNTS: Final = "no row counts because nothing was executed"


def build_balance(trace: Trace) -> Balance | None:
    rows_before, rows_after = trace.target.rows_before, trace.target.rows_after
    is_finished = trace.state == StatementState.FINISHED
    if not is_finished or trace.kind not in ROW_CHANGES or rows_before is None or is_pushed(trace):
        return None
    stored_rows: dict[int, int] = {}
    for writer in trace.writers:
        for operation, rows in writer.rows.items():
            stored_rows[operation] = stored_rows.get(operation, 0) + rows
    deletes = stored_rows.get(2, 0) + stored_rows.get(5, 0)
    inserts = stored_rows.get(1, 0) + stored_rows.get(4, 0)
    result = rows_before + inserts - deletes
    start = plural(rows_before, "row")
    if trace.settings.paradigm == DELETE_AND_INSERT:
        parts = (
            f"{start} {MINUS} {plural(deletes, 'delete')} +"
            f" {plural(inserts, 'insert')}"
            f"{' (an update is both)' if operation_counts(trace).get('U') else ''}"
        )
    else:
        parts = f"{start} + {number(inserts)} inserted {MINUS} {number(deletes)} deleted"
        parts += " (updates are in place)" if operation_counts(trace).get("U") else ""
    total = f"{parts} = {plural(result, 'row')}"
    if rows_after is None:
        why = "could not be queried" if trace.target.unread_reason else "does not count its rows"
        return Balance(result, total, None, f"; the connector {why}.")
    if rows_after == result:
        return Balance(result, total, True, ", as the connector counts.")
    excess_rows = rows_after - result
    if 0 < excess_rows <= _deletable_again(trace):
        connector_count = f", and the connector counts {plural(rows_after, 'row')}"
        cause = (
            f"{plural(excess_rows, 'stored delete')} removed nothing, because another clause had"
            " changed the same target row"
        )
        return Balance(result, total, None, f"{connector_count}: {cause}.")
    return Balance(result, total, False, f", but the connector counts {plural(rows_after, 'row')}.")


def _deletable_again(trace: Trace) -> int:
    """Return the maximum number of stored deletes of rows already deleted by another clause."""
    groups = trace.join.duplicate_groups
    noticed = any(notice.kind == CHANGED_TWICE for notice in trace.notices)
    if len(groups) >= MOST_GROUPS or (noticed and not groups):
        return sum(sum(writer.rows.values()) for writer in trace.writers)
    return sum(max(group.total, len(group.sources)) - 1 for group in groups)
