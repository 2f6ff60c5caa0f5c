"""An audit: what a statement must have left of a table, and what another engine has left there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from rowmerge_nb.base.words import plural

# A saved audit is read by the annotations, which are looked up at run time.
from rowmerge_nb.trace.journeys import Journey, TermTruth
from rowmerge_nb.trace.trace import ClauseRecord, MatchPattern

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd


class AuditVerdict(StrEnum):
    """What came of an audit."""

    AGREES = "agrees"
    DIFFERS = "differs"


class RowFate(StrEnum):
    """What became of the rows of one key in the other engine, beside what had to become of them."""

    OTHER_VALUES = "other values"
    NOT_THERE = "not there"
    NOT_CHANGED = "not changed"
    STILL_THERE = "still there"
    TOO_OFTEN = "too often"
    TOO_RARE = "too rare"
    NOT_ASKED_FOR = "not asked for"


class Cause(StrEnum):
    """A known difference between engines, by which rows can differ."""

    DUPLICATES = "duplicate rule"
    NULL_KEYS = "NULL keys match"
    UNKNOWN = "unknown taken as true"
    CASE = "case of keys"
    PADDING = "blanks at the end of keys"
    ORDER = "order of clauses"
    CONDITION = "condition not applied"
    TIME_ZONE = "time zone"
    FRACTIONS = "fractions cut off"


@dataclass(frozen=True)
class AuditCounts:
    """The rows of an audit.

    Args:
        before: rows of the table before the statement, and ``after`` those that it has afterwards.
        removed: rows that the other engine has taken away, and ``added`` those that it has put in; a row that was written anew as it was is
            neither.
        to_remove: rows that were to be taken away, and ``to_add`` those that were to be put in.
        missing: rows that ought to be there and are not, and ``unexpected`` those that are there and ought not; a row counts as often as it is
            missing, or there too often.
    """

    before: int
    after: int
    removed: int
    added: int
    to_remove: int
    to_add: int
    missing: int
    unexpected: int


@dataclass(frozen=True)
class AuditedRow:
    """The rows of one key that differ.

    Args:
        key: the columns that tell which row is meant, with their values.
        fate: what became of them.
        before: the rows of this key before the statement.
        missing: those that ought to be there and are not; a row that is missing twice is in it twice.
        unexpected: those that are there and ought not.
        journeys: the ways of the joined rows that have to do with it, each with the clause that it takes and why.
        where: of an UPDATE or DELETE that does not choose the row, what its WHERE condition comes to.
        causes: the known differences that explain it.
        remark: how they do in this row, in words; ``""`` if there is nothing to say.
    """

    key: Mapping[str, Any]
    fate: RowFate
    before: tuple[Mapping[str, Any], ...]
    missing: tuple[Mapping[str, Any], ...]
    unexpected: tuple[Mapping[str, Any], ...]
    journeys: tuple[Journey, ...] = ()
    where: TermTruth | None = None
    causes: tuple[Cause, ...] = ()
    remark: str = ""


@dataclass(frozen=True)
class Explanation:
    """A known difference that explains rows.

    Args:
        cause: which.
        sentence: what the other engine seems to have done.
        rows: how many of the rows that differ it explains; the others differ still.
        of: how many were looked at: all that differ, or those that are told.
        statement: the statement that leaves what the table holds, as far as these rows go; ``""`` where it is no statement.
    """

    cause: Cause
    sentence: str
    rows: int
    of: int
    statement: str = ""


@dataclass(frozen=True)
class Audit:
    """What an audit has found.

    Args:
        statement: the statement's text.
        kind: MERGE, UPDATE or DELETE.
        table: the table's name.
        before: what the statement was evaluated on, in words, and ``after`` what it was compared with.
        counts: rows in numbers; all rows are counted.
        clauses: the clauses, each with the joined rows that it takes.
        columns: names and SQL types of the table's columns.
        rows: rows that differ, of many the first ones.
        told: how many of the missing and unexpected rows these are.
        explanations: the known differences that explain them.
        repeated: target rows that several source rows match, where Trino would end the statement, or leave several versions.
        notices: what a reader should know.
        seconds: how long the steps took.
    """

    statement: str
    kind: str
    table: str
    before: str
    after: str
    counts: AuditCounts
    clauses: tuple[ClauseRecord, ...]
    columns: tuple[tuple[str, str], ...]
    rows: tuple[AuditedRow, ...] = ()
    told: int = 0
    explanations: tuple[Explanation, ...] = ()
    repeated: tuple[MatchPattern, ...] = ()
    notices: tuple[str, ...] = ()
    seconds: Mapping[str, float] = field(default_factory=dict, compare=False)

    @property
    def verdict(self) -> AuditVerdict:
        """Whether the table holds what the statement must have left."""
        return AuditVerdict.DIFFERS if self.differing else AuditVerdict.AGREES

    @property
    def agrees(self) -> bool:
        """Whether the table holds what the statement must have left, row by row."""
        return self.verdict is AuditVerdict.AGREES

    @property
    def differing(self) -> int:
        """How many rows are missing or unexpected."""
        return self.counts.missing + self.counts.unexpected

    @property
    def sentence(self) -> str:
        """The outcome in one sentence."""
        if self.agrees:
            return f"AGREES: {self.table} holds the {plural(self.counts.after, 'row')} that this {self.kind} leaves."
        parts = [f"{plural(count, 'row')} {word}" for count, word in self._differing if count]
        return f"DIFFERS: {self.table} does not hold what this {self.kind} leaves: {', '.join(parts)}."

    @property
    def _differing(self) -> tuple[tuple[int, str], ...]:
        return (self.counts.missing, "missing"), (self.counts.unexpected, "unexpected")

    def to_pandas(self) -> pd.DataFrame:
        """Return the rows that are told as a pandas DataFrame: ``missing`` or ``unexpected``, what explains it, and the row."""
        import pandas as pd

        found = [
            (word, row.fate.value, ", ".join(row.causes), *values.values())
            for row in self.rows
            for word, side in (("missing", row.missing), ("unexpected", row.unexpected))
            for values in side
        ]
        names = ["row", "fate", "explained by", *(name for name, _ in self.columns)]
        return pd.DataFrame(found, columns=names, dtype=object)

    def save_html(self, path: str | Path) -> None:
        """Write the report to a file that a browser opens by itself; it holds rows of the table, and only its owner may read it.

        Args:
            path: the file; one that is there is replaced.

        Raises:
            RowMergeError: INVALID_ARGUMENTS if there is no such directory, PERMISSION_DENIED if the file cannot be written.
        """
        from rowmerge_nb.report.audit_report import audit_page
        from rowmerge_nb.trace.saved.files import write_private

        write_private(path, audit_page(self).encode("utf-8", "backslashreplace"), "The report")

    def save(self, path: str | Path) -> None:
        """Write the audit to a file that only its owner may read: it holds rows. `rowmerge_nb.load_audit` opens it, without Spark.

        Args:
            path: the file; one that is there is replaced.

        Raises:
            RowMergeError: INVALID_ARGUMENTS if there is no such directory, PERMISSION_DENIED if the file cannot be written,
                GENERIC_INSUFFICIENT_RESOURCES if the disk is full.
        """
        from rowmerge_nb.trace.saved.audits import save_audit

        save_audit(self, path)

    def __str__(self) -> str:
        return self._repr_mimebundle_()["text/plain"]

    def __repr__(self) -> str:
        return f"<Audit: {self.sentence}>"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        from rowmerge_nb.report.audit_report import audit_bundle

        return audit_bundle(self)


KEY_CAUSES: Final = frozenset({Cause.NULL_KEYS, Cause.CASE, Cause.PADDING})
"""Causes that are about which rows are partners."""
