"""Comparing layouts of a table by the evidence of statements."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from rowmerge_nb.base.arguments import checked
from rowmerge_nb.base.errors import RowMergeError
from rowmerge_nb.base.names import quoted
from rowmerge_nb.base.words import join, number
from rowmerge_nb.engine.catalog.table_files import files_of_table
from rowmerge_nb.engine.reruns.lab.lab_run import REFUSED
from rowmerge_nb.engine.reruns.lab.layout_candidates import (
    LayoutCandidate,
    LayoutFiles,
    candidate_of,
    candidates_of,
)
from rowmerge_nb.engine.reruns.lab.layout_evidence import (
    EvidenceReader,
    check_statement,
    sources_of,
    table_of,
    text_of,
)
from rowmerge_nb.engine.reruns.rerun_checks import existing_table, refuse_options
from rowmerge_nb.engine.spark.interrupts import guarded
from rowmerge_nb.spi.handles import SchemaTableName
from rowmerge_nb.trace.file_costs import FileCount
from rowmerge_nb.trace.layouts import AS_IT_IS, LayoutCost, Layouts, LayoutStatement

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rowmerge_nb.engine.catalog.engine_catalogs import TableName
    from rowmerge_nb.engine.reruns.lab.layout_evidence import StatementEvidence
    from rowmerge_nb.engine.reruns.running_engine import RunningEngine
    from rowmerge_nb.spi.connector import Connector
    from rowmerge_nb.spi.metadata import ConnectorTableMetadata
    from rowmerge_nb.spi.types import Type

LEAST_FILES: Final = 16
_NESTED: Final = frozenset({"array", "map", "row", "json"})


@dataclass(frozen=True)
class LayoutsRequest:
    table: Any
    statements: Any
    layouts: Any
    most_files: Any
    options: Mapping[str, Any]

    def check(self) -> None:
        checked(self.table, "table", (str, type(None)), "the name of a table, or None")
        checked(
            self.layouts,
            "layouts",
            lambda v: (
                v is None
                or (
                    isinstance(v, list | tuple)
                    and bool(v)
                    and all(isinstance(one, str) for one in v)
                )
            ),
            "a list of layouts, as ['region', 'bucket(id, 16)', 'sorted by id'], or None",
        )
        checked(
            self.most_files,
            "most_files",
            lambda v: v is None or (type(v) is int and v >= 1),
            "a whole number from 1, or None",
        )
        refuse_options("A comparison of layouts", REFUSED, self.options)


def compare_layouts(
    engine: RunningEngine, connectors: Mapping[str, Connector], request: LayoutsRequest
) -> Layouts:
    request.check()
    # Each rehearsal has a guard of its own.
    return guarded(partial(_compared, engine, connectors, request))


def _compared(
    engine: RunningEngine, connectors: Mapping[str, Connector], request: LayoutsRequest
) -> Layouts:
    sources = sources_of(request.statements)
    name = (
        table_of(engine, request.options, sources[0], 1)
        if request.table is None
        else engine.full_name(request.table)
    )
    subject = _Subject.of(engine, connectors, name)
    for index, source in enumerate(sources, 1):
        check_statement(engine, subject.name, request.options, source, index)
    candidates = _explicit(request.layouts, subject)
    columns = _columns(" ".join(map(text_of, sources)), candidates, subject)
    reader = EvidenceReader(engine, request.options, list(columns))
    evidence = [reader.read(source, index) for index, source in enumerate(sources, 1)]
    rows = _rows(engine, subject, list(columns))
    most = request.most_files or max(LEAST_FILES, 4 * subject.count.files)
    if candidates is None:
        by_name = {name.lower(): (name, columns[name]) for name in columns}
        candidates = list(
            candidates_of(by_name, subject.connector.get_table_properties(), subject.count.files)
        )
    else:
        most = max(most, rows.num_rows)
    table = pa.concat_tables([rows, *(one.rows.cast(rows.schema) for one in evidence)])
    costs = [
        cost
        for candidate in candidates
        if (cost := _cost(candidate, subject, evidence, table, rows.num_rows, most)) is not None
    ]
    current, notices = _current(subject, evidence)
    return Layouts(
        table=".".join(subject.name),
        rows=rows.num_rows,
        bytes=subject.count.bytes or 0,
        statements=tuple(_statements(evidence)),
        current=current,
        layouts=tuple(sorted(costs, key=lambda cost: (cost.moved_bytes, cost.files))),
        notices=notices,
    )


@dataclass(frozen=True)
class _Subject:
    """The table.

    Args:
        name: its full name.
        count: its data files.
    """

    name: TableName
    metadata: ConnectorTableMetadata
    connector: Connector
    count: FileCount

    @property
    def columns(self) -> dict[str, tuple[str, Type]]:
        """Names and types of columns by their names in lower case."""
        return {c.name.lower(): (c.name, c.type) for c in self.metadata.columns}

    @staticmethod
    def of(engine: RunningEngine, connectors: Mapping[str, Connector], name: TableName) -> _Subject:
        metadata = existing_table(engine, name)
        connector = connectors[name[0]]
        files = files_of_table(connector, SchemaTableName(name[1], name[2])).values()
        data = [file for file in files if not file.deletes]
        if not data:
            raise RowMergeError.unsupported(
                f"Table '{'.'.join(name)}' has no files, or its store does not report them",
                hint="Insert rows, or copy the table into Delta Lake or Iceberg: CREATE TABLE AS.",
            )
        sizes = [file.bytes or 0 for file in data]
        return _Subject(name, metadata, connector, FileCount(len(data), sum(sizes)))


def _explicit(layouts: Sequence[str] | None, subject: _Subject) -> list[LayoutCandidate] | None:
    if layouts is None:
        return None
    return list(dict.fromkeys(candidate_of(text, subject.columns) for text in layouts))


def _columns(
    text: str, candidates: Sequence[LayoutCandidate] | None, subject: _Subject
) -> dict[str, Type]:
    words = set(re.findall(r"\w+", text.lower()))
    layout_columns = {name for candidate in candidates or () for name in candidate.columns}
    columns = {
        name: sql_type
        for lower, (name, sql_type) in subject.columns.items()
        if sql_type.base not in _NESTED
        and (name in layout_columns or set(re.findall(r"\w+", lower)) <= words)
    }
    if not columns:
        raise RowMergeError.invalid(
            f"The statements name no column of {'.'.join(subject.name)} that a layout could use",
            hint="Pass layouts=['COLUMN'].",
        )
    return columns


def _rows(engine: RunningEngine, subject: _Subject, columns: Sequence[str]) -> pa.Table:
    names = ", ".join(map(quoted, columns))
    table = engine.run(f"SELECT {names} FROM {'.'.join(map(quoted, subject.name))}").table
    if table is None:
        raise RuntimeError("A query gave no rows")
    return table.rename_columns(list(columns))


def _cost(
    candidate: LayoutCandidate,
    subject: _Subject,
    evidence: Sequence[StatementEvidence],
    table: pa.Table,
    rows: int,
    most_files: int,
) -> LayoutCost | None:
    bytes_per_row = (subject.count.bytes or 0) / max(rows, 1)
    files = LayoutFiles(candidate, table, rows, subject.count.files, bytes_per_row)
    if files.files > most_files:
        return None
    ends = (rows + np.cumsum([one.rows.num_rows for one in evidence])).tolist()
    starts = [rows, *ends[:-1]]
    return LayoutCost(
        layout=str(candidate),
        files=files.files,
        touched=tuple(files.touched(slice(*span)) for span in zip(starts, ends, strict=True)),
        read=tuple(
            None if one.constraints is None else files.read(one.constraints) for one in evidence
        ),
    )


def _current(
    subject: _Subject, evidence: Sequence[StatementEvidence]
) -> tuple[LayoutCost, tuple[str, ...]]:
    mean = (subject.count.bytes or 0) / subject.count.files
    touched = tuple(
        one.files
        if one.files.bytes is not None
        else FileCount(one.files.files, round(one.files.files * mean))
        for one in evidence
    )
    cost = LayoutCost(
        layout=AS_IT_IS,
        files=subject.count.files,
        touched=touched,
        read=tuple(one.read for one in evidence),
    )
    numbers = [str(i) for i, one in enumerate(evidence, 1) if one.constraints is None]
    if not numbers:
        return cost, ()
    word = "statement" if len(numbers) == 1 else "statements"
    notice = (
        f"Traces and records have neither scan conditions nor file sizes: what {word}"
        f" {join(numbers)} read is unknown, and each touched file counts as"
        f" {number(round(mean))} bytes, the mean."
    )
    return cost, (notice,)


def _statements(evidence: Sequence[StatementEvidence]) -> Iterator[LayoutStatement]:
    rehearsed = [one.keys for one in evidence if one.keys is not None]
    keys, counts = np.unique(
        np.concatenate([np.zeros(0, np.int64), *rehearsed]), return_counts=True
    )
    shared = keys[counts > 1]
    for one in evidence:
        yield LayoutStatement(
            text=one.text,
            origin=one.origin,
            rows_changed=one.rows.num_rows,
            rows_inserted=one.inserted,
            rows_shared=None if one.keys is None else int(np.isin(one.keys, shared).sum()),
        )
