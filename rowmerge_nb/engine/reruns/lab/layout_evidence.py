"""What statements change and read: rehearsed, or from traces and records of earlier runs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowmerge_nb.base.choices import ROW_CHANGES, Flow
from rowmerge_nb.base.errors import RowMergeError
from rowmerge_nb.base.ordering import ascending
from rowmerge_nb.engine.api.result import Result
from rowmerge_nb.engine.observers.statement_record import touched_row_keys
from rowmerge_nb.engine.observers.touched_files import TargetReadsKeeper
from rowmerge_nb.engine.reruns.rerun_checks import refuse_branch
from rowmerge_nb.engine.tasks.identity import row_keys
from rowmerge_nb.spi.operations import Era, Operation
from rowmerge_nb.spi.page import row_ids_of
from rowmerge_nb.trace.file_costs import FileCount, count_of
from rowmerge_nb.trace.record import Record
from rowmerge_nb.trace.saved.records import load_record
from rowmerge_nb.trace.saved.traces import load_trace
from rowmerge_nb.trace.trace import Trace

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import numpy.typing as npt

    from rowmerge_nb.engine.catalog.engine_catalogs import TableName
    from rowmerge_nb.engine.reruns.running_engine import RunningEngine
    from rowmerge_nb.spi.page_source import Constraint

RECORD_BYTES: Final = 1 << 29
"""The room for the pages of a rehearsed statement."""
_FORM: Final = (
    "a text of statements, the pathlib.Path of a file with them or of a saved trace or record, or a"
    " list of texts, paths, results, traces and records"
)


@dataclass(frozen=True)
class StatementEvidence:
    """What a statement changes and reads.

    Args:
        origin: ``rehearsed``, ``trace`` or ``record``.
        rows: the changed rows of the table, each once.
        inserted: the number of inserted rows; None if unknown.
        files: the files that hold changed rows; their size is None if unknown.
        keys: hashes of the row ids, if it was rehearsed.
        read: the files that it read; None if unknown.
        constraints: the conditions of its scans; None if unknown.
    """

    text: str
    origin: str
    rows: pa.Table
    inserted: int | None
    files: FileCount
    keys: npt.NDArray[np.int64] | None = None
    read: FileCount | None = None
    constraints: tuple[Constraint, ...] | None = None


def sources_of(statements: object) -> list[str | Trace | Record]:
    """Return the texts, traces and records of an argument.

    Raises:
        RowMergeError: INVALID_ARGUMENTS for other values, a missing file, or no statement.
    """
    items = statements if isinstance(statements, list | tuple) else [statements]
    sources = [source for item in items for source in _sources(item)]
    if not sources:
        raise RowMergeError.invalid("There is no statement", hint=f"Give {_FORM}.")
    return sources


def _sources(item: object) -> Iterator[str | Trace | Record]:
    if isinstance(item, Result):
        has_record = item.recording is not None and item.recording.record is not None
        yield item.record() if has_record else item.trace
    elif isinstance(item, Trace | Record):
        yield item
    elif isinstance(item, str):
        yield from _texts(item)
    elif isinstance(item, Path):
        yield from _of_file(item)
    else:
        raise RowMergeError.invalid(
            f"statements has a value of type {type(item).__name__}, which is not possible",
            hint=f"Give {_FORM}.",
        )


def _texts(text: str) -> list[str]:
    from rowmerge_nb.sql.parser.statement_reader import split_statements

    return [statement for statement, _ in split_statements(text)]


def _of_file(path: Path) -> Iterator[str | Trace | Record]:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise RowMergeError.invalid(
            f"'{path}' cannot be read: {error.strerror or error}",
            hint="Give the path of a file with statements, or of a saved trace or record.",
        ) from error
    if content.startswith(b"PK"):
        yield load_record(path)
    elif content.lstrip().startswith(b"{"):
        yield load_trace(path)
    else:
        try:
            yield from _texts(content.decode())
        except UnicodeDecodeError as error:
            raise RowMergeError.invalid(
                f"'{path}' is neither text in UTF-8 nor a saved trace or record",
                hint="Give a file of statements, or a file written by save_trace or Record.save.",
            ) from error


def text_of(source: str | Trace | Record) -> str:
    return source if isinstance(source, str) else source.statement


def table_of(
    engine: RunningEngine, options: Mapping[str, Any], source: str | Trace | Record, index: int
) -> TableName:
    """Return the table whose rows a statement changes, without running it.

    Raises:
        RowMergeError: the statement is wrong; INVALID_ARGUMENTS if it changes no rows.
    """
    if isinstance(source, str):
        source = engine.run(source, **{**options, "dry_run": True}).trace
    if source.kind not in ROW_CHANGES:
        raise RowMergeError.invalid(
            f"Statement {index} is not a MERGE, UPDATE or DELETE but {source.kind}",
            hint="Remove it: it changes no rows of a table.",
        )
    if isinstance(source, Trace):
        refuse_branch(source.target, "A comparison of layouts", "counts the files of the table")
    name = source.target.name_parts if isinstance(source, Trace) else source.name
    catalog, schema, table = name
    return catalog, schema, table


def check_statement(
    engine: RunningEngine,
    target: TableName,
    options: Mapping[str, Any],
    source: str | Trace | Record,
    index: int,
) -> None:
    """Check that a statement changes rows of a table, without running it.

    Raises:
        RowMergeError: the statement is wrong; INVALID_ARGUMENTS for another table or statement.
    """
    name = table_of(engine, options, source, index)
    if name != target:
        raise RowMergeError.invalid(
            f"Statement {index} changes {'.'.join(name)}, and not {'.'.join(target)}",
            hint="Give statements of one table.",
        )


class EvidenceReader:
    """Reads the evidence of statements.

    Args:
        options: the options of rehearsals.
        columns: the columns whose values are needed.
    """

    def __init__(
        self, engine: RunningEngine, options: Mapping[str, Any], columns: Sequence[str]
    ) -> None:
        self._engine, self._options, self._columns = engine, options, list(columns)

    def read(self, source: str | Trace | Record, index: int) -> StatementEvidence:
        """Return the evidence of a statement.

        Raises:
            RowMergeError: the statement fails; NOT_SUPPORTED if rows are missing.
        """
        if isinstance(source, str):
            return self._rehearsed(source, index)
        if isinstance(source, Trace):
            return self._of_trace(source, index)
        rows, ids, _ = self._of_record(source, index)
        return StatementEvidence(
            source.statement, "record", rows, _inserted(source), _files(ids, index)
        )

    def _rehearsed(self, sql: str, index: int) -> StatementEvidence:
        keeper = TargetReadsKeeper()
        result = self._engine.apart({}, keeper).run(
            sql,
            **{
                "record_bytes": RECORD_BYTES,
                **self._options,
                "flow": Flow.MERGE,
                "rehearse": True,
                "record": True,
            },
        )
        record = result.record()
        rows, _, keys = self._of_record(record, index)
        reads = keeper.reads
        if reads is None:
            raise RuntimeError("The rehearsal ended before its finish call")
        numbers = ascending(reads.paths[np.isin(reads.keys, keys)])
        if len(numbers) and numbers[0] < 0:
            _refuse_files(index)
        paths = list(reads.files)
        return StatementEvidence(
            sql,
            "rehearsed",
            rows,
            max(0, (result.count or 0) - len(keys)),
            count_of(reads.files[paths[number]] for number in numbers.tolist()),
            keys,
            count_of(file for file in reads.files.values() if not file.deletes),
            reads.constraints,
        )

    def _of_record(
        self, record: Record, index: int
    ) -> tuple[pa.Table, pa.Array, npt.NDArray[np.int64]]:
        """Return the changed rows with their row ids, and the hashes of these."""
        touched = ascending(touched_row_keys(record))
        if record.left_out or record.every != 1:
            raise RowMergeError.unsupported(
                f"The record of statement {index} lacks pages",
                hint="Record it with a larger record_bytes, and without record_every.",
            )
        if record.rows is None or record.row_id is None:
            raise RowMergeError.unsupported(
                f"The record of statement {index} has no rows of the table",
                hint="Give the statement as text, so that it is rehearsed.",
            )
        keys = row_keys([row_ids_of(record.rows)], record.rows.num_rows)
        changed = record.rows.filter(pa.array(np.isin(keys, touched)))
        if changed.num_rows != len(touched):
            raise RowMergeError.unsupported(
                f"The record of statement {index} has {changed.num_rows} of"
                f" {len(touched)} changed rows of the table",
                hint="Record it with a larger record_bytes.",
            )
        return self._selected(pa.table(changed), index), row_ids_of(changed), touched

    def _of_trace(self, trace: Trace, index: int) -> StatementEvidence:
        pages = trace.samples.pages
        if pages is None or not pages.complete or pages.witness is None:
            raise RowMergeError.unsupported(
                f"The trace of statement {index} does not have all rows",
                hint="Run it with trace='full', or record=True, or give its text.",
            )
        ids = pages.row_ids
        changed = ids.is_valid().to_numpy(zero_copy_only=False) & (np.array(pages.produced) > 0)
        positions = np.flatnonzero(changed)
        keys = row_keys([ids.take(pa.array(positions))], len(positions))
        positions = positions[np.unique(keys, return_index=True)[1]]
        if "target" not in pages.witness.schema.names:
            raise RowMergeError.unsupported(
                f"The trace of statement {index} has no values of the table's rows",
                hint="Give its text, or a record.",
            )
        target = pages.witness.column("target").take(pa.array(positions))
        rows = pa.table(target.flatten(), [field.name for field in target.type])
        inserted = int((~changed & (np.array(pages.produced) > 0)).sum())
        return StatementEvidence(
            trace.statement,
            "trace",
            self._selected(rows, index),
            inserted,
            _files(ids.take(pa.array(positions)), index),
        )

    def _selected(self, rows: pa.Table, index: int) -> pa.Table:
        missing = [name for name in self._columns if name not in rows.column_names]
        if missing:
            raise RowMergeError.unsupported(
                f"The rows of statement {index} lack column '{missing[0]}'",
                hint="Give the statement as text, or layouts by other columns.",
            )
        return rows.select(self._columns)


def _inserted(record: Record) -> int | None:
    if record.flow is Flow.UPDATABLE:
        return 0
    if record.era is Era.DOCUMENTS and record.kind != "DELETE":
        # In its pages, inserted rows look like the second half of an update.
        return None
    operations = [page.page.column("operation") for page in record.pages]
    return sum(pc.sum(pc.equal(one, Operation.INSERT)).as_py() or 0 for one in operations)


def _files(ids: pa.Array, index: int) -> FileCount:
    """Return the number of files that row ids name; their sizes are not known."""
    if not pa.types.is_struct(ids.type) or ids.type.get_field_index("file") < 0:
        _refuse_files(index)
    return FileCount(len(ids.field("file").unique()), None if len(ids) else 0)


def _refuse_files(index: int) -> NoReturn:
    raise RowMergeError.unsupported(
        f"The row ids of statement {index} do not name files",
        hint="Give the statement as text, of a table in Delta Lake, Iceberg or Hive.",
    )
