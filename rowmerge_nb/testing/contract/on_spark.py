"""Checks on Spark: the same changes as statements, with tasks in their own processes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from rowmerge_nb.base.errors import RowMergeError
from rowmerge_nb.base.names import quoted
from rowmerge_nb.spi.types import parse_type
from rowmerge_nb.testing.contract.contract_statement import Changes
from rowmerge_nb.testing.contract.failures import PLANNING, FailureChecks, engine_for, in_sql
from rowmerge_nb.testing.contract.store_under_test import FilledTable, Way
from rowmerge_nb.testing.faults import Fault


class SparkChecks(FailureChecks):
    """Checks that need real tasks; ``-m "not spark"`` deselects them if the marker exists."""

    @pytest.fixture
    def spark(self, request: pytest.FixtureRequest) -> Iterator[Any]:
        try:
            session = request.getfixturevalue("spark")
        except pytest.FixtureLookupError:
            from rowmerge_nb.engine.spark.spark_session import create_session, stop_session

            session = create_session(cores=2)
            yield session
            stop_session(session)
        else:
            yield session

    @pytest.fixture
    def on_spark(self, request: pytest.FixtureRequest, connector: Any) -> FilledTable:
        return self.fill(connector, Way(list(self.layouts)[-1], paradigm=self.paradigms[0]))

    def test_statements_on_spark_change_the_right_rows_by_the_right_calls(
        self, spark: Any, on_spark: FilledTable
    ) -> None:
        faulty, engine = engine_for(on_spark, spark=spark)
        frames = {"changes": self.source_frame()}
        paradigm = on_spark.way.paradigm
        result = engine.run(self.merge_sql(), namespace=frames, paradigm=paradigm)
        changes = self.some_changes()
        on_spark.must_hold(changes)
        assert result.count == len(changes.deleted) + len(changes.updated) + len(changes.inserted)
        expected_calls = [*PLANNING, "begin_merge", "finish_merge", "commit"]
        coordinator = [call.method for call in result.trace.calls if call.where == "coordinator"]
        assert coordinator == expected_calls
        writers = {call.where for call in result.trace.calls if call.method == "store_merged_rows"}
        created = [call.where for call in result.trace.calls if call.method == "create_merge_sink"]
        assert sorted(created) == sorted(writers), "a sink is created only where a page arrives"
        assert faulty.calls.count("finish") == len(writers)

        on_spark.before = on_spark.contents()
        name = next(iter(self.nullable_columns()), None)
        if name is not None:
            column = quoted(name)
            engine.run(
                f"UPDATE {self.qualified()} SET {column} = NULL WHERE {column} IS NOT NULL",
                paradigm=paradigm,
            )
            at = list(self.columns).index(name)
            on_spark.must_hold(
                Changes(
                    updated=[
                        (row[0], {name: None}) for row in on_spark.before if row[at] is not None
                    ]
                )
            )

        on_spark.before = on_spark.contents()
        first, sql_type = next(iter(self.columns.items()))
        deleted_key = on_spark.before[0][0]
        frames["gone"] = pa.table({"k": pa.array([deleted_key], parse_type(sql_type).arrow)})
        engine.run(
            f"DELETE FROM {self.qualified()} WHERE {quoted(first)} IN (SELECT"
            f" {in_sql('k', parse_type(sql_type))} FROM gone)",
            namespace=frames,
            paradigm=paradigm,
        )
        on_spark.must_hold(Changes(deleted=(deleted_key,)))
        on_spark.must_have_left_nothing()

    def test_a_sink_that_fails_in_a_task_is_aborted_and_the_table_is_as_it_was(
        self, spark: Any, on_spark: FilledTable
    ) -> None:
        faulty, engine = engine_for(on_spark, Fault("store_merged_rows", after=True), spark)
        frames, paradigm = {"changes": self.source_frame()}, on_spark.way.paradigm
        with pytest.raises(RowMergeError, match="the disk is full"):
            engine.run(self.merge_sql(), namespace=frames, paradigm=paradigm)
        assert "abort" in faulty.calls
        assert faulty.calls[-1] == "rollback"
        assert "finish_merge" not in faulty.calls
        on_spark.must_be_unchanged()
        on_spark.must_have_left_nothing()

    def test_the_rows_of_a_task_that_dies_and_is_run_again_count_once(
        self, spark: Any, on_spark: FilledTable
    ) -> None:
        _, engine = engine_for(
            on_spark, Fault("store_merged_rows", call=1, after=True, exits=True), spark
        )
        engine.run(
            self.merge_sql(),
            namespace={"changes": self.source_frame()},
            paradigm=on_spark.way.paradigm,
        )
        on_spark.must_hold(self.some_changes())
        on_spark.must_have_left_nothing()
