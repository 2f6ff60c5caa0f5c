"""Java looks up the classes that PySpark requests in every call only once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from py4j.java_gateway import JVMView

from rowmerge_nb import Engine
from rowmerge_nb.engine.spark.java.class_lookups import keep_java_classes

if TYPE_CHECKING:
    import pytest
    from pyspark.sql import SparkSession


def test_a_statement_looks_up_no_class(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = Engine(spark=spark)
    engine.run("CREATE TABLE lookups (a, b) AS VALUES (1, 'a'), (2, 'b')")
    merge = """
        MERGE INTO lookups t USING (VALUES (2, 'c'), (3, 'd')) s (a, b) ON t.a = s.a
        WHEN MATCHED THEN UPDATE SET b = s.b
        WHEN NOT MATCHED THEN INSERT VALUES (s.a, s.b)
    """
    names: list[str] = []

    def lookup(view: JVMView, name: str) -> Any:
        names.append(name)
        return original(view, name)

    original = JVMView.__getattr__
    monkeypatch.setattr(JVMView, "__getattr__", lookup)
    engine.run(merge)
    assert names == []


def test_nothing_is_looked_up_without_a_view_of_java() -> None:
    """A session of Spark Connect has none."""
    keep_java_classes(object())
