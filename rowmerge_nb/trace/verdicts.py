"""The duplicate rules of ten engines, applied to target rows with several matches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rowmerge_nb.base.words import TRINO_VERSION, plural
from rowmerge_nb.spi.operations import Operation

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rowmerge_nb.trace.clause_record import ClauseRecord
    from rowmerge_nb.trace.join_record import MatchPattern
    from rowmerge_nb.trace.trace import Trace


@dataclass(frozen=True)
class MatchedClauses:
    """The WHEN MATCHED clauses, as far as rules depend on them."""

    count: int
    single_delete: bool

    @classmethod
    def of(cls, clauses: Sequence[ClauseRecord]) -> MatchedClauses:
        matched = [clause for clause in clauses if clause.matched]
        single = (
            len(matched) == 1
            and matched[0].operation is Operation.DELETE
            and not matched[0].conditional
        )
        return cls(len(matched), single)


@dataclass(frozen=True)
class EngineRule:
    """An engine's duplicate rule.

    Args:
        fails: whether a target row with this pattern ends the statement.
    """

    name: str
    rule: str
    source: str
    fails: Callable[[MatchPattern, MatchedClauses], bool]


@dataclass(frozen=True)
class EngineVerdict:
    """One engine's answer, ``runs`` or ``fails``.

    >>> EngineVerdict("Oracle", "fails", 2, "2 target rows would be changed more than once", "...", "...").answer
    'fails'
    """

    engine: str
    answer: str
    rows: int
    reason: str
    rule: str
    source: str


ENGINES: Final = (
    EngineRule(
        "Trino",
        f'One clause for two source rows, "no clause" being one of them ({TRINO_VERSION}: MarkDistinct on'
        " unique_id and case_number).",
        (
            'https://trino.io/docs/current/develop/supporting-merge.html, "Detecting duplicate matching'
            ' target rows"'
        ),
        lambda row, _: row.repeated,
    ),
    EngineRule(
        "ISO SQL, PostgreSQL",
        "A row is changed by at most one source row; the second attempt is the error"
        " (ISO 9075-2, 14.12 MERGE, cardinality violation).",
        'https://www.postgresql.org/docs/current/sql-merge.html, "Notes"',
        lambda row, _: row.acting > 1,
    ),
    EngineRule(
        "Spark",
        "Every match counts, whether a clause fires or not; nothing is checked without WHEN MATCHED or"
        " for one unconditional DELETE.",
        (
            "https://github.com/apache/spark, RewriteMergeIntoTable.isCardinalityCheckNeeded and"
            " MergeRowsExec"
        ),
        lambda row, clauses: row.matches > 1 and clauses.count > 0 and not clauses.single_delete,
    ),
    EngineRule(
        "Delta Lake",
        "Two source rows that change a row are ambiguous, except for one unconditional DELETE.",
        'https://docs.databricks.com/sql/language-manual/delta-merge-into.html, "WHEN MATCHED"',
        lambda row, clauses: row.acting > 1 and not clauses.single_delete,
    ),
    EngineRule(
        "delta-rs",
        "As Delta Lake: two source rows that change a row fail, except for one unconditional DELETE"
        " (run with deltalake 1.6).",
        (
            "https://delta-io.github.io/delta-rs/usage/merging-tables/ and a run in this package's"
            " tests"
        ),
        lambda row, clauses: row.acting > 1 and not clauses.single_delete,
    ),
    EngineRule(
        "DuckDB",
        "A row is changed by at most one source row, including deleted rows (run with DuckDB 2.0).",
        (
            "https://duckdb.org/docs/stable/sql/statements/merge_into.html and a run in this package's"
            " tests"
        ),
        lambda row, _: row.acting > 1,
    ),
    EngineRule(
        "SQL Server",
        "A row is updated or deleted once; more is error 8672.",
        'https://learn.microsoft.com/sql/t-sql/statements/merge-transact-sql, "Remarks"',
        lambda row, _: row.acting > 1,
    ),
    EngineRule(
        "Oracle",
        "MERGE is deterministic: a row is changed once, more is ORA-30926 (its DELETE is a part of"
        " UPDATE).",
        (
            'https://docs.oracle.com/en/database/oracle/oracle-database/19/sqlrf/MERGE.html, "Purpose"'
        ),
        lambda row, _: row.acting > 1,
    ),
    EngineRule(
        "Db2",
        "A row is identified once for an update or delete; more is SQLCODE -788.",
        "https://www.ibm.com/support/knowledgecenter/SSEPEK_12.0.0/codes/src/tpc/n788.html",
        lambda row, _: row.acting > 1,
    ),
    EngineRule(
        "Snowflake",
        "Several changes of a row fail if an UPDATE is among them; several DELETEs are deterministic."
        " Holds while ERROR_ON_NONDETERMINISTIC_MERGE is true, as it is by default.",
        'https://docs.snowflake.com/en/sql-reference/sql/merge, "Duplicate join behavior"',
        lambda row, _: row.acting > 1 and row.updates > 0,
    ),
)
"""The engines, in the order in which they are shown."""
TRINO, STANDARD = ENGINES[:2]


def verdicts_of(trace: Trace) -> tuple[EngineVerdict, ...] | None:
    """Return each engine's verdict on a traced MERGE; None for other statements or unknown matches."""
    if trace.kind != "MERGE" or trace.join.multiple_matches is None:
        return None
    clauses = MatchedClauses.of(trace.clauses)
    in_place = trace.settings.paradigm == "CHANGE_ONLY_UPDATED_COLUMNS"
    return tuple(
        _verdict(engine, trace.join.multiple_matches, clauses, in_place=in_place)
        for engine in ENGINES
    )


def _verdict(
    engine: EngineRule,
    patterns: Sequence[MatchPattern],
    clauses: MatchedClauses,
    *,
    in_place: bool,
) -> EngineVerdict:
    failing = [pattern for pattern in patterns if engine.fails(pattern, clauses)]
    rows = sum(pattern.rows for pattern in failing)
    several = sum(pattern.rows for pattern in patterns)
    if rows:
        acting = sum(pattern.rows for pattern in failing if pattern.acting > 1)
        words = "changed by" if acting == rows else "matched by"
        reason = (
            f"{plural(rows, 'target row')} {'is' if rows == 1 else 'are'} {words} more than one"
            " source row"
        )
    elif several:
        reason = (
            f"{plural(several, 'target row')} {'has' if several == 1 else 'have'} several matches,"
            " which the rule allows"
        )
        if engine is TRINO and in_place and any(pattern.acting > 1 for pattern in patterns):
            reason += (
                "; this package fails, since a store that changes rows in place needs one change"
            )
    else:
        reason = "no target row is matched more than once"
    return EngineVerdict(
        engine.name, "fails" if rows else "runs", rows, reason, engine.rule, engine.source
    )
