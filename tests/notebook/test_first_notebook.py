"""The first notebook of a user: its cells run on the user's files as they are written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat
import pytest

from rowmerge_nb import Engine
from rowmerge_nb.notebook.first_notebook import main

OLD = "Order ID;select;Stück\n7;a;1\n8;b;\n9;;3\n"
NEWS = "Order ID,select,Stück\n8,B,2\n10,d,4\n"


def sources(path: str) -> list[str]:
    return [
        cell.source for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"
    ]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "old.csv").write_text(OLD, "utf-8")
    (tmp_path / "news.csv").write_text(NEWS, "utf-8")
    return tmp_path


@pytest.mark.spark
@pytest.mark.parametrize(
    ("files", "rows"), [((), 4), (("old.csv",), 3), (("old.csv", "news.csv"), 4)]
)
def test_its_cells_run_as_they_are_and_twice(
    folder: Path, shell: Any, spark: Any, files: tuple[str, ...], rows: int
) -> None:
    from IPython.utils.capture import capture_output

    cells = sources(main([str(folder / name) for name in files]))
    with Engine(spark=spark) as engine:
        shell.run_line_magic("load_ext", "rowmerge_nb")
        shell.user_ns["own"] = engine
        shell.run_line_magic("config", "MergeMagic.engine = 'own'")
        for cell in cells * 2:
            with capture_output():
                shell.run_cell(cell).raise_error()
        assert engine.table("mine").num_rows == rows


def test_its_merge_names_the_columns_of_both_files(folder: Path) -> None:
    start, merge = sources(main([str(folder / "old.csv"), str(folder / "news.csv")]))
    assert "old.csv', sep=';').convert_dtypes()" in start
    assert "news.csv').convert_dtypes()" in start
    assert '    ON t."Order ID" = s."Order ID"\n' in merge
    assert 'UPDATE SET "select" = s."select", "Stück" = s."Stück"\n' in merge


def test_a_notebook_is_never_overwritten_and_unknown_files_are_named(folder: Path) -> None:
    path = Path(main([]))
    path.write_text(path.read_text("utf-8").replace("Aaron", "Zoe"), "utf-8")
    assert main([]) == str(path)
    assert "Zoe" in path.read_text("utf-8")
    for files, words in (
        (["old.csv"], "mine.ipynb exists"),
        (["no.csv"], "There is no .*no.csv"),
        (["old.csv", "news.csv", "old.csv"], "Name two files"),
    ):
        with pytest.raises(SystemExit, match=words):
            main(files)
