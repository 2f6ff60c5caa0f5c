"""Splits and page sources of Hive tables."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from rowmerge_nb.base.errors import ConnectorError
from rowmerge_nb.connectors.hive_acid.buckets import buckets_of
from rowmerge_nb.connectors.hive_acid.hive_handles import HiveRowIdColumn, HiveSplit, hive_table
from rowmerge_nb.connectors.hive_acid.layout_names import (
    bucket_file,
    bucket_of_delta_file,
    bucket_of_original,
)
from rowmerge_nb.connectors.hive_acid.metastore.metastore import partition_texts
from rowmerge_nb.connectors.hive_acid.orc.orc_reading import (
    DeletedRows,
    KeyBounds,
    KeysFirst,
    RowKeys,
    read_rows,
    reading,
    row_count,
)
from rowmerge_nb.connectors.hive_acid.orc.tail import Stripe, read_tail
from rowmerge_nb.connectors.hive_acid.orc_values import partition_value
from rowmerge_nb.connectors.hive_acid.pruning import (
    data_domains,
    partition_matters,
    stripes_that_matter,
    wanted_buckets,
)
from rowmerge_nb.connectors.hive_acid.updatable_source import (
    HiveUpdatablePageSource,
    HiveUpdatableTableHandle,
)
from rowmerge_nb.connectors.hive_acid.visible_deltas import (
    AcidState,
    acid_state,
    data_files,
    declared_version,
    folder_errors,
)
from rowmerge_nb.connectors.shared.file_positions import empty_page
from rowmerge_nb.connectors.shared.late import has_match, is_selective
from rowmerge_nb.spi import (
    ColumnHandle,
    ConnectorPageSource,
    ConnectorPageSourceProvider,
    ConnectorSession,
    ConnectorSplit,
    ConnectorSplitManager,
    ConnectorTableHandle,
    ConnectorTransactionHandle,
    Constraint,
    Page,
    PagesSource,
    own,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy.typing as npt

    from rowmerge_nb.connectors.hive_acid.hive_handles import HiveTableHandle
    from rowmerge_nb.connectors.hive_acid.metastore.metastore import HiveTable

PAGE_ROWS: Final = 65_536
SMALL_BYTES: Final = 1 << 20
SPLIT_BYTES: Final = 8 << 20
"""A larger file with several stripes is read by several tasks."""
_CHECKED_ROWS: Final = 1024
_OLDEST_VERSION: Final = 2


class HiveSplitManager(ConnectorSplitManager):
    """One split per file, or several for a large one."""

    def get_splits(
        self,
        transaction_handle: ConnectorTransactionHandle,
        session: ConnectorSession,
        table_handle: ConnectorTableHandle,
        constraint: Constraint,
    ) -> Sequence[ConnectorSplit]:
        return splits_of(hive_table(table_handle), constraint)


def splits_of(handle: HiveTableHandle, constraint: Constraint | None = None) -> list[HiveSplit]:
    with folder_errors(Path(handle.table.location)):
        return _splits(handle, constraint)


def _splits(handle: HiveTableHandle, constraint: Constraint | None) -> list[HiveSplit]:
    table, domains = handle.table, data_domains(handle.table, constraint)
    buckets = wanted_buckets(table, constraint)
    splits = [
        part
        for name in handle.snapshot.partitions
        if partition_matters(name, table, constraint)
        for split in partition_splits(
            table, name, acid_state(Path(table.location) / name, handle.snapshot.write_ids)
        )
        if buckets is None or split.bucket in buckets
        for part in _parts_of(replace(split, domains=domains), table)
    ]
    files = {path for split in splits for path in (split.path, *split.deletes)}
    small = sum(path.stat().st_size for path in files) <= SMALL_BYTES
    return [replace(split, carries_rows=small) for split in splits]


def _parts_of(split: HiveSplit, table: HiveTable) -> list[HiveSplit]:
    if split.path.stat().st_size <= SPLIT_BYTES:
        return [split]
    tail = read_tail(split.path)
    if tail is None:
        return [split]
    parts: list[HiveSplit] = []
    size = 0
    for stripe in stripes_that_matter(table, tail, split.domains, flat=split.original is not None):
        last = parts[-1].stripes if parts else None
        if last is not None and last[1] == stripe.number and size + stripe.size <= SPLIT_BYTES:
            parts[-1] = replace(split, stripes=(last[0], stripe.number + 1))
            size += stripe.size
        else:
            parts.append(replace(split, stripes=(stripe.number, stripe.number + 1)))
            size = stripe.size
    return parts


def partition_splits(table: HiveTable, name: str, state: AcidState) -> Iterator[HiveSplit]:
    folder = Path(table.location) / name
    directories = [directory for directory in (state.base, *state.deltas) if directory is not None]
    deleting = [
        {file.name: file for file in data_files(folder / directory.name)}
        for directory in state.delete_deltas
    ]
    declared = (
        declared_version(folder / d.name)
        for d in (state.base, *state.deltas, *state.delete_deltas)
        if d is not None
    )
    current = (next(declared, None) or 0) >= _OLDEST_VERSION
    for directory in directories:
        for file in data_files(folder / directory.name):
            if not current:
                _check_version(file, table)
            bucket = bucket_of_delta_file(file.name)
            _check_bucket(file, bucket, table)
            event_file = file.name if bucket is None else bucket_file(bucket)
            deletes = tuple(files[event_file] for files in deleting if event_file in files)
            yield HiveSplit(
                file,
                name,
                deletes,
                bucket=bucket if table.bucket_count is not None else None,
                elsewhere=state.overlaps.get(directory.name, 0),
            )
    first_rows: dict[int, int] = {}
    has_one_file_per_bucket = len(state.originals) == len(
        {bucket_of_original(file.name) for file in state.originals}
    )
    for file in state.originals:
        bucket = bucket_of_original(file.name) or 0
        _check_bucket(file, bucket, table)
        deletes = tuple(
            files[bucket_file(bucket)] for files in deleting if bucket_file(bucket) in files
        )
        yield HiveSplit(
            file,
            name,
            deletes,
            (bucket, first_rows.get(bucket, 0)),
            bucket if table.bucket_count is not None else None,
        )
        if not has_one_file_per_bucket:
            first_rows[bucket] = first_rows.get(bucket, 0) + row_count(file)


def _check_bucket(file: Path, bucket: int | None, table: HiveTable) -> None:
    if table.bucket_count is not None and (bucket is None or bucket >= table.bucket_count):
        raise ConnectorError(
            f"Hive table '{table.name}' is corrupt: file '{file}' belongs to no"
            f" bucket; the table has {table.bucket_count}",
            code="HIVE_INVALID_BUCKET_FILES",
            hint="Register the table with the bucket count that it was written with.",
        )


def _check_version(file: Path, table: HiveTable) -> None:
    with reading(file) as orc_file:
        version = dict(orc_file.schema.metadata or {}).get(b"hive.acid.version", b"0")
    if not version.isdigit() or int(version) < _OLDEST_VERSION:
        raise ConnectorError(
            "Hive transactional tables are supported since Hive 3.0, and file"
            f" '{file}' of table '{table.name}' does not declare that format",
            hint="Run a major compaction with Hive 3, then read the table again.",
        )


class HivePageSourceProvider(ConnectorPageSourceProvider):
    def create_page_source(
        self,
        transaction_handle: ConnectorTransactionHandle,
        session: ConnectorSession,
        split: ConnectorSplit,
        table_handle: ConnectorTableHandle,
        columns: Sequence[ColumnHandle],
    ) -> ConnectorPageSource:
        split = own(split, HiveSplit)
        table = hive_table(table_handle).table
        if isinstance(table_handle, HiveUpdatableTableHandle):

            def open_source(requested: Sequence[ColumnHandle]) -> PagesSource:
                return PagesSource(read_split(split, table, requested))

            return HiveUpdatablePageSource(
                open_source, table_handle, split, columns, session.writer or 0
            )
        return PagesSource(read_split(split, table, columns))


def read_split(
    split: HiveSplit, table: HiveTable, columns: Sequence[ColumnHandle]
) -> Iterator[Page]:
    """Read a split's columns and row ids, without deleted rows."""
    indexes = {column.name: index for index, column in enumerate(table.data_columns)}
    column_names = [
        c.name for c in columns if not isinstance(c, HiveRowIdColumn) and c.name in indexes
    ]
    partition = dict(zip(table.partitioned_by, partition_texts(split.partition), strict=True))
    values = {
        c.name: partition_value(partition[c.name], c, table.name) for c in table.partition_columns
    }
    stripes, bounds = _stripes_of(split, table)
    deleted = DeletedRows(split.deletes, bounds)
    with_ids = any(isinstance(column, HiveRowIdColumn) for column in columns)
    names = [column.name for column in columns]
    if split.bucket is not None:
        column_names += [name for name in table.bucketed_by if name not in column_names]
    data = [(indexes[name], table.data_columns[indexes[name]]) for name in column_names]
    for rows, keys, arrays in read_rows(
        split.path,
        data,
        split.original,
        keys=with_ids or bool(deleted) or bool(split.elsewhere),
        stripes=stripes,
        first=_selective_columns(split, table),
    ):
        arrays_by_name = dict(zip(column_names, arrays, strict=True))
        if split.bucket is not None:
            _check_rows(split, table, [arrays_by_name[name] for name in table.bucketed_by])
        channels = []
        for column in columns:
            if isinstance(column, HiveRowIdColumn):
                channels.append(keys.as_array() if keys is not None else pa.nulls(rows))
            elif column.name in arrays_by_name:
                channels.append(arrays_by_name[column.name])
            else:
                channels.append(pa.repeat(values[column.name], rows))
        # A page without channels still has a number of rows.
        page = (
            pa.RecordBatch.from_struct_array(pa.StructArray.from_arrays(channels, names=names))
            if channels
            else empty_page(rows)
        )
        if keys is not None and (deleted or split.elsewhere):
            page = page.filter(pa.array(living_rows(keys, deleted, split.elsewhere)))
        for start in range(0, page.num_rows, PAGE_ROWS):
            yield page.slice(start, PAGE_ROWS)


def living_rows(keys: RowKeys, deleted: DeletedRows, elsewhere: int) -> npt.NDArray[np.bool_]:
    """Return which rows are not deleted, and not in another directory too."""
    living: npt.NDArray[np.bool_] = (
        keys.write_ids > elsewhere if elsewhere else np.ones(keys.numbers.size, bool)
    )
    return living & ~deleted.contains(keys) if deleted else living


def _stripes_of(split: HiveSplit, table: HiveTable) -> tuple[list[Stripe] | None, KeyBounds | None]:
    if split.stripes is None and not split.domains and not split.deletes:
        return None, None
    tail = read_tail(split.path)
    if tail is None and split.stripes is not None:
        raise ConnectorError(
            f"The end of file '{split.path}' of table '{table.name}' could be read"
            " when the statement began, but no longer",
            code="HIVE_BAD_DATA",
            hint="Run the statement again. If it fails again, restore the file.",
        )
    if tail is None:
        return None, None
    selected = stripes_that_matter(table, tail, split.domains, flat=split.original is not None)
    if split.stripes is not None:
        selected = [
            stripe for stripe in selected if split.stripes[0] <= stripe.number < split.stripes[1]
        ]
    if split.original is None:
        return selected, KeyBounds.of(tail, selected)
    numbers = [stripe.first + split.original[1] for stripe in selected]
    ends = [stripe.first + stripe.rows + split.original[1] - 1 for stripe in selected]
    return selected, KeyBounds((0, 0), (min(numbers), max(ends))) if selected else None


def _selective_columns(split: HiveSplit, table: HiveTable) -> KeysFirst:
    selective = [
        (index, domain)
        for index, domain in split.domains
        if is_selective(domain, table.data_columns[index].type)
    ]
    domains = [domain for _, domain in selective]
    return KeysFirst(
        [(index, table.data_columns[index]) for index, _ in selective],
        lambda arrays: has_match(zip(arrays, domains, strict=True)),
    )


def _check_rows(split: HiveSplit, table: HiveTable, columns: list[pa.Array]) -> None:
    """Check that a sample of the rows belongs to the split's bucket."""
    rows = np.arange(0, len(columns[0]), max(1, len(columns[0]) // _CHECKED_ROWS))
    types = [next(c.type for c in table.columns if c.name == name) for name in table.bucketed_by]
    sample = [column.take(pa.array(rows)) for column in columns]
    buckets = buckets_of(sample, types, table.bucket_count or 1, table.bucketing_version)
    wrong = buckets[buckets != split.bucket]
    if wrong.size:
        raise ConnectorError(
            f"Hive table is corrupt. File '{split.path}' is for bucket {split.bucket}, but contains"
            f" a row for bucket {wrong[0]}.",
            code="HIVE_INVALID_BUCKET_FILES",
            hint=(
                f"Table '{table.name}' may have been written with another bucketing_version than"
                f" {table.bucketing_version}."
            ),
        )
