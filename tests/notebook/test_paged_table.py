"""Large results and long values in a cell's output."""

from __future__ import annotations

import re
import sys

import pyarrow as pa
import pytest

from rowmerge_nb.base.errors import RowMergeError, SetupError
from rowmerge_nb.engine.api.result import Result
from rowmerge_nb.notebook import paged_table
from rowmerge_nb.notebook.display import result_bundle
from rowmerge_nb.trace.trace import Trace


def query_result(table):
    return Result(Trace(statement="SELECT", kind="SELECT", state="finished"), table=table)


def bundle(table):
    return result_bundle(query_result(table), parts=None, timings=False, max_rows=60, first_line=1)


@pytest.fixture(autouse=True)
def _no_script_yet(monkeypatch):
    monkeypatch.setattr(paged_table, "_script_cells", set())


ROWS = pa.table({"id": list(range(61)), "name": [None, "a<b", *["x"] * 59]})


def test_many_rows_are_pages_that_need_no_network():
    shown = bundle(ROWS)
    html = shown["text/html"]
    assert "61 rows, the first 60 shown" in shown["text/plain"]
    # The plain table of a notebook that is not trusted is part of the output.
    assert "<noscript>" in html
    assert '"pageLength": 25' in html
    assert '"type": "num"' in html
    assert "a<b" not in html.replace("a\\u003cb", "")
    assert not re.search(r"""(?:src|href)=["']?https?://(?!itables\.org)""", html)


def test_the_script_is_written_once_and_again_for_the_same_cell(monkeypatch):
    cell = "first"
    monkeypatch.setattr(paged_table, "_cell_id", lambda: cell)
    sizes = [len(bundle(ROWS)["text/html"])]
    cell = "second"
    sizes.append(len(bundle(ROWS)["text/html"]))
    cell = "first"
    sizes.append(len(bundle(ROWS)["text/html"]))
    assert sizes[0] > 900_000
    assert sizes[1] < 60_000
    assert abs(sizes[2] - sizes[0]) < 100


def test_few_rows_and_an_environment_without_itables_show_a_plain_table(monkeypatch):
    assert "<script" not in bundle(ROWS.slice(0, 60))["text/html"]
    monkeypatch.setattr(paged_table, "is_available", lambda: False)
    assert "<script" not in bundle(ROWS)["text/html"]


def test_the_pages_have_a_bounded_number_of_cells():
    many = pa.table({f"c{at}": list(range(3_000)) for at in range(100)})
    html = bundle(many)["text/html"]
    assert "3,000 rows, the first 500 here; result.to_pandas() has all" in html


def test_columns_of_one_name_are_paged_too():
    html = bundle(ROWS.rename_columns(["x", "x"]))["text/html"]
    assert html.count(">x</th>") + html.count("<th>x") >= 2


@pytest.mark.parametrize(
    ("values", "length"),
    [
        (pa.array(["x" * 1_000_000]), "1,000,000 characters"),
        (pa.array(["\n" * 1_000_000]), "1,000,000 characters"),
        (pa.array([b"\x01" * 1_000_000]), "1,000,000 bytes"),
        (pa.array([list(range(200_000))]), "200,000 elements"),
        (pa.array([["y" * 1_000_000]]), "1 element"),
        (pa.array([[("k", "y" * 1_000_000)]], pa.map_(pa.string(), pa.string())), "1 entry"),
        (pa.array([{"a": "y" * 1_000_000, "b": 1}]), "2 fields"),
    ],
    ids=["text", "lines", "binary", "array", "text in array", "map", "row"],
)
def test_a_long_value_is_cut_and_its_length_reported(values, length):
    table = pa.table({"value": values})
    shown = bundle(table)
    for text in shown.values():
        assert f"… ({length})" in text
        assert len(text) < 20_000
    # The same for a result that is shown by its name.
    assert all(len(text) < 20_000 for text in query_result(table)._repr_mimebundle_().values())


def test_a_value_of_a_thousand_characters_is_whole():
    assert "x" * 1_000 in bundle(pa.table({"value": ["x" * 1_000]}))["text/plain"]
    assert "…" not in bundle(pa.table({"value": ["x" * 1_000]}))["text/plain"]


def test_rows_are_handed_to_polars_parquet_and_matplotlib(tmp_path):
    polars = pytest.importorskip("polars")
    result = query_result(ROWS)
    assert isinstance(result.to_polars(), polars.DataFrame)
    assert result.to_polars().to_arrow().to_pylist() == ROWS.to_pylist()
    result.to_parquet(tmp_path / "rows.parquet", compression="zstd")
    assert pa.parquet.read_table(tmp_path / "rows.parquet").equals(ROWS)
    counted = Result(Trace(statement="DELETE", kind="DELETE", state="finished", count=3))
    assert counted.to_polars().rows() == [(3,)]


def test_a_library_that_is_missing_is_named_with_its_command(monkeypatch):
    for library, call in (("polars", "to_polars"), ("matplotlib", "plot")):
        monkeypatch.setitem(sys.modules, library, None)
        with pytest.raises(SetupError) as caught:
            getattr(query_result(ROWS), call)()
        assert f"pip install {library}" in caught.value.hint


@pytest.mark.parametrize(
    ("path", "arguments"), [("no/such/rows.parquet", {}), ("rows.parquet", {"compression": "zip"})]
)
def test_a_file_that_cannot_be_written_is_an_error_of_the_argument(tmp_path, path, arguments):
    with pytest.raises(RowMergeError, match="cannot be written") as caught:
        query_result(ROWS).to_parquet(tmp_path / path, **arguments)
    assert caught.value.code == "INVALID_ARGUMENTS"
