"""Checks that a failure at any step leaves the table unchanged."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa
import pytest

from rowmerge_nb.base.names import quoted
from rowmerge_nb.engine.engine import Engine
from rowmerge_nb.spi.types import Type, from_arrow, parse_type
from rowmerge_nb.testing.contract.contract_statement import PageStatement, given
from rowmerge_nb.testing.contract.store_under_test import ContractStore, FilledTable
from rowmerge_nb.testing.faults import Fault, FaultyConnector

if TYPE_CHECKING:
    from rowmerge_nb.testing.contract.contract_statement import Changes

PLANNING = [
    "get_merge_row_id_column_handle",
    "get_row_change_paradigm",
    "get_insert_layout",
    "get_update_layout",
]
STEPS = [
    "get_insert_layout",
    "begin_merge",
    "get_splits",
    "create_page_source",
    "get_next_page",
    "create_merge_sink",
    "store_merged_rows",
    "finish",
    "finish_merge",
    "commit",
]
FAULTS = [
    pytest.param(step, after, id=f"{step} {'after it worked' if after else 'before it works'}")
    for step in STEPS
    for after in (False, True)
    if step != "commit" or not after  # a failure after the commit cannot be undone
]


class FailureChecks(ContractStore):
    """Faults at the connector's boundary, injected by `rowmerge_nb.testing.faults`."""

    varies: ClassVar[Collection[str]] = ("paradigm",)

    @pytest.mark.parametrize(("step", "after"), FAULTS)
    def test_a_fault_at_any_step_leaves_the_table_as_it_was(
        self, filled_table: FilledTable, step: str, *, after: bool
    ) -> None:
        if filled_table.connector.commits_in_finish and (
            step == "commit" or (step == "finish_merge" and after)
        ):
            pytest.skip("commits_in_finish = True: finish_merge is the commit")
        faulty = FaultyConnector(filled_table.connector, Fault(step, after=after))
        statement = filled_table.statement(faulty)
        with pytest.raises(OSError, match="the disk is full"):
            self._merge_aborting(statement, self.some_changes())
        statement.rollback()
        filled_table.must_be_unchanged()
        filled_table.must_have_left_nothing()
        filled_table.merge(self.some_changes())
        filled_table.must_hold(self.some_changes())

    @staticmethod
    def _merge_aborting(statement: PageStatement, changes: Changes) -> None:
        statement.begin(changes)
        fragments: list[bytes] = []
        for writer, pages in statement.sink_pages(changes).items():
            sink = statement.sink(writer)
            try:
                for page in pages:
                    sink.store_merged_rows(page)
                fragments += given(sink.finish())
            except BaseException:
                sink.abort()
                raise
        statement.finish(fragments)
        statement.commit()

    # -- the order of calls

    def test_planning_asks_in_the_documents_order_and_begins_nothing(
        self, filled_table: FilledTable
    ) -> None:
        """EXPLAIN and a dry run end before begin_merge."""
        for explained in (False, True):
            faulty, engine = engine_for(filled_table)
            sql = self.merge_sql()
            frames = {"changes": self.source_frame()}
            if explained:
                engine.explain(sql, namespace=frames)
            else:
                engine.run(sql, dry_run=True, namespace=frames)
            calls = [
                call
                for call in faulty.calls
                if call in {*PLANNING, "begin_merge", "finish_merge", "create_merge_sink"}
            ]
            assert calls == PLANNING
            assert faulty.calls.count("begin_transaction") == faulty.calls.count(
                "rollback"
            ) + faulty.calls.count("commit")
        filled_table.must_be_unchanged()
        filled_table.must_have_left_nothing()

    def test_constraints_and_default_values_are_sql_that_the_engine_reads(
        self, filled_table: FilledTable
    ) -> None:
        _, engine = engine_for(filled_table)
        engine.run(
            f"INSERT INTO {self.qualified()} ({quoted(next(iter(self.columns)))}) VALUES (NULL)",
            dry_run=True,
        )

    # -- the same changes as SQL

    def qualified(self) -> str:
        return f"contract.{quoted(self.name().schema)}.{quoted(self.name().table)}"

    def merge_sql(self) -> str:
        """Return a MERGE with the changes of `some_changes`, from `source_frame`."""
        columns = [*map(quoted, self.columns)]
        types = [*map(parse_type, self.columns.values())]
        values = [in_sql(f"s.v{index}", sql_type) for index, sql_type in enumerate(types)]
        new = [f"{column} = {value}" for column, value in zip(columns, values, strict=True)]
        return (
            f"MERGE INTO {self.qualified()} t USING changes s ON t.{columns[0]} ="
            f" {in_sql('s.k', types[0])} WHEN MATCHED AND s.wanted = 'delete' THEN DELETE WHEN"
            f" MATCHED AND s.wanted = 'all' THEN UPDATE SET {', '.join(new[1:] or new)} WHEN"
            f" MATCHED THEN UPDATE SET {new[-1]} WHEN NOT MATCHED THEN INSERT VALUES"
            f" ({', '.join(values)})"
        )

    def source_frame(self) -> pa.Table:
        """Return the source of `merge_sql`: per change the key, the action, and the new values
        ``v0``, ``v1``, ...
        """
        changes, columns = self.some_changes(), list(self.columns)
        rows: list[tuple[str, Any, Mapping[str, Any]]] = [
            ("delete", key, {}) for key in changes.deleted
        ]
        rows += [
            ("all" if len(new) >= len(columns) - 1 else "last", key, new)
            for key, new in changes.updated
        ]
        rows += [
            ("insert", row[0], dict(zip(columns, row, strict=True))) for row in changes.inserted
        ]
        types = [parse_type(sql_type).arrow for sql_type in self.columns.values()]
        data: dict[str, Any] = {
            "k": pa.array([key for _, key, _ in rows], types[0]),
            "wanted": [action for action, *_ in rows],
        }
        for index, column in enumerate(columns):
            data[f"v{index}"] = pa.array([new.get(column) for *_, new in rows], types[index])
        return pa.table(data)


def in_sql(column: str, sql_type: Type) -> str:
    """Return SQL that converts a frame's column to a type.

    >>> in_sql("s.v1", parse_type("bigint")), in_sql("s.v1", parse_type("uuid")), in_sql("s.v1", parse_type("json"))
    ('s.v1', 'CAST(s.v1 AS uuid)', 'json_parse(s.v1)')
    """
    if sql_type.base == "json":
        return f"json_parse({column})"
    return column if from_arrow(sql_type.arrow) == sql_type else f"CAST({column} AS {sql_type})"


def engine_for(
    filled_table: FilledTable, fault: Fault | None = None, spark: Any = None
) -> tuple[FaultyConnector, Engine]:
    """Return an engine with the table's connector as catalog ``contract``, wrapped for faults."""
    faulty = FaultyConnector(filled_table.connector, fault)
    engine = Engine(spark=spark, era=str(filled_table.way.era))
    engine.add_catalog("contract", faulty)
    return faulty, engine
