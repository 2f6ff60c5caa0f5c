"""Random statements on Hive tables, compared with the oracle. The connector and ORC's own library read the results.

`ROWMERGE_RANDOM_STATEMENTS=1000` runs more of them.
"""

from __future__ import annotations

import datetime as dt
import itertools
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyorc
import pytest

from proof.engines.backends import (
    InexpressibleError,
    arrow_table,
)
from proof.oracle.oracle import Outcome, multiset
from proof.statements.model import Scenario
from rowmerge_nb import HiveAcidConnector, RowMergeError
from rowmerge_nb.connectors.hive_acid.buckets import check_bucket_type
from rowmerge_nb.connectors.hive_acid.hive_handles import HiveTableHandle
from rowmerge_nb.connectors.hive_acid.metastore.metastore import partition_texts
from rowmerge_nb.connectors.hive_acid.orc_values import check_partition_type
from rowmerge_nb.spi import (
    ColumnMetadata,
    ConnectorSession,
    ConnectorTableMetadata,
    SchemaTableName,
)
from tests.connectors.hive_acid.kit import Statement
from tests.connectors.random_tables import (
    TableUnderTest,
    agree_with_the_oracle,
    naming_inserted_columns,
)

pytestmark = [pytest.mark.spark, pytest.mark.trial]

NOBODY_CAN = "HIVE_INVALID_PARTITION_VALUE"
"""Hive takes an empty text in the name of a partition for NULL."""


class HiveUnderTest(TableUnderTest):
    """The engine with the target in a Hive table, each in its own schema."""

    name = "rowmerge_nb on Hive tables"

    def __init__(self, engine: Any, store: HiveAcidConnector) -> None:
        super().__init__(engine)
        self._store = store
        self._numbers = itertools.count()

    def run(self, scenario: Scenario) -> Outcome:
        outcome = super().run(scenario)
        if NOBODY_CAN in outcome.errors:
            raise InexpressibleError(outcome.message)
        return outcome

    def make(self, scenario: Scenario) -> None:
        """Create the table and insert its rows in two statements, for several deltas."""
        store, settings, session = (
            self._store,
            scenario.settings,
            ConnectorSession(f"make{next(self._numbers)}"),
        )
        name = SchemaTableName("default", scenario.target.name)
        self._drop(name)
        transaction = store.begin_transaction()
        target = scenario.target
        ordered = sorted(
            target.columns,
            key=lambda c: (
                (*settings.partitioned_by, "").index(c.name)
                if c.name in settings.partitioned_by
                else -1
            ),
        )
        columns = tuple(ColumnMetadata(c.name, c.type, c.nullable) for c in ordered)
        count = 3 if settings.bucketed_by else None
        placed = {
            "partitioned_by": settings.partitioned_by,
            "bucketed_by": settings.bucketed_by,
            "bucket_count": count,
        }
        placed["bucketing_version"] = 1 + len(columns) % 2
        store.get_metadata(transaction).create_table(
            session, ConnectorTableMetadata(name, columns, placed)
        )
        store.commit(transaction)
        rows = arrow_table(target).select([column.name for column in columns])
        half = rows.num_rows // 2
        for part in (rows.slice(0, half), rows.slice(half)):
            if part.num_rows:
                statement = Statement(store, name)
                handle = statement.metadata.begin_insert(session, statement.handle, ())
                sink = store.get_page_sink_provider().create_page_sink(
                    statement.transaction, session, handle
                )
                try:
                    sink.append_page(part.combine_chunks().to_batches()[0])
                except RowMergeError as error:
                    statement.rollback()
                    raise InexpressibleError(str(error)) from error
                statement.metadata.finish_insert(session, handle, sink.finish())
                statement.commit()

    def _drop(self, name: SchemaTableName) -> None:
        statement = Statement(self._store, name)
        if statement.handle is not None:
            statement.metadata.drop_table(statement.session, statement.handle)
        statement.commit()

    def content(self, scenario: Scenario) -> Any:
        names = scenario.target.names
        statement = Statement(self._store, SchemaTableName("default", scenario.target.name))
        ours = multiset(tuple(row[column] for column in names) for row in statement.rows())
        handle = statement.handle
        statement.commit()
        theirs = multiset(tuple(row[column] for column in names) for row in raw_rows(handle))
        assert ours == theirs, f"the connector reads {ours}, ORC's library {theirs}"
        return ours

    def adapted(self, scenario: Scenario) -> Scenario:
        """Partition the target as Hive requires; partition columns move, so the statement names the columns that it inserts."""
        types = {column.name: column.type for column in scenario.target.columns}
        partitions, buckets = scenario.settings.partitioned_by, scenario.settings.bucketed_by
        if len(buckets) == 2:
            partitions, buckets = buckets[:1], buckets[1:]
        partitions = tuple(
            name for name in partitions if fits(check_partition_type, name, types[name])
        )[: len(types) - 1]
        buckets = tuple(name for name in buckets if fits(check_bucket_type, name, types[name]))
        settings = replace(
            scenario.settings,
            paradigm=self.paradigm,
            partitioned_by=partitions,
            bucketed_by=buckets,
        )
        return naming_inserted_columns(replace(scenario, settings=settings))


def raw_rows(handle: HiveTableHandle) -> Iterator[dict[str, Any]]:
    """Read a table from its directories and files: the rows of all valid deltas, except those with a delete event."""
    table, counts = handle.table, handle.snapshot.write_ids.is_valid
    events: dict[str, list[Any]] = {"delta": [], "delete_delta": []}
    for path in Path(table.location).rglob("bucket_*"):
        kind, write_id, *_ = re.split(r"_(?=\d)", path.parent.name)
        if counts(int(write_id)):
            place = path.parent.parent.relative_to(table.location).as_posix().removeprefix(".")
            with path.open("rb") as file:
                events[kind] += [
                    (place, path.name, *event[1:4], event[5]) for event in pyorc.Reader(file)
                ]
    dead = {event[:5] for event in events["delete_delta"]}
    assert len(dead) == len(events["delete_delta"]), "a row was deleted twice"
    for place, *key, row in events["delta"]:
        if (place, *key) not in dead:
            pairs = zip(partition_texts(place), table.partition_columns, strict=True)
            values = [pa.array([text]).cast(column.type.arrow)[0].as_py() for text, column in pairs]
            plain = [
                value.replace(tzinfo=None) if isinstance(value, dt.datetime) else value
                for value in (*row, *values)
            ]
            yield dict(zip((column.name for column in table.columns), plain, strict=True))


def fits(check: Any, name: str, kind: Any) -> bool:
    try:
        check(name, kind)
    except RowMergeError:
        return False
    return True


def test_random_statements_on_hive_tables_end_like_in_the_oracle(
    spark: Any, tmp_path: Path
) -> None:
    store = HiveAcidConnector(tmp_path)
    agree_with_the_oracle(
        spark, store, lambda engine: HiveUnderTest(engine, store), range(25), 1848
    )
