"""Values of the notebook that are no sources: the error says how they become some."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from rowmerge_nb import Engine, RowMergeError


@pytest.mark.parametrize(
    ("value", "code"),
    [
        ([{"id": 1}], "news = pd.DataFrame(news)"),
        ({"id": [1]}, "news = pd.DataFrame(news)"),
        (pd.Series([1], name="id"), "news = news.to_frame()"),
    ],
)
def test_a_value_that_is_no_dataframe(value: Any, code: str) -> None:
    with pytest.raises(RowMergeError) as caught:
        Engine().run("SELECT * FROM News", namespace={"news": value})
    assert (caught.value.code, (caught.value.hint or "")[-len(code) :]) == ("TABLE_NOT_FOUND", code)


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
