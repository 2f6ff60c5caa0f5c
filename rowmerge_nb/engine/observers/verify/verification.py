"""``verify=``: DuckDB or PostgreSQL run the statement on the same input, and the tables are
compared.

The other engine gets the text, translated by sqlglot, and copies of the target's and the sources'
former rows. Since the statement is already committed, a difference is a notice, not an error.
"""

from __future__ import annotations

from collections import Counter
from contextlib import closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from rowmerge_nb.base.choices import RepeatedMatches
from rowmerge_nb.base.errors import SetupError, StatementInterrupted, error_text
from rowmerge_nb.base.names import quoted
from rowmerge_nb.base.words import plural
from rowmerge_nb.engine.api.frames.dataframes import collected
from rowmerge_nb.engine.api.result import Result
from rowmerge_nb.engine.observers.verify.engines import (
    DuplicateRefusedError,
    RefusedError,
    open_verifier,
)
from rowmerge_nb.engine.observers.verify.translation import UntranslatableError, translate
from rowmerge_nb.engine.spark.frames import is_spark_frame
from rowmerge_nb.engine.spark.interrupts import (
    interrupted_too_late,
    interruptible,
    interrupts_let_in,
)
from rowmerge_nb.spi.handles import SchemaTableName
from rowmerge_nb.sql.analyzer.analysis import InsertAnalysis, MergeAnalysis, RowChangeAnalysis
from rowmerge_nb.trace.check_records import VerificationRecord

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pyarrow as pa

    from rowmerge_nb.connectors.memory.memory_connector import MemoryConnector
    from rowmerge_nb.engine.api.statement_options import Options
    from rowmerge_nb.engine.observers.verify.engines import Verifier
    from rowmerge_nb.spi.metadata import ColumnMetadata
    from rowmerge_nb.sql.analyzer.analysis import Analysis, TableBinding

SHOWN: Final = 3
"""How many differing rows are shown per side."""
AFTERWARDS: Final = "rowmerge_afterwards"
"""The name of our target's rows in the other engine."""
DUCKDB_INTERRUPTED: Final = "Query interrupted"
"""The message of the RuntimeError that DuckDB raises for an interrupt."""


def begin_verification(
    options: Options,
    analysis: Analysis,
    memory: MemoryConnector,
    run: Callable[[str], Result],
    unknown: Sequence[str] = (),
) -> Verification | None:
    """Read the input of a statement; None if there is nothing to verify, as for a query."""
    if (
        options.verify is None
        or options.dry_run
        or not isinstance(analysis, RowChangeAnalysis | InsertAnalysis)
    ):
        return None

    def read(binding: TableBinding) -> pa.Table:
        return _rows_of(binding, memory, run)

    verification = Verification(options, analysis, read, ())
    if unknown:
        return replace(
            verification,
            problem=f"the store itself fills column '{unknown[0]}', which the INSERT omits",
        )
    if analysis.target.branch:
        return replace(
            verification,
            problem=f"the statement changes branch '{analysis.target.branch}', and it has no"
            " branches",
        )
    if any(binding.version is not None for binding in analysis.bindings):
        return replace(
            verification,
            problem="the statement reads an earlier version of a table, and it has no history",
        )
    if isinstance(analysis, MergeAnalysis) and (analysis.added or analysis.type_changes):
        return replace(
            verification, problem="the statement adds columns, for which it has no syntax"
        )
    # The rows of VALUES are in the statement, which the other engine reads as well.
    bindings = {
        binding.qualified: binding
        for binding in (analysis.target, *analysis.bindings)
        if binding.rows is None
    }
    try:
        with interruptible("verify"):
            return replace(
                verification,
                tables=tuple((binding, read(binding)) for binding in bindings.values()),
            )
    except StatementInterrupted:
        raise
    except Exception as error:  # noqa: BLE001 - the statement runs all the same, and says itself what is wrong with its tables
        return replace(verification, problem=f"its input could not be read: {error_text(error)}")


def _rows_of(
    binding: TableBinding, memory: MemoryConnector, run: Callable[[str], Result]
) -> pa.Table:
    if binding.handle is None:
        frame = binding.dataframe
        return collected(frame) if is_spark_frame(frame) else frame
    catalog, schema, table = binding.name
    if catalog == "memory":
        return memory.read(SchemaTableName(schema, table))
    return run(f"SELECT * FROM {'.'.join(map(quoted, (catalog, schema, table)))}").table


@dataclass(frozen=True)
class Verification:
    """One statement's verification.

    Args:
        tables: the target, then the sources, each with its former rows.
        problem: why there are none, or ``""``.
    """

    options: Options
    analysis: RowChangeAnalysis | InsertAnalysis
    read: Callable[[TableBinding], pa.Table]
    tables: Sequence[tuple[TableBinding, pa.Table]]
    problem: str = ""

    def told(self, result: Result) -> Result:
        try:
            with interruptible("verify"), interrupts_let_in():
                self.options.step("verify")
                record = self._opinion(result.count)
        except StatementInterrupted as interrupt:
            record = self._record(
                "not compared", f"{self._name} could not compare: the comparison was interrupted"
            )
            updated_result = _with_opinion(result, record)
            if not self.options.rehearse:
                raise interrupted_too_late(updated_result) from interrupt
            error = StatementInterrupted(
                "The comparison of a rehearsed statement was interrupted", step="verify"
            )
            error.result = updated_result
            raise error from interrupt
        return _with_opinion(result, record)

    @property
    def _name(self) -> str:
        return "DuckDB" if self.options.verify == "duckdb" else "PostgreSQL"

    def _opinion(self, count: int | None) -> VerificationRecord:
        name = self._name
        if self.problem:
            return self._record("not compared", f"{name} was not asked: {self.problem}")
        try:
            return self._compared(self.read(self.analysis.target), count)
        except DuplicateRefusedError:
            if self.options.duplicates == RepeatedMatches.STANDARD:
                return self._record(
                    "differs", f"{name} differs: it refuses to change a target row more than once"
                )
            return self._record(
                "other rule",
                f"{name} has another rule and compares nothing: like standard SQL, it"
                " refuses to change a target row more than once. duplicates='trino' lets"
                " different clauses do that; duplicates='standard' refuses it here as well",
            )
        except RefusedError as error:
            return self._record("not compared", f"{name} could not run the statement: {error}")
        except UntranslatableError as error:
            return self._record("not compared", f"{name} was not asked: {error}")
        except SetupError as error:
            return self._record(
                "not compared",
                f"{name} was not asked: {error.message}. {error.hint or ''}".rstrip(". "),
            )
        except StatementInterrupted:
            raise
        except Exception as error:
            if isinstance(error, RuntimeError) and str(error) == DUCKDB_INTERRUPTED:
                raise StatementInterrupted(
                    "The comparison was interrupted", step="verify"
                ) from error
            return self._record("not compared", f"{name} could not compare: {error_text(error)}")

    def _record(self, state: str, message: str) -> VerificationRecord:
        return VerificationRecord(self._name, state, message)

    def _compared(self, after: pa.Table, count: int | None) -> VerificationRecord:
        with closing(open_verifier(self.options.verify or "")) as verifier:
            statement = translate(self.analysis.text, verifier.dialect)
            names = [binding.name[-1].lower() for binding, _ in self.tables]
            if repeated := [name for name, times in Counter(names).items() if times > 1]:
                raise UntranslatableError(f"two tables of the statement are named '{repeated[0]}'")
            for name, (binding, rows) in zip(names, self.tables, strict=True):
                verifier.load(name, binding.columns, _lower(rows))
            changed = verifier.change(statement)
            target = self.analysis.target
            verifier.load(
                AFTERWARDS,
                [replace(column, nullable=True) for column in target.columns],
                _lower(after),
            )
            here, there = quoted(AFTERWARDS), quoted(names[0])
            differences = [
                *_only(verifier, here, there, "here", target.columns),
                *_only(verifier, there, here, f"in {self._name}", target.columns),
            ]
        if count is not None and changed != count:
            differences.append(f"{changed} rows changed there, {count} here")
        if differences:
            return self._record("differs", f"{self._name} differs: {'; '.join(differences)}")
        return self._record(
            "agrees",
            f"{self._name} agrees: {plural(changed, 'row')} changed,"
            f" {plural(after.num_rows, 'row')} in {target.display}",
        )


def _with_opinion(result: Result, record: VerificationRecord) -> Result:
    result.trace = replace(result.trace, checks=replace(result.trace.checks, verification=record))
    return result


def _only(
    verifier: Verifier, one: str, other: str, where: str, columns: Sequence[ColumnMetadata]
) -> list[str]:
    rows = f"(SELECT * FROM {one} EXCEPT ALL SELECT * FROM {other}) AS rest"
    total = verifier.rows(f"SELECT count(*) FROM {rows}")[0][0]
    if not total:
        return []
    # As text, since a driver may lack a Python value for a type.
    texts = ", ".join(f"CAST({quoted(column.name.lower())} AS varchar)" for column in columns)
    first = verifier.rows(f"SELECT {texts} FROM {rows} LIMIT {SHOWN}")
    row_texts = ", ".join(
        f"({', '.join('NULL' if value is None else str(value) for value in row)})" for row in first
    )
    return [f"{plural(total, 'row')} only {where}: {row_texts}{', ...' if total > SHOWN else ''}"]


def _lower(rows: pa.Table) -> pa.Table:
    return rows.rename_columns([name.lower() for name in rows.column_names])
