"""A DataFrame that replaces a changed table: a warning, and the replaced rows."""

from __future__ import annotations

import warnings

import pandas as pd
import pytest

from rowmerge_nb.base.errors import RowMergeError
from rowmerge_nb.engine.engine import Engine

FRAME = pd.DataFrame({"id": [1, 2], "v": [1, 2]})


def _changed_engine() -> Engine:
    engine = Engine()
    engine.register("c", FRAME)
    engine.run("UPDATE c SET v = 5 WHERE id = 1")
    return engine


def test_register_warns_of_replaced_changes_and_restore_puts_them_back():
    with _changed_engine() as engine:
        with pytest.warns(UserWarning, match="the UPDATE of 1 row is gone") as record:
            engine.register("c", FRAME)
        assert "engine.restore('memory.default.c', 2) restores its rows" in str(record[0].message)
        with pytest.raises(RowMergeError, match=r"engine.restore\('memory.default.c', 2\)"):
            engine.undo("c")
        engine.restore("memory.default.c", 2)
        assert sorted(engine.table("c")["v"].to_pylist()) == [2, 5]


def test_register_warns_of_other_columns():
    with _changed_engine() as engine:
        with pytest.warns(UserWarning, match="the previous rows are not kept"):
            engine.register("c", FRAME[["id"]])
        assert engine.table("c").column_names == ["id"]


def test_register_without_changes_between_does_not_warn():
    engine = Engine()
    with engine, warnings.catch_warnings():
        warnings.simplefilter("error")
        engine.register("c", FRAME)
        engine.register("c", FRAME)
