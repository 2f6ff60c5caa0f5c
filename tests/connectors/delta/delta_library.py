"""Runs in another Python, with the Spark version of Delta's own library: `python delta_library.py jars job`.

The job is a JSON file: ``sql`` statements to run, and queries to ``read``, the rows of which go to standard output as JSON, one list per
query, all values as texts.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path


def main(jars: str, job: str) -> None:
    from pyspark.sql import SparkSession

    wanted = json.loads(Path(job).read_text(encoding="utf-8"))
    settings = {
        "spark.jars": jars,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": f"{Path(job).parent}/spark",
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    }
    builder = SparkSession.builder.master("local[2]")
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    for statement in wanted.get("sql", []):
        spark.sql(statement)
    answers = []
    for query in wanted.get("read", []):
        frame = spark.sql(query)
        texts = frame.selectExpr(*(f"CAST(`{name}` AS string) `{name}`" for name in frame.columns))
        answers.append([list(row) for row in texts.collect()])
    print("ANSWERS " + json.dumps(answers))  # noqa: T201 - this is how it answers
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
