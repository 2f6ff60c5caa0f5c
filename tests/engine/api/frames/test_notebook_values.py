"""Values of the notebook that are not sources: the error names how to convert them."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from rowmerge_nb import Engine, RowMergeError


@pytest.mark.parametrize(
    ("value", "code"),
    [
        ([{"id": 1}], "news = pd.DataFrame(news)"),
        ({"id": [1]}, "news = pd.DataFrame(news)"),
        (pd.Series([1], name="id"), "news = news.to_frame()"),
        (np.ones((1, 1)), "news = pd.DataFrame(news)"),
        (pl.DataFrame({"id": [1]}).lazy(), "news = news.collect()"),
    ],
)
def test_a_value_that_is_not_a_dataframe_is_refused(value: Any, code: str) -> None:
    with pytest.raises(RowMergeError) as caught:
        Engine().run("SELECT * FROM News", namespace={"news": value})
    assert (caught.value.code, (caught.value.hint or "")[-len(code) :]) == ("TABLE_NOT_FOUND", code)


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ([1, "A3"], "1"),
        (pd.to_timedelta(["1 day"]), 86400.0),
        (pd.PeriodIndex(["2024-01"], freq="M"), "2024-01"),
        (np.array([1j]), "1j"),
        (pd.to_datetime(["2024-01-01 00:00:00.123456789"]), pd.Timestamp("2024-01-01 00:00:00.123456")),
    ],
)  # fmt: skip
def test_the_code_of_a_hint_makes_a_column_readable(column: Any, value: Any) -> None:
    names = {"news": pd.DataFrame({"the key": column})}
    with pytest.raises(RowMergeError) as caught:
        Engine().run("SELECT * FROM news", namespace=names)
    exec((caught.value.hint or "").partition("For instance: ")[2], {}, names)
    table = Engine().run("SELECT * FROM news", namespace=names).table
    assert table is not None
    assert table.column(0)[0].as_py() == value


def test_a_key_that_is_the_index() -> None:
    frame = pd.DataFrame({"v": [1]}, index=pd.Index([1], name="id"))
    with pytest.raises(RowMergeError) as caught:
        Engine().run("SELECT s.id FROM news s", namespace={"news": frame, "other": frame})
    assert (
        caught.value.hint == "id is the index of news; make it a column: news = news.reset_index()"
    )
    with pytest.raises(RowMergeError) as caught:
        Engine().run("SELECT s.x FROM news s", namespace={"news": frame})
    assert "index" not in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("sql", "hint"),
    [
        ("SELECT nvl(1, 2)", "Write coalesce(a, b)."),
        ("SELECT getdate()", "Write current_timestamp."),
        ("SELECT CAST(1 AS string)", "Write varchar."),
        ("CREATE TABLE t (a text)", "Write varchar."),
    ],
)
def test_names_of_other_engines(sql: str, hint: str) -> None:
    with pytest.raises(RowMergeError) as caught:
        Engine().run(sql)
    assert caught.value.hint == hint


def _hint(engine: Engine, sql: str, **namespace: Any) -> str:
    with pytest.raises(RowMergeError) as caught:
        engine.run(sql, namespace=namespace)
    return caught.value.hint or ""


def test_the_index_of_a_frame_that_became_a_table_is_named() -> None:
    engine = Engine()
    engine.run("CREATE TABLE stock (qty bigint)")
    frame = pd.DataFrame({"qty": [1]}, index=pd.Index(["a"], name="sku"))
    assert _hint(engine, "SELECT sku FROM stock", stock=frame) == (
        "sku is the index of stock; make it a column: stock = stock.reset_index()"
    )


def test_a_result_as_a_source() -> None:
    engine = Engine()
    result = engine.run("SELECT 1 AS id")
    assert _hint(engine, "SELECT * FROM old", old=result).endswith("old = old.to_pandas()")


def test_a_frame_as_a_target_is_answered_with_a_statement_that_creates_a_table() -> None:
    hint = _hint(Engine(), 'DELETE FROM "order"', order=pd.DataFrame({"id": [1]}))
    assert hint == 'Create a table from it first: CREATE TABLE "order" AS SELECT * FROM "order".'


def test_a_table_of_yesterday_is_explained_and_a_typing_error_is_not() -> None:
    engine, frame = Engine(), pd.DataFrame({"id": [1]})
    assert "end with the process" in _hint(engine, "SELECT * FROM accounts")
    assert _hint(engine, "SELECT * FROM newz", news=frame) == "Did you mean 'news'?"
    engine.run("CREATE TABLE t (id bigint)")
    assert "end with the process" not in _hint(engine, "SELECT * FROM accounts")


@pytest.mark.parametrize(
    "sql", ["SELECT * FROM shop.sales", "CREATE TABLE shop.sales (id bigint)", "DELETE FROM shop.sales"]
)  # fmt: skip
def test_a_forgotten_schema_is_named(sql: str) -> None:
    engine = Engine()
    engine.connect("memory", name="shop")
    assert "shop is a catalog; name the schema too: shop.default.sales" in _hint(engine, sql)


def test_a_missing_catalog_is_answered_with_the_command_that_connects_it() -> None:
    hint = _hint(Engine(), "SELECT * FROM till.main.t")
    assert hint == (
        "There are: memory. Connect another store: engine.connect('STORE', 'LOCATION', name='till')."
    )


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("df", "Write result.to_pandas()"),
        ("toPandas", "Write result.to_pandas()"),
        ("head", "Write result.to_pandas().head"),
        ("columns", "Write result.to_pandas().columns"),
        ("pl", "Write result.to_polars()"),
    ],
)
def test_a_name_of_a_frame_is_not_one_of_the_result(name: str, advice: str) -> None:
    result = Engine().run("SELECT 1 AS id")
    with pytest.raises(AttributeError, match=re.escape(advice) + "$"):
        getattr(result, name)
    with pytest.raises(AttributeError, match=r"no attribute 'nothing_like_it'$"):
        _ = result.nothing_like_it
    assert not hasattr(result, "_repr_html_of_others_")


def test_a_result_is_a_stream_of_arrow() -> None:
    result = Engine().run("SELECT 1 AS id, 'a' AS name")
    assert pa.table(result).to_pylist() == [{"id": 1, "name": "a"}]
