"""The process with a Spark session on a cluster. Orders and answers are lines of JSON.

A process has only one Spark context, so the tests cannot use their own.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import sys
import threading
import time
import traceback
from contextlib import suppress
from pathlib import Path
from typing import Any, TextIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import rowmerge_nb as rm
from proof.trials.driver import MERGE, StoreLocation, digest, initial_rows, merged_rows, news, read
from rowmerge_nb.demo import SETUP, STATEMENT
from rowmerge_nb.engine.spark.spark_session import SESSION_SETTINGS
from rowmerge_nb.plan.rules import RuleSettings
from rowmerge_nb.testing.examples import price_store
from tests.clusters.servers import SMALL_JAVA

SLOW = """UPDATE accounts SET purchases = purchases + (
    SELECT sum(a.n * b.n * c.n % 7)
    FROM UNNEST(sequence(1, 9000)) AS a (n), UNNEST(sequence(1, 9000)) AS b (n), UNNEST(sequence(1, 50)) AS c (n))"""
CELL = Path(price_store.__file__)
FORMS = {
    "usual": None,
    "many tasks": RuleSettings(one_task_bytes=0),
    "by keys": RuleSettings(one_task_bytes=0, source_bytes=0, packed_bytes=0),
}
"""Settings that force one form of the join for any number of rows: in the tasks that read the target, or by its keys."""
ASKING = """MERGE INTO t USING news s ON t.id = s.id
    WHEN MATCHED AND s.id >= (SELECT max(id) FROM bounds) THEN DELETE
    WHEN MATCHED AND s.id IN (SELECT id FROM bounds) THEN UPDATE SET v = 0, name = 'bound'
    WHEN MATCHED THEN UPDATE SET v = s.v + (SELECT sum(v) FROM bounds), name = CAST(1 + (SELECT random()) AS varchar)
    WHEN NOT MATCHED AND s.id NOT IN (SELECT id + 5000 FROM bounds) THEN INSERT (id, v, name) VALUES (s.id, (SELECT min(v) FROM bounds), s.name)"""
"""A statement whose conditions and values query tables."""


def session_of(address: str, folder: str, **settings: str) -> Any:
    """Create a session of a Connect server, or of a cluster of this machine."""
    from pyspark.sql import SparkSession

    if address.startswith("sc:"):
        return SparkSession.builder.remote(address).getOrCreate()
    os.environ |= {
        "JAVA_HOME": f"{folder}/java",
        "PYSPARK_PYTHON": f"{folder}/python",
        "SPARK_CONF_DIR": folder,
        "SPARK_LOCAL_DIRS": f"{folder}/local",
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    builder = SparkSession.builder.master(address)
    given = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.executor.memory": "512m",
        "spark.executor.cores": "1",
        "spark.driver.extraJavaOptions": SMALL_JAVA,
        "spark.executor.extraJavaOptions": SMALL_JAVA,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": f"{folder}/warehouse",
        **settings,
    }
    for key, value in given.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


class Driver:
    """Executes orders."""

    def __init__(self, address: str, folder: str, settings: dict[str, str]) -> None:
        self.folder = Path(folder)
        self.spark = session_of(address, folder, **settings)
        self.engine = rm.Engine(spark=self.spark)

    def finds_package(self) -> list[str]:
        """Return the paths where executors find the package by themselves."""

        def look(pages: Any) -> Any:
            from importlib.util import find_spec

            found = find_spec("rowmerge_nb")
            for _ in pages:
                yield pa.record_batch({"place": [str(found and found.origin)]})

        return [
            row.place
            for row in self.spark.range(0, 2, 1, 2).mapInArrow(look, "place string").collect()
        ]

    def document(self, store: str) -> dict[str, Any]:
        """Run the documents' MERGE on new tables; return the rows and the counts."""
        if store == "memory":
            engine = self.engine
        else:
            engine = rm.Engine(spark=self.spark, catalog="lake")
            engine.add_catalog("lake", rm.IcebergConnector(self.folder / "lake"))
        setup = SETUP if store == "memory" else SETUP.replace("partitioned_by", "partitioning")
        engine.run_script(setup)
        result = engine.run(STATEMENT)
        rows = [
            [int(v) if name == "purchases" else v for name, v in row.items()]
            for row in engine.table("accounts").to_pylist()
        ]
        return {
            "rows": sorted(rows),
            "counts": dict(result.counts),
            "marks": self._marks(self.folder / "lake"),
        }

    def frames(self, rows: int, flow: str = "merge") -> dict[str, Any]:
        """MERGE a large frame of the notebook into a large table in memory, or update the table."""
        table, source = initial_rows(rows), news(np.arange(rows), rows, 1)
        self.engine.register("t", table)
        if flow == "merge":
            result, expected = (
                self.engine.run(MERGE, namespace={"news": source}),
                merged_rows(table, source),
            )
        else:
            result = self.engine.run("UPDATE t SET v = v + 1 WHERE id % 2 = 0", flow=flow)
            ids, values = table.column("id").to_numpy(), table.column("v").to_numpy()
            expected = table.set_column(
                1, "v", pa.array(np.where(ids % 2 == 0, values + 1, values))
            )
        return {"same": digest(self.engine.table("t")) == digest(expected), "count": result.count}

    def subqueries(self, form: str) -> dict[str, Any]:
        """Run ``ASKING`` on 20,000 rows with as many source rows, half of them new; return sums of the result."""
        engine = rm.Engine(spark=self.spark, rule_settings=FORMS[form])
        keys = np.arange(10_000, 30_000)
        engine.register("t", initial_rows(20_000))
        engine.register("bounds", pa.table({"id": [15_000, 16_000, 19_990], "v": [1, 2, 4]}))
        source = pa.table({"id": keys, "v": keys % 10, "name": pa.array(["new"] * len(keys))})
        result = engine.run(ASKING, namespace={"news": source})
        table = engine.table("t")
        drawn = table.filter(pc.starts_with(table.column("name"), "1."))
        return {
            "counts": dict(result.counts),
            "rows": table.num_rows,
            "sum": pc.sum(table.column("v")).as_py(),
            "drawn": [drawn.num_rows, pc.count_distinct(drawn.column("name")).as_py()],
        }

    def settings(self) -> dict[str, str]:
        """Return the settings of the session that statements change."""
        keys = [
            *SESSION_SETTINGS,
            "spark.sql.shuffle.partitions",
            "spark.sql.autoBroadcastJoinThreshold",
        ]
        return {key: self.spark.conf.get(key) for key in keys}

    def cell(self) -> list[list[Any]]:
        """Run statements through a connector defined in a notebook cell."""
        main = sys.modules["__main__"]
        exec(CELL.read_text().partition("# The cell ends here.")[0], vars(main))
        engine = rm.Engine(spark=self.spark)
        engine.add_catalog("shop", vars(main)["STORE"])
        vars(main)["STORE"].rows = {1: 1.0, 2: 2.0}
        engine.run(
            "MERGE INTO shop.default.prices t USING (VALUES (2, 20.0), (3, 30.0)) s (id, price) ON t.id = s.id "
            "WHEN MATCHED THEN UPDATE SET price = s.price WHEN NOT MATCHED THEN INSERT (id, price) VALUES (s.id, s.price)"
        )
        return sorted([*row] for row in vars(main)["STORE"].rows.items())

    def module(self, source: str) -> list[Any]:
        """Read a table of a connector whose module has this text and imports another module."""
        (self.folder / "modules").mkdir(exist_ok=True)
        (self.folder / "modules" / "shop_rows.py").write_text(source)
        (self.folder / "modules" / "shop_connector.py").write_text(SHOP)
        if str(self.folder / "modules") not in sys.path:
            sys.path.append(str(self.folder / "modules"))
        importlib.invalidate_caches()
        for name in ("shop_rows", "shop_connector"):
            if name in sys.modules:
                importlib.reload(sys.modules[name])
        engine = rm.Engine(spark=self.spark)
        engine.add_catalog("shop", importlib.import_module("shop_connector").ShopConnector())
        return [
            engine.run("SELECT name FROM shop.default.names").table.column(0).to_pylist(),
            importlib.import_module("shop_rows").__file__,
        ]

    def unshared(self) -> dict[str, Any]:
        """Change a table of a store whose directory differs in every process."""

        class Unshared(rm.IcebergConnector):
            @property
            def shared_directory(self) -> Path:
                return Path("/proc/self/cwd")

        engine = rm.Engine(spark=self.spark, catalog="lake")
        engine.add_catalog("lake", Unshared(self.folder / "unshared"))
        engine.run("CREATE TABLE t (id bigint)")
        try:
            engine.run("INSERT INTO t VALUES (1), (2)")
        except rm.RowMergeError as error:
            calls = [call.method for call in error.result.trace.calls]
            return {
                "code": error.code,
                "error": str(error),
                "calls": calls,
                "marks": self._marks(Path.cwd()),
            }
        return {"error": None}

    def interrupted(self, how: str) -> dict[str, Any]:
        """Cancel a long statement, or press Ctrl-C."""
        self.engine.run_script(SETUP)
        before = self.engine.table("accounts").to_pylist()
        step = threading.Event()

        def stop() -> None:
            step.wait()
            # Most likely in the middle of the work; the result must be the same before its beginning.
            time.sleep(0.5)
            if how == "cancel":
                self.engine.cancel()
            else:
                os.kill(os.getpid(), signal.SIGINT)

        timer = threading.Thread(target=stop)
        timer.start()
        try:
            self.engine.run(SLOW, progress=lambda name: step.set() if name == "run" else None)
        except rm.RowMergeError as error:
            timer.join()
            return {"code": error.code, "same": self.engine.table("accounts").to_pylist() == before}
        return {"code": None}

    def fill(self, store: str, where: str, rows: int, properties: str = "") -> int | None:
        """Create a table in a store, with properties if a trial needs them."""
        engine, place = self._store(store, where)
        engine.run("DROP TABLE IF EXISTS t")
        engine.run(
            f"CREATE TABLE t (id bigint, v bigint, name varchar) {properties or place.properties}"
        )
        return engine.run(
            "INSERT INTO t SELECT * FROM news", namespace={"news": initial_rows(rows)}
        ).count

    def merge(self, store: str, where: str, rows: int, *, form: str = "usual") -> dict[str, Any]:
        """MERGE into the table in one of the forms of ``FORMS``, for any number of rows."""
        engine, place = self._store(store, where, FORMS[form])
        source = news(np.arange(rows), rows, 1)
        try:
            result = engine.run(MERGE, namespace={"news": source})
        except rm.RowMergeError as error:
            return {"error": str(error)}
        found = digest(read(place.connector(), place.schema))
        left = [orphan.name for catalog in engine.orphans() for orphan in catalog.orphans]
        same = found == digest(merged_rows(initial_rows(rows), source))
        return {"same": same, "count": result.count, "rows": found.rows, "orphans": left}

    def unchanged(self, store: str, where: str, rows: int) -> bool:
        """Return whether the table is as created by `fill`."""
        place = StoreLocation(store, where)
        return digest(read(place.connector(), place.schema)) == digest(initial_rows(rows))

    def _store(
        self, store: str, where: str, sizes: RuleSettings | None = None
    ) -> tuple[rm.Engine, StoreLocation]:
        place = StoreLocation(store, where)
        engine = rm.Engine(
            spark=self.spark, catalog="store", schema=place.schema, trace="off", rule_settings=sizes
        )
        engine.add_catalog("store", place.connector())
        return engine, place

    def _marks(self, directory: Path) -> list[str]:
        return [entry.name for entry in directory.glob(".rowmerge_nb-mark*")]


SHOP = """
import pyarrow as pa

from rowmerge_nb import spi


class ShopMetadata(spi.ConnectorMetadata):
    def get_table_handle(self, session, name):
        return spi.ConnectorTableHandle()

    def get_table_metadata(self, session, handle):
        column = spi.ColumnMetadata("name", spi.parse_type("varchar"))
        return spi.ConnectorTableMetadata(spi.SchemaTableName("default", "names"), (column,))


class ShopSplits(spi.ConnectorSplitManager):
    def get_splits(self, transaction_handle, session, table_handle, constraint):
        return [spi.ConnectorSplit()]


class ShopSources(spi.ConnectorPageSourceProvider):
    def create_page_source(self, transaction_handle, session, split, table_handle, columns):
        from shop_rows import NAMES

        return spi.PagesSource([pa.record_batch({"name": NAMES})])


class ShopConnector(spi.Connector):
    def get_metadata(self, transaction_handle):
        return ShopMetadata()

    def get_split_manager(self):
        return ShopSplits()

    def get_page_source_provider(self):
        return ShopSources()
"""


def main() -> None:
    """Execute orders until they end."""
    answers: TextIO = sys.stdout
    sys.stdout = sys.stderr
    address, folder, settings = sys.argv[1:4]
    driver = Driver(address, folder, json.loads(settings))
    for line in sys.stdin:
        order = json.loads(line)
        try:
            answer = {"answer": getattr(driver, order.pop("order"))(**order)}
        except BaseException:  # noqa: BLE001 - the test shows it
            answer = {"failed": traceback.format_exc()}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()
    with suppress(Exception):
        driver.spark.stop()


if __name__ == "__main__":
    main()
