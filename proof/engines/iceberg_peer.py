"""Spark with Iceberg's own library, in its own process and environment; it reads statements as
lines of JSON.

It imports nothing of this project. `proof.engines.spark_iceberg` runs it as ``python
iceberg_peer.py WAREHOUSE JAR``.
"""

from __future__ import annotations

import json
import sys
from typing import Any


def main() -> None:
    """Answer each line with one line: the failure, or null."""
    warehouse, jar = sys.argv[1:]
    from pyspark.sql import SparkSession

    settings = {
        "spark.jars": jar,
        "spark.ui.enabled": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "1",
        # A backslash is an ordinary character, as in the standard.
        "spark.sql.parser.escapedStringLiterals": "true",
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.lake.type": "hadoop",
        "spark.sql.catalog.lake.warehouse": f"file://{warehouse}",
        # Snapshots are looked up by those who read them; a recreated table must not be the
        # former one.
        "spark.sql.catalog.lake.cache-enabled": "false",
    }
    builder = SparkSession.builder.master("local[1]")
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    spark.sql("CREATE NAMESPACE IF NOT EXISTS lake.default")
    spark.sql("USE lake.default")
    answer(None)
    for line in sys.stdin:
        order: dict[str, Any] = json.loads(line)
        try:
            for statement in order["statements"]:
                spark.sql(statement).collect()
        except Exception as error:  # noqa: BLE001 - whatever Spark says to a statement is its answer
            answer(f"{type(error).__name__}: {error}")
        else:
            answer(None)


def answer(error: str | None) -> None:
    """Write one line."""
    print(f"ANSWER {json.dumps({'error': error})}", flush=True)  # noqa: T201 - this is how it answers


if __name__ == "__main__":
    main()
