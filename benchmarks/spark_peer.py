"""Spark with another table format, in its own process and environment: tables and
statements arrive as lines of JSON.

It imports nothing of this project. Run by `benchmarks.spark_peers` as ``python spark_peer.py
FORMAT FOLDER JARS``.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

CATALOGS = {
    "iceberg": {
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.sql.catalog.spark_catalog": "org.apache.iceberg.spark.SparkSessionCatalog",
        "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.lake.type": "hadoop",
    },
    "delta": {
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    },
}
MADE = {
    "iceberg": (
        "CREATE TABLE lake.d.target USING iceberg TBLPROPERTIES ('format-version'='2',"
        " 'write.merge.mode'='merge-on-read', 'write.delete.mode'='merge-on-read') AS SELECT * FROM"
        " loading"
    ),
    "delta": (
        "CREATE TABLE target USING delta TBLPROPERTIES ('delta.enableDeletionVectors'='true') AS"
        " SELECT * FROM loading"
    ),
}


def main() -> None:
    """Answer each line with one line."""
    form, folder, jars = sys.argv[1:]
    from pyspark.sql import SparkSession

    builder = (
        SparkSession.builder.master("local[2]")
        .config("spark.jars", jars)
        .config("spark.ui.enabled", "false")
    )
    builder = builder.config("spark.driver.memory", "4g").config(
        "spark.sql.shuffle.partitions", "4"
    )
    builder = builder.config("spark.sql.warehouse.dir", f"{folder}/spark").config(
        "spark.sql.catalog.lake.warehouse", f"{folder}/lake"
    )
    for key, value in CATALOGS[form].items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    name = "lake.d.target" if form == "iceberg" else "target"
    answer({"ready": True})
    for line in sys.stdin:
        order: dict[str, Any] = json.loads(line)
        started = time.perf_counter()
        if "prepare" in order:
            spark.sql(f"DROP TABLE IF EXISTS {name}")
            spark.read.parquet(order["prepare"]).createOrReplaceTempView("loading")
            spark.sql(MADE[form])
            spark.read.parquet(order["source"]).createOrReplaceTempView("source")
        elif "run" in order:
            spark.sql(
                order["run"]
                .replace("INTO target", f"INTO {name}")
                .replace("FROM target", f"FROM {name}")
            ).collect()
        else:
            spark.table(name).coalesce(1).write.mode("overwrite").parquet(order["content"])
        answer({"seconds": time.perf_counter() - started})


def answer(reply: dict[str, Any]) -> None:
    """Write one line."""
    print(f"ANSWER {json.dumps(reply)}", flush=True)


main()
