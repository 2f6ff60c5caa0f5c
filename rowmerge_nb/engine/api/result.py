"""The result of a statement: its answer and the account of its run."""

from __future__ import annotations

import warnings
from dataclasses import astuple, dataclass, fields
from typing import TYPE_CHECKING, Any, Final

from rowmerge_nb.base.arguments import checked, checked_path
from rowmerge_nb.base.choices import ROW_CHANGES, StatementState
from rowmerge_nb.base.errors import RowMergeError, SetupError, error_text
from rowmerge_nb.engine.spark.interrupts import StatementGuard
from rowmerge_nb.spi.output import Written
from rowmerge_nb.trace.node_records import explain_text

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping
    from pathlib import Path

    import pandas as pd
    import polars  # noqa: ICN001 - the function below imports it by its short name
    import pyarrow as pa

    from rowmerge_nb.report.explorer.widget import Explorer
    from rowmerge_nb.report.model.beside_trino import BesideTrino
    from rowmerge_nb.report.model.outcome import Balance
    from rowmerge_nb.report.near_answer import Near
    from rowmerge_nb.report.quiz import Quiz
    from rowmerge_nb.report.row_check import RowCheck
    from rowmerge_nb.report.verdicts import Verdicts
    from rowmerge_nb.report.why import Why
    from rowmerge_nb.spi.connector import Connector
    from rowmerge_nb.trace.check_records import VerificationRecord
    from rowmerge_nb.trace.contract_calls import Call
    from rowmerge_nb.trace.page_samples import PageSample
    from rowmerge_nb.trace.record import Record
    from rowmerge_nb.trace.rerun import Rerun
    from rowmerge_nb.trace.trace import Trace

_NOTHING_WRITTEN: Final = "INSERT, UPDATE, DELETE and MERGE write, and CREATE TABLE AS does."
_FRAME_NAMES: Final = {
    "df": "to_pandas()",
    "DataFrame": "to_pandas()",
    "PolarsDataFrame": "to_polars()",
    "arrow": "table",
    "collect": "to_pandas()",
    "fetchall": "to_pandas()",
    "fetchdf": "to_pandas()",
    "pl": "to_polars()",
    "show": "to_pandas()",
    "toPandas": "to_pandas()",
}
"""Names that results have in other packages."""
MOST_ROWS: Final = 60
"""The number of rows of a query or of RETURNING in a report at most."""


@dataclass(frozen=True)
class Recording:
    """What was kept of a statement so that its calls can be repeated.

    Args:
        record: the record; None if there is none.
        missing: why there is no record.
    """

    record: Record | None
    connector: Connector | None = None
    missing: str = ""


class ResultUseError(RowMergeError, TypeError):
    """A use of a result as a list, a dictionary or a truth, which it is not."""

    default_code = "INVALID_ARGUMENTS"


class Result:
    """The result of one statement: finished, failed, planned or explained.

    Args:
        table: the rows of a query, or those of RETURNING; None otherwise.
        explained: the text of an EXPLAIN or SHOW CREATE; None for other statements.
        rehearsed: the target's rows after a rehearsal, if the connector shows them; None otherwise.
        recording: what was kept so that its calls can be repeated; None if nothing was.

    Attributes:
        again: runs the statement again; None for statements that change no rows.
    """

    def __init__(
        self,
        trace: Trace,
        table: pa.Table | None = None,
        explained: str | None = None,
        rehearsed: pa.Table | None = None,
        recording: Recording | None = None,
    ) -> None:
        self.trace = trace
        self.table = table
        self.explained = explained
        self.rehearsed = rehearsed
        self.recording = recording
        self.again: Rerun[Result] | None = None

    def __getattr__(self, name: str) -> Any:
        """Raise the error of a missing name; it has the name of the frame that would do."""
        frame = _FRAME_NAMES.get(name)
        if frame is None and not name.startswith("_"):
            import pandas as pd

            frame = f"to_pandas().{name}" if hasattr(pd.DataFrame, name) else None
        hint = f". Write result.{frame}" if frame else ""
        raise AttributeError(
            f"'Result' object has no attribute '{name}'{hint}", name=name, obj=self
        )

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The rows as an Arrow stream, for Arrow, Polars and DuckDB."""
        return self._arrow().__arrow_c_stream__(requested_schema)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """The rows of `to_pandas` as dictionaries, for ``pandas.DataFrame(result)`` and loops.

        Without rows, ``pandas.DataFrame(result)`` has no columns, but `to_pandas` has.

        Raises:
            RowMergeError: AMBIGUOUS_NAME if two columns have one name.
        """
        frame = self.to_pandas()
        if not frame.columns.is_unique:
            name = frame.columns[frame.columns.duplicated()][0]
            raise RowMergeError(
                f"Two columns are named '{name}', so a row cannot be a dictionary",
                code="AMBIGUOUS_NAME",
                hint="Use result.to_pandas(), or give the columns different names with AS.",
            )
        rows: list[dict[Any, Any]] = frame.to_dict("records")
        return iter(rows)

    def __len__(self) -> int:
        """The number of rows of a query or of RETURNING.

        Raises:
            TypeError: for other statements.
        """
        if self.table is None:
            raise ResultUseError(
                f"A result of {self.trace.kind} without rows has no length",
                hint="result.count is the number of changed rows.",
            )
        return int(self.table.num_rows)

    def __bool__(self) -> bool:
        raise ResultUseError(
            "A result is neither true nor false",
            hint="Write result is not None, or len(result) > 0."
            if self.table is not None
            else "Write result is not None, or result.count > 0.",
        )

    def __contains__(self, item: object) -> bool:
        raise ResultUseError(
            "A result has rows and columns, so `in` has no single meaning",
            hint=f"Write {item!r} in result.to_pandas().columns."
            if isinstance(item, str)
            else "Look in a column: result.to_pandas()['name'].isin([...]).",
        )

    def __getitem__(self, key: object) -> Any:
        frame = "to_pandas()" if isinstance(key, str | list) else "to_pandas().iloc"
        text = (
            f"{key.start or ''}:{'' if key.stop is None else key.stop}"
            if isinstance(key, slice)
            else repr(key)
        )
        raise ResultUseError(
            f"A result cannot be indexed by {text}", hint=f"Write result.{frame}[{text}]."
        )

    @property
    def count(self) -> int | None:
        """The number of changed rows; None for a query, and unless it finished."""
        return self.trace.count

    @property
    def counts(self) -> dict[str, int]:
        """Rows per operation: INSERT, UPDATE, DELETE, and ``none`` for joined rows that no clause
        took, or one with DO NOTHING.
        """
        totals = {"INSERT": 0, "UPDATE": 0, "DELETE": 0, "none": 0}
        for clause in self.trace.clauses:
            name = clause.operation.name if clause.operation.name in totals else "none"
            totals[name] += clause.rows or 0
        if not self.trace.clauses and self.trace.kind in {"INSERT", "CREATE TABLE AS"}:
            totals["INSERT"] = self.trace.count or 0
        return totals

    @property
    def version_before(self) -> int | str | None:
        """The version of the target that the statement was made from, of Hive the last write id;
        None without versions, and for a new table.
        """
        return self.trace.target.version_before

    @property
    def version_after(self) -> int | str | None:
        """The version that the statement's commit has made; None without versions, and unless it
        was committed.
        """
        return self.trace.target.version_after

    @property
    def balance(self) -> Balance | None:
        """Rows before, stored deletes and inserts, and the store's count in the version that was
        committed.

        ``holds`` is False if the store does not have the expected rows, None if it could not be queried or does not count. None itself for a failed statement, for other statements than
        MERGE, UPDATE and DELETE, and if the rows before are not known.
        """
        from rowmerge_nb.report.model.outcome import build_balance

        return build_balance(self.trace)

    @property
    def plan(self) -> str:
        """The plan that was run, as EXPLAIN prints it."""
        return explain_text(self.trace.plan)

    @property
    def verification(self) -> VerificationRecord | None:
        """The answer of another engine; None without the option ``verify``."""
        return self.trace.checks.verification

    @property
    def pages(self) -> PageSample | None:
        """Rows of the page before and after ``transform_page``."""
        return self.trace.samples.pages

    def written(self) -> pd.DataFrame:
        """The files that the statement has written, or its statements in a database: kind, name,
        rows, bytes.

        Raises:
            RowMergeError: NOT_SUPPORTED if the connector does not report them, and for statements
                that write nothing.
        """
        import pandas as pd

        if self.trace.target.output is None:
            raise RowMergeError.unsupported(
                f"What this {self.trace.kind} wrote is unknown",
                hint=(
                    "A connector reports it in the ConnectorOutputMetadata that its"
                    " finish calls return."
                    if self.trace.target.connector
                    else _NOTHING_WRITTEN
                ),
            )
        names = [field.name for field in fields(Written)]
        return pd.DataFrame(
            [astuple(one) for one in self.trace.target.output.written], columns=names, dtype=object
        )

    @property
    def calls(self) -> pd.DataFrame:
        """The calls of the connector's contract in order: arguments and answer in a few words;
        rows, bytes, seconds, error.
        """
        import pandas as pd

        return pd.DataFrame([_plain(call) for call in self.trace.calls], dtype=object)

    def diff(self) -> pd.DataFrame:
        """The changed rows: operation, case number, source row, and per column the old and the new
        value, with the types of `to_pandas`.

        The trace has all rows of a small statement, and the first per clause of a large one
        (``trace="full"`` keeps all): then a warning says how many there are.

        Raises:
            RowMergeError: NOT_SUPPORTED if the statement failed.
        """
        import pandas as pd
        import pyarrow as pa

        from rowmerge_nb.spi.values import python_values
        from rowmerge_nb.trace.changed_rows import changed_rows

        if self.trace.state == StatementState.FAILED:
            raise RowMergeError.unsupported(
                f"This {self.trace.kind} failed: it changed no row",
                hint="Its error names the cause. Fix it and run the statement again.",
            )
        changes = changed_rows(self.trace)
        try:
            rows = _frame(pa.table(changes))
        except ValueError:
            # pandas has no dates after the year 9999.
            rows = pd.DataFrame(
                {name: python_values(values) for name, values in changes.items()}, dtype=object
            )
        if not rows.empty and len(rows) < (self.count or 0):
            warnings.warn(
                f"These are {len(rows):,} of {self.count:,} changed rows. Run the statement with"
                ' trace="full" (--trace full in a cell), which keeps all.',
                UserWarning,
                stacklevel=2,
            )
        return rows

    def journeys(self) -> pd.DataFrame:
        """The path of each joined row: its source and target row, the join, the clauses passed
        over, the one that fired, its new rows.

        The rows are those of the trace with the values of both sides: all of a small statement
        (``trace="full"`` keeps all).

        Raises:
            RowMergeError: NOT_SUPPORTED if the trace has no such rows: for other statements, and
                for large ones.
        """
        import pandas as pd

        from rowmerge_nb.trace.journeys import journey_columns

        return pd.DataFrame(journey_columns(self.trace), dtype=object)

    def why(
        self,
        row: int | Mapping[str, Any] | None = None,
        /,
        *,
        source_row: int | None = None,
        **columns: Any,
    ) -> Why:
        """Return the reasons for the paths of rows: the answers of ON and of each WHEN condition,
        and the part that decided.

        For a large statement, whose trace has not all rows, up to 30 requested rows are looked up
        by one Spark job in the version of the target that the statement was made from. Sources are
        read in their current state.

        Args:
            row: the number of the row in the source, from 0, as in `journeys`; or values by columns
                of any name: ``why({"first name": "Dave"})``.
            source_row: the number of the row in the source by name; None for all.
            columns: values of the row's columns, of either side: ``why(customer="Dave")``. Without
                any, all rows of the trace are explained.

        Raises:
            RowMergeError: INVALID_ARGUMENTS if no row has these values, or no column has such a
                name. AMBIGUOUS_NAME for ``source_row=`` if that is also a column. NOT_SUPPORTED for
                other statements, and if neither the trace has these rows nor the store the former
                version: ``why=`` with the run carries them into the trace.
        """
        from rowmerge_nb.report.why import Why

        return Why.of(
            self.trace, row, source_row, columns, None if self.again is None else self.again.asked
        )

    def what_if(
        self,
        sql: str | None = None,
        *,
        source: Mapping[int, Mapping[str, Any]] | None = None,
        **options: Any,
    ) -> Result:
        """Rehearse the statement again on the rows that it had, changed or with other options;
        nothing is committed.

        It runs on a copy of the target's former version in memory. If the store keeps no versions,
        the copy has the rows that took part, or for a rehearsal all rows. Sources, and tables in
        conditions, are read in their current state.

        Args:
            sql: the changed statement, with the same target; None for the same one.
            source: new values for cells of a MERGE's source, by row number, from 0 as in
                `journeys`, and column: ``{3: {"price": 2}}``. The source is VALUES, a table or a
                DataFrame (not Spark's) of at most 1,000 rows, and is unchanged. Values have the
                column's type, or are texts that are parsed as it; None is NULL.
            options: changed options of `rowmerge_nb.engine.api.statement_options.Options`: ``paradigm``, ``era``,
                ``duplicates``, ...

        Raises:
            RowMergeError: the statement is wrong or fails: ``error.result`` has what is known.
                INVALID_ARGUMENTS for another target, and for a source row, column or type that does
                not exist. TRANSACTION_CONFLICT if the source has other rows now. NOT_SUPPORTED for
                cells of another source, without an engine, as of a saved trace, and if the trace
                has not all rows that took part.
        """
        if self.again is None:
            raise RowMergeError.unsupported(
                f"This {self.trace.kind} cannot be run again",
                hint="Only a MERGE, UPDATE or DELETE whose result came from an engine can"
                " be run again.",
            )
        return self.again.run(sql, source, **options)

    def near(
        self,
        row: int | Mapping[str, Any] | None = None,
        /,
        *,
        source_row: int | None = None,
        **columns: Any,
    ) -> Near:
        """Return the nearest target keys for source rows of a MERGE without a partner, and what
        separates them.

        Differences are blanks at the ends, case, Unicode form, the spelling of a number, NULL, one
        key of several, one letter, or another condition of ON; ``docs/why.md`` lists them. Target
        rows without a source row are included if they are near to one.

        Args:
            row: the number of the row in the source, from 0, as in `journeys`; or values by columns
                of any name.
            source_row: the number of the row in the source by name; None for all.
            columns: values of columns that ON reads: ``near(customer="Dave ")``. Without any, all
                rows are included.

        Raises:
            RowMergeError: INVALID_ARGUMENTS if no row without a partner has these values, or ON
                reads no column of such a name; NOT_SUPPORTED for other statements, and for large
                ones without ``near=True``.
        """
        from rowmerge_nb.report.near_answer import Near

        return Near.of(self.trace, row, source_row, columns)

    def check_rows(self, wanted: Any, by: str | Iterable[str] | None = None) -> RowCheck:
        """Compare the rows that the statement left with expected rows, and explain the differences.

        The rows are those of a query, the target's rows after a rehearsal, or the target's current
        rows after a committed MERGE, UPDATE or DELETE.

        Args:
            wanted: a DataFrame (pandas, Arrow, Polars, Spark) with the columns of these rows, in
                any order. The number of equal rows matters, their order does not, nor do blanks at
                the end of a column of type char.
            by: the columns that identify a row: a wrong row is explained by the joined rows whose
                source, target or new row has the same values in them. None for all columns.

        Raises:
            RowMergeError: INVALID_ARGUMENTS if it is no DataFrame, and for columns that are
                missing, unknown, or of another type. NOT_SUPPORTED for values that no SQL type
                holds, as nanoseconds. NOT_SUPPORTED too if the rows are not known: after a
                failure, without a run, and for a rehearsal in a store that does not show them.
                After a commit, `what_if` has only the rows that took part.
        """
        from rowmerge_nb.engine.api.frames.dataframes import whole_frame
        from rowmerge_nb.engine.spark.frames import is_frame
        from rowmerge_nb.report.row_check import RowCheck

        checked(wanted, "wanted", is_frame, "a DataFrame: of pandas, Arrow, Polars or Spark")
        rows = whole_frame("wanted", wanted).table
        return RowCheck.of(self.trace, self._rows_left(), rows, by, padded=self._padded())

    def _padded(self) -> frozenset[str]:
        """Return the columns of type char among those of the rows that it left."""
        if self.trace.kind not in ROW_CHANGES:
            return (
                frozenset(
                    name
                    for name, type_name in self.trace.plan[0].layout
                    if type_name.startswith("char")
                )
                if self.trace.plan
                else frozenset()
            )
        assert self.again is not None
        # The target of a trial is a copy of the same table.
        table_metadata = self.again.target_metadata()
        return (
            frozenset(
                column.name for column in table_metadata.columns if column.type.base == "char"
            )
            if table_metadata is not None
            else frozenset()
        )

    def _rows_left(self) -> pa.Table:
        trace, again = self.trace, self.again
        rows: pa.Table | None = None
        if trace.kind not in ROW_CHANGES:
            rows = self.table
        elif trace.committed and trace.state is StatementState.FINISHED and again is not None:
            rows = again.target_rows()
        elif again is None or not again.trace.committed:
            rows = self.rehearsed
        if rows is None:
            msg = f"The rows that this {trace.kind} left are unknown"
            if trace.error is not None:
                msg = f"This {trace.kind} failed ({trace.error.code}), so it left no rows to check"
            raise RowMergeError.unsupported(
                msg,
                hint="Check a query of the table, or a MERGE, UPDATE or DELETE that has run.",
            )
        return rows

    def record(self) -> Record:
        """Return the record: the pages that the statement handed to its connector, and the rows of
        its target.

        `rowmerge_nb.replay` repeats the calls in this process, without Spark;
        ``record().save(path)`` saves it.

        Raises:
            RowMergeError: NOT_SUPPORTED if no pages were kept: run the statement with
                ``record=True``. Without it, only the pages of a writer, or a split, in which a call
                of the connector failed are kept.
        """
        if self.recording is not None and self.recording.record is not None:
            return self.recording.record
        missing = self.recording.missing if self.recording is not None else ""
        raise RowMergeError.unsupported(
            f"The pages of this {self.trace.kind} were not kept{f': {missing}' if missing else ''}",
            hint=(
                "Run the statement with record=True, or %%merge --record FILE. Saved"
                " traces have no pages."
            ),
        )

    def explore(self, *, predict: bool = False, first_line: int = 1) -> Explorer:
        """Return the explorer: a widget that follows rows step by step, with the reasons, and lets
        one guess what becomes of them.

        Args:
            predict: hide the outcomes of rows until they are guessed: of an UPDATE or a DELETE,
                which rows of the table it changes.
            first_line: the statement's line in its cell, from which an error counts.

        Raises:
            RowMergeError: NOT_SUPPORTED for other statements than a MERGE, UPDATE or DELETE by
                merge sinks, and if the trace has no rows with the values of both sides: for large
                statements.
        """
        from rowmerge_nb.engine.api.what_if import variants_of
        from rowmerge_nb.report.explorer.widget import Explorer

        return Explorer(
            self.trace,
            self.again,
            variants_of(self.trace),
            predict=predict,
            first_line=first_line,
        )

    def save_html(self, path: str | Path, *, predict: bool = False) -> None:
        """Write the explorer to a file that a browser opens without a server or a network.

        The file holds rows of the tables: only its owner may read it.

        Args:
            path: the file; an existing file is replaced.
            predict: begin with hidden outcomes, as `explore`.

        Raises:
            RowMergeError: NOT_SUPPORTED as `explore`; INVALID_ARGUMENTS if there is no such
                directory, PERMISSION_DENIED if the file cannot be written,
                GENERIC_INSUFFICIENT_RESOURCES if the disk is full.
        """
        from rowmerge_nb.engine.api.what_if import variants_of
        from rowmerge_nb.report.explorer.explorer_file import explorer_page
        from rowmerge_nb.trace.saved.files import write_private

        untouched = None if self.again is None else self.again.untouched(self.trace)
        checked(predict, "predict", bool, "True or False")
        page = explorer_page(self.trace, untouched, variants_of(self.trace), predict=predict)
        write_private(path, page.encode("utf-8", "backslashreplace"), "The explorer")

    def quiz(self, n: int = 5, seed: int = 0, topics: Collection[str] | None = None) -> Quiz:
        """Return questions about the rows of a MERGE, UPDATE or DELETE, whose answers `Quiz.check`
        checks.

        Args:
            n: the number of questions at most.
            seed: another number gives other questions.
            topics: some of join, condition, clause, where, page, paradigm, writer and duplicates;
                all by default. page and paradigm ask about `transform_page`.

        Raises:
            RowMergeError: NOT_SUPPORTED for other statements, and if the trace has no joined rows
                with the values of both sides; INVALID_ARGUMENTS for other values than numbers.
        """
        from rowmerge_nb.report.quiz import TOPICS, Quiz

        return Quiz.of(self.trace, n, seed, TOPICS if topics is None else topics)

    def beside_trino(self, query: Any) -> BesideTrino:
        """Lay a query that Trino has run beside this run of the same statement: the rows of both,
        operator by operator.

        Args:
            query: the result of `trino_query`, or its argument: the path of a file with the query's
                JSON, or the JSON.

        Raises:
            RowMergeError: INVALID_ARGUMENTS if it is no query's JSON or that of another statement,
                and if this statement has no plan to lay it beside; NOT_FOUND if there is no such
                file.
        """
        from rowmerge_nb.report.model.beside_trino import lay_beside
        from rowmerge_nb.trace.trino_query import TrinoQuery, trino_query

        return lay_beside(
            self.trace, query if isinstance(query, TrinoQuery) else trino_query(query)
        )

    def verdicts(self) -> Verdicts:
        """Return the answers of ten engines' rules about repeated matches, from the rows that the
        statement joined.

        Raises:
            RowMergeError: NOT_SUPPORTED if the statement is no MERGE, or ended before its rows were
                joined.
        """
        from rowmerge_nb.report.verdicts import Verdicts

        return Verdicts.of(self.trace)

    def text(self, show: str | Iterable[str] | None = None) -> str:
        """Return the whole report as text; ``print(result)`` shows the changed rows and the clauses.

        Args:
            show: the parts, as in ``%%merge --show``: ``result.text("plan,calls")``.

        Raises:
            RowMergeError: INVALID_ARGUMENTS for other parts.
        """
        from rowmerge_nb.engine.api.what_if import under_other_paradigm
        from rowmerge_nb.report.model.report import PARTS, PRESETS, build_report, part_hint
        from rowmerge_nb.report.plain_text import render_text

        names = show.split(",") if isinstance(show, str) else show
        parts = None if names is None else [str(name).strip() for name in names]
        for part in parts or ():
            if part not in {*PARTS, *PRESETS}:
                raise RowMergeError.invalid(f"A report has no part '{part}'", hint=part_hint(part))
        return render_text(build_report(self.trace, under_other_paradigm(self.trace)), show=parts)

    def to_pandas(self) -> pd.DataFrame:
        """The rows of a query or of RETURNING as a pandas DataFrame; for other statements Trino's
        one-row answer: ``rows``, or of EXPLAIN ``Query Plan``.

        A DECIMAL column has ``decimal.Decimal`` objects, which keep every digit. For floats, name
        the columns: ``result.to_pandas().astype({"purchases": float})``, or cast in the query:
        ``CAST(purchases AS double)``.
        """
        import pandas as pd

        if self.table is None and self.explained is None:
            return pd.DataFrame({"rows": [self.count]})
        return _frame(self._arrow())

    def to_polars(self) -> polars.DataFrame:
        """The rows as a Polars DataFrame, as `to_pandas`.

        Raises:
            SetupError: Polars is not installed.
        """
        try:
            import polars as pl
        except ImportError as error:
            raise SetupError(
                "to_polars needs Polars, which is not installed",
                hint="Run `pip install polars`, or use to_pandas().",
            ) from error
        return pl.DataFrame(self._arrow())

    def to_parquet(self, path: str | Path, **arguments: Any) -> None:
        """Write the rows, as of `to_pandas`, to a Parquet file by pyarrow.

        Args:
            path: the file; an existing file is replaced.
            arguments: those of ``pyarrow.parquet.write_table``, as ``compression="zstd"``.

        Raises:
            RowMergeError: INVALID_ARGUMENTS if the file cannot be written, or for other arguments.
        """
        from pyarrow import ArrowException, parquet

        file = checked_path(path, "path")
        try:
            parquet.write_table(self._arrow(), file, **arguments)
        except (OSError, TypeError, ValueError, ArrowException) as error:
            raise RowMergeError.invalid(
                f"The rows cannot be written to {file}: {error_text(error)}",
                hint="Choose a file in an existing directory; pyarrow checks other arguments.",
            ) from error

    def plot(self, **arguments: Any) -> Any:
        """Draw the rows by pandas: ``result.plot(kind="bar", x="customer", y="purchases")``.

        Args:
            arguments: those of ``pandas.DataFrame.plot``.

        Returns:
            What pandas returns: axes of Matplotlib, or a figure of another backend.

        Raises:
            SetupError: Matplotlib, or the backend of pandas, is not installed.
            RowMergeError: INVALID_ARGUMENTS if pandas cannot draw these rows.
        """
        try:
            return self.to_pandas().plot(**arguments)
        except ImportError as error:
            raise SetupError(
                f"pandas cannot draw: {error_text(error)}",
                hint="Run `pip install matplotlib`.",
            ) from error
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise RowMergeError.invalid(
                f"pandas cannot draw these rows: {error_text(error)}",
                hint="Name columns with numbers: result.plot(x='customer', y='purchases').",
            ) from error

    def _arrow(self) -> pa.Table:
        import pyarrow as pa

        if self.table is None:
            return pa.table(
                {"rows": [self.count]}
                if self.explained is None
                else {"Query Plan": [self.explained]}
            )
        return self.table

    def __str__(self) -> str:
        if self.explained is not None:
            return self.explained
        return self._repr_mimebundle_()["text/plain"]

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        trace = self.trace
        changed = (
            trace.state == StatementState.FINISHED
            and trace.committed
            and not trace.skipped
            and bool(trace.target.qualified_name)
        )
        # An error or interrupt while drawing says that the change is in the store.
        return StatementGuard(result=self, changed=changed).run(self._bundle)

    def _bundle(self) -> dict[str, str]:
        if self.explained is not None:
            from rowmerge_nb.report.bundle import explained_bundle

            return explained_bundle(self.trace, self.explained)
        rows = {} if self.table is None else _shown(self.table)
        if rows and self.trace.returned is None:
            # Reports take time to load, and few queries have notices.
            if not self.trace.notices:
                return rows
            from rowmerge_nb.report.bundle import rows_bundle

            return rows_bundle(rows, self.trace)
        from rowmerge_nb.engine.api.what_if import under_other_paradigm
        from rowmerge_nb.report.bundle import mime_bundle

        return mime_bundle(self.trace, above=rows, other=under_other_paradigm(self.trace))

    def __repr__(self) -> str:
        return f"<Result of {self.trace.kind}: {self.trace.state}, {self.count} rows>"


def _frame(table: pa.Table) -> pd.DataFrame:
    import pandas as pd

    rows: pd.DataFrame = table.to_pandas(types_mapper=_exact(table, pd))
    return rows


def _shown(table: pa.Table) -> dict[str, str]:
    """Render rows, at most `MOST_ROWS`: 200,000 rows of RETURNING would be 20 MB of text."""
    frame = _sql_null(_frame(table.slice(0, MOST_ROWS))).map(_short)
    text, html = frame.to_string(), frame.to_html()
    if table.num_rows > MOST_ROWS:
        rest = f"{table.num_rows:,} rows, the first {MOST_ROWS} shown"
        text, html = f"{text}\n{rest}", f"{html}\n<p>{rest}</p>"
    return {"text/plain": text, "text/html": html}


def _short(value: Any) -> Any:
    from rowmerge_nb.report.words.display_values import LONGEST, shortened

    text = str(value) if hasattr(value, "__len__") else ""
    return shortened(text) if len(text) > LONGEST else value


def _sql_null(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.astype(object).where(frame.notna(), "NULL")


def _exact(table: pa.Table, pd: Any) -> Any:
    """Return pandas types that hold integers and NULL together, which as floats would lose digits."""
    if not any(column.null_count for column in table.columns):
        return None
    import pyarrow as pa

    exact = {
        pa.int8(): pd.Int8Dtype(),
        pa.int16(): pd.Int16Dtype(),
        pa.int32(): pd.Int32Dtype(),
        pa.int64(): pd.Int64Dtype(),
    }
    exact[pa.bool_()] = pd.BooleanDtype()
    return exact.get


def _plain(call: Call) -> dict[str, Any]:
    return {
        "order": call.order,
        "where": call.where,
        "method": call.method,
        "given": call.given,
        "gave": call.gave,
        "rows": call.rows,
        "bytes": call.bytes,
        "seconds": call.seconds,
        "error": call.error,
        "injected": call.injected,
    }
