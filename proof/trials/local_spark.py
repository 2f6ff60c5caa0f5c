"""A minimal Spark without Java: frames are Arrow batches, tasks run sequentially in this process,
and DuckDB executes the SQL.

It supports statements on small tables, so that the engine itself runs: text, plan, passes, sinks,
commit. Other features raise AttributeError.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final
from unittest.mock import patch

import pyarrow as pa

from rowmerge_nb.engine.engine import Engine
from rowmerge_nb.engine.spark.lazy_session import LazySession
from rowmerge_nb.engine.statements.query import QueryRun, plan_rows
from rowmerge_nb.engine.statements.statement import StatementRun
from rowmerge_nb.plan.plan_nodes import PhysicalForm

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rowmerge_nb.plan.plan_nodes import Output

__all__ = [
    "LocalEngine",
    "LocalFrame",
    "LocalSpark",
    "engines_without_spark",
    "inserts_without_spark",
    "without_spark",
]

_Partition = Callable[[], "Iterator[pa.RecordBatch]"]

_task: ContextVar[int] = ContextVar("task", default=0)
_FUNCTIONS: Final = {"raise_error(words)": "error(words)", "try_add(a, b)": "a + b"}
"""Spark functions with another name in DuckDB."""
_SETTINGS: Final = {"spark.sql.shuffle.partitions": "2", "spark.sql.session.timeZone": "UTC"}


class LocalFrame:
    """Rows in partitions; collecting the frame computes each partition in its own task.

    Args:
        spark: the session.
        partitions: functions that return batches.
        schema: the columns, if there may be no rows; otherwise the first batch has them.
    """

    def __init__(
        self, spark: LocalSpark, partitions: Sequence[_Partition], schema: pa.Schema | None = None
    ) -> None:
        self._spark = spark
        self._partitions = tuple(partitions)
        self._schema = schema

    def mapInArrow(self, task: Any, schema: Any) -> LocalFrame:  # noqa: N802 - Spark's name
        """Return the result of a pass on every partition."""
        from pyspark.sql.pandas.types import to_arrow_schema

        return LocalFrame(
            self._spark, [_mapped(task, part) for part in self._partitions], to_arrow_schema(schema)
        )

    def toArrow(self) -> pa.Table:  # noqa: N802 - Spark's name
        """Compute the rows."""
        batches: list[pa.RecordBatch] = []
        for number, part in enumerate(self._partitions):
            token = _task.set(number)
            try:
                batches += part()
            finally:
                _task.reset(token)
        return pa.Table.from_batches(batches, batches[0].schema if batches else self._schema)

    def coalesce(self, count: int) -> LocalFrame:
        """Return the same rows in one partition."""
        parts = self._partitions
        return LocalFrame(
            self._spark, [lambda: (batch for part in parts for batch in part())], self._schema
        )

    def repartitionById(self, count: int, column: str) -> LocalFrame:  # noqa: N802 - Spark's name
        """Send all rows to one task, which begins when the tasks that send them have ended."""
        parts = self._partitions
        return LocalFrame(
            self._spark,
            [lambda: iter([batch for part in parts for batch in part()])],
            self._schema,
        )

    def toDF(self, *names: str) -> LocalFrame:  # noqa: N802 - Spark's name
        """Return the first columns with other names."""
        return LocalFrame(self._spark, [_columns_named(part, names) for part in self._partitions])

    def selectExpr(self, *texts: str) -> LocalFrame:  # noqa: N802 - Spark's name
        """Return columns, optionally renamed by AS."""
        name_pairs = [[part.strip("`") for part in text.rsplit(" AS ", 1)] for text in texts]
        pairs = [(name[0], name[-1]) for name in name_pairs]
        schema = (
            None
            if self._schema is None
            else pa.schema([self._schema.field(old).with_name(new) for old, new in pairs])
        )
        return LocalFrame(
            self._spark, [_selected(part, pairs) for part in self._partitions], schema
        )

    def select(self, *names: str) -> LocalFrame:
        """Return some columns."""
        return self.selectExpr(*names)

    def createOrReplaceTempView(self, name: str) -> None:  # noqa: N802 - Spark's name
        """Register the rows for SQL."""
        self._spark.views[name] = self


def _mapped(task: Any, part: _Partition) -> _Partition:
    return lambda: task(part())


def _selected(part: _Partition, pairs: Sequence[tuple[str, str]]) -> _Partition:
    def batches() -> Iterator[pa.RecordBatch]:
        for batch in part():
            yield pa.RecordBatch.from_arrays(
                [batch.column(name) for name, _ in pairs], names=[name for _, name in pairs]
            )

    return batches


def _columns_named(part: _Partition, names: Sequence[str]) -> _Partition:
    def batches() -> Iterator[pa.RecordBatch]:
        for batch in part():
            yield pa.RecordBatch.from_arrays(batch.columns[: len(names)], names=list(names))

    return batches


class _Context:
    """The used part of a Spark context."""

    master: Final = "local[1]"
    defaultParallelism: Final = 1  # noqa: N815 - Spark's name

    def addJobTag(self, tag: str) -> None:  # noqa: N802 - Spark's name
        """Ignore the tag."""

    def cancelJobsWithTag(self, tag: str) -> None:  # noqa: N802 - Spark's name
        """Ignore the tag."""


class LocalSpark:
    """A session.

    Attributes:
        views: frames by their SQL names.
    """

    def __init__(self) -> None:
        self.views: dict[str, LocalFrame] = {}
        self.sparkContext = _Context()
        self.conf = SimpleNamespace(get=self._setting)
        self.catalog = SimpleNamespace(dropTempView=lambda name: self.views.pop(name, None))

    @staticmethod
    def _setting(name: str, default: Any = None) -> Any:
        if name == "spark.python.daemon.module":
            return "rowmerge_nb.engine.spark.worker"
        return _SETTINGS.get(name, default)

    def range(self, start: int, end: int, step: int, partitions: int) -> LocalFrame:
        """Return numbers, each in its own partition."""
        return LocalFrame(
            self,
            [_constant(pa.record_batch({"id": [number]})) for number in range(start, end, step)],
        )

    def createDataFrame(self, rows: pa.Table, schema: Any = None) -> LocalFrame:  # noqa: N802 - Spark's name
        """Return the rows of a table in one partition."""
        return LocalFrame(self, [lambda: iter(rows.to_batches())], rows.schema)

    def sql(self, text: str) -> LocalFrame:
        """Return the rows of a query, which must mean the same in Spark and DuckDB."""

        def rows() -> Iterator[pa.RecordBatch]:
            import duckdb

            with duckdb.connect(config={"threads": 1}) as connection:
                for name, meaning in _FUNCTIONS.items():
                    connection.execute(f"CREATE MACRO {name} AS {meaning}")
                for name, frame in self.views.items():
                    if name in text:
                        connection.register(name, frame.toArrow())
                yield from (
                    connection.sql(_for_duckdb(text)).to_arrow_table().combine_chunks().to_batches()
                )

        return LocalFrame(self, [rows])


def _for_duckdb(text: str) -> str:
    """Translate a query to DuckDB.

    >>> _for_duckdb("SELECT 12L AS `0`")
    'SELECT 12 AS "0"'
    """
    text = text.replace("`", '"').replace("TIMESTAMP_NTZ", "TIMESTAMP")
    return re.sub(r"\b(\d+)L\b", r"\1", text)


def _constant(batch: pa.RecordBatch) -> _Partition:
    return lambda: iter((batch,))


class _NoSession(LazySession):
    """A session manager without Java."""

    def __init__(self) -> None:
        super().__init__()
        self._local = LocalSpark()

    def start(self) -> None:
        """Start nothing."""

    @property
    def spark(self) -> Any:
        """The session."""
        return self._local


class LocalEngine(Engine):
    """An engine without Java, for statements on small tables; options are those of `Engine`."""

    def __init__(self, **options: Any) -> None:
        super().__init__(spark=_NoSession(), **options)


def _collect(_: StatementRun, *frame: Any) -> pa.Table:
    table: pa.Table = frame[1].toArrow()
    return table


@contextmanager
def without_spark() -> Iterator[None]:
    """Run tasks of this process's engines in its main thread while the context lasts."""
    with (
        patch.object(StatementRun, "collect", _collect),
        # A table of unknown size is small, too.
        patch(
            "rowmerge_nb.plan.page_execution._in_many_tasks", lambda *_: PhysicalForm(paged=True)
        ),
        patch("rowmerge_nb.engine.tasks.exchange.task_partition", _task.get),
        patch("rowmerge_nb.engine.tasks.insert.task_partition", _task.get),
        patch("rowmerge_nb.engine.tasks.merge_passes.task_partition", _task.get),
        patch("rowmerge_nb.engine.tasks.writer.task_partition", _task.get),
    ):
        yield


@contextmanager
def engines_without_spark() -> Iterator[None]:
    """Let every new engine run without Java while the context lasts, whatever its session is."""
    initialize = Engine.__init__

    def without_java(engine: Engine, **options: Any) -> None:
        initialize(engine, **{**options, "spark": _NoSession()})

    with without_spark(), patch.object(Engine, "__init__", without_java):
        yield


class _EagerSpark(LocalSpark):
    """A session that computes a query before anything is written: an error leaves no trace."""

    def sql(self, text: str) -> LocalFrame:
        """Return the rows of a query; duckdb.Error if DuckDB does not understand it."""
        rows = super().sql(text).toArrow()
        return LocalFrame(self, [lambda: iter(rows.to_batches())], rows.schema)


@contextmanager
def inserts_without_spark() -> Iterator[None]:
    """Run INSERT and CREATE TABLE AS without Java while the context lasts, if pages compute their
    rows or DuckDB understands their query.
    """
    import duckdb

    def rows(run: StatementRun, plan: Output) -> pa.Table:
        if isinstance(run, QueryRun) or "\\" in run.analysis.text:
            return plan_rows(run, plan)
        scans, services, session = run.transaction.scans, run.services, _EagerSpark()
        frames = []

        def collect(_: StatementRun, __: Any, frame: Any, ___: int) -> pa.Table:
            frames.append(frame)
            table: pa.Table = frame.toArrow()
            return table

        run.services = replace(services, spark=lambda: session)
        try:
            with (
                patch.object(scans, "_spark", run.services.spark),
                patch.object(StatementRun, "collect", collect),
            ):
                return plan_rows(run, plan)
        except (duckdb.Error, AttributeError, TypeError):
            if frames:
                raise
            # Nothing is written yet, so Spark can do it.
            run.services = services
            scans._views.clear()  # noqa: SLF001 - they are those of the other session
            return plan_rows(run, plan)

    with patch("rowmerge_nb.engine.statements.query.plan_rows", rows):
        yield
