"""Runs in another Python, with the Spark version of Iceberg's own runtime: `python runtime.py jar job`.

The job is a JSON file: ``sql`` statements to run in a catalog ``h`` below ``warehouse``, and metadata files or tables to ``read``, the rows of
which go to standard output as JSON, one list per file, with the ``hidden`` columns.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path


def main(jar: str, job: str) -> None:
    from pyspark.sql import SparkSession

    wanted = json.loads(Path(job).read_text(encoding="utf-8"))
    settings = {
        "spark.jars": jar,
        "spark.ui.enabled": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.sql.catalog.h": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.h.type": "hadoop",
        "spark.sql.catalog.h.warehouse": f"file://{wanted['warehouse']}",
    }
    builder = SparkSession.builder.master("local[2]")
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    for statement in wanted.get("sql", []):
        spark.sql(statement)
    answers = []
    for place in wanted.get("read", []):
        is_table = place.startswith("h.")
        frame = spark.table(place) if is_table else spark.read.format("iceberg").load(place)
        columns = [*frame.columns, *wanted.get("hidden", [])]
        answers.append(
            [
                list(row)
                for row in frame.selectExpr(
                    *(f"CAST({c} AS string) {c}" for c in columns)
                ).collect()
            ]
        )
    print("ANSWERS " + json.dumps(answers))  # noqa: T201 - this is how it answers
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
