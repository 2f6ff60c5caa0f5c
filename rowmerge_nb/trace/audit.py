"""Audits: the table that a statement must leave, compared with the one that another engine left."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from rowmerge_nb.base.words import plural
from rowmerge_nb.trace.clause_record import ClauseRecord
from rowmerge_nb.trace.join_record import MatchPattern

# The reader of saved audits resolves annotations at run time.
from rowmerge_nb.trace.journeys import Journey, TermTruth

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd


class AuditVerdict(StrEnum):
    """An audit's outcome."""

    AGREES = "agrees"
    DIFFERS = "differs"


class RowFate(StrEnum):
    """How the rows of one key differ from the expected ones."""

    OTHER_VALUES = "other values"
    NOT_THERE = "not there"
    NOT_CHANGED = "not changed"
    STILL_THERE = "still there"
    TOO_OFTEN = "too often"
    TOO_RARE = "too rare"
    NOT_ASKED_FOR = "not asked for"


class Cause(StrEnum):
    """A known difference between engines."""

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
    """The row counts of an audit; duplicates count.

    Args:
        before: rows before the statement, and ``after`` after it.
        removed: rows that the other engine removed, and ``added`` those it added, except unchanged
            rows that it rewrote.
        to_remove: rows to be removed, and ``to_add`` those to be added.
        missing: missing rows, and ``unexpected`` unexpected ones.
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
    """The differing rows of one key.

    Args:
        where: the result of WHERE for a row not selected by an UPDATE or DELETE.
        remark: how the journeys apply to this row, or ``""``.
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
        sentence: what the other engine seems to have done.
        statement: a statement that yields these rows, or ``""``.
    """

    cause: Cause
    sentence: str
    rows: int
    of: int
    statement: str = ""


@dataclass(frozen=True)
class Audit:
    """The result of an audit."""

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
    """The number of missing and unexpected rows in ``rows``."""
    explanations: tuple[Explanation, ...] = ()
    repeated: tuple[MatchPattern, ...] = ()
    notices: tuple[str, ...] = ()
    seconds: Mapping[str, float] = field(default_factory=dict, compare=False)
    target_alias: str = ""
    source_alias: str = ""

    @property
    def verdict(self) -> AuditVerdict:
        """Whether the table holds the expected rows."""
        return AuditVerdict.DIFFERS if self.differing else AuditVerdict.AGREES

    @property
    def agrees(self) -> bool:
        return self.verdict is AuditVerdict.AGREES

    @property
    def differing(self) -> int:
        """The number of missing and unexpected rows."""
        return self.counts.missing + self.counts.unexpected

    @property
    def sentence(self) -> str:
        """The outcome in one sentence."""
        if self.agrees:
            return (
                f"AGREES: {self.table} holds the {plural(self.counts.after, 'row')} that this"
                f" {self.kind} leaves."
            )
        parts = [f"{plural(count, 'row')} {word}" for count, word in self._differing if count]
        return (
            f"DIFFERS: {self.table} does not hold the rows that this {self.kind}"
            f" leaves: {', '.join(parts)}."
        )

    @property
    def _differing(self) -> tuple[tuple[int, str], ...]:
        return (self.counts.missing, "missing"), (self.counts.unexpected, "unexpected")

    def to_pandas(self) -> pd.DataFrame:
        """Return the listed rows with their status, explanation and values."""
        import pandas as pd

        records = [
            (word, row.fate.value, ", ".join(row.causes), *values.values())
            for row in self.rows
            for word, side in (("missing", row.missing), ("unexpected", row.unexpected))
            for values in side
        ]
        names = ["row", "fate", "explained by", *(name for name, _ in self.columns)]
        return pd.DataFrame(records, columns=names, dtype=object)

    def save_html(self, path: str | Path) -> None:
        """Write a self-contained HTML report; errors as in `save`."""
        from rowmerge_nb.report.audit_report import audit_page
        from rowmerge_nb.trace.saved.files import write_private

        write_private(path, audit_page(self).encode("utf-8", "backslashreplace"), "The report")

    def save(self, path: str | Path) -> None:
        """Write the audit to a file for `rowmerge_nb.load_audit`.

        The file holds rows, so only its owner can read it. An existing file is replaced.

        Raises:
            RowMergeError: INVALID_ARGUMENTS if the directory does not exist, PERMISSION_DENIED if
                the file cannot be written, GENERIC_INSUFFICIENT_RESOURCES if the disk is full.
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
