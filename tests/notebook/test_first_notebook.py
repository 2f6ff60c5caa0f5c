"""The first notebook of a user: its generated cells run on the user's files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat
import pytest

from rowmerge_nb import Engine
from rowmerge_nb.notebook.first_notebook import main, read_files

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
    path = main([str(folder / "old.csv"), str(folder / "news.csv")])
    # Without a kernel's name, a front end asks for one before the first cell.
    assert nbformat.read(path, as_version=4).metadata["kernelspec"]["name"] == "python3"
    start, merge = sources(path)
    assert "old.csv', sep=';').convert_dtypes()" in start
    assert "news.csv').convert_dtypes()" in start
    assert '    ON t."Order ID" = s."Order ID"\n' in merge
    assert 'UPDATE SET "select" = s."select", "Stück" = s."Stück"\n' in merge


def test_columns_of_one_name_have_one_type_and_numbers_their_format(folder: Path) -> None:
    import pandas as pd

    (folder / "parts.csv").write_text(
        'Qty,Part No.,Ref,Cost,Note\n3,00123,7,"1,249.99",1\n4,123,8,0.12,2\n', "utf-8"
    )
    (folder / "changes.csv").write_text(
        "Part No.;Qty;Ref;Cost;Note\n123;1.200;0A-7;3,50;x\n00124;2;9;1.000,25;y\n", "cp1252"
    )
    paths = [folder / "parts.csv", folder / "changes.csv"]
    parts, changes = (
        pd.read_csv(path, **options)
        for path, options in zip(paths, read_files(paths)[1], strict=True)
    )
    assert list(parts["Part No."]) == ["00123", "123"]
    assert list(changes["Part No."]) == ["123", "00124"]
    assert list(parts["Cost"]) == [1249.99, 0.12]
    assert list(changes["Cost"]) == [3.5, 1000.25]
    assert list(changes["Qty"]) == [1200, 2]
    assert (list(parts["Ref"]), list(changes["Ref"])) == (["7", "8"], ["0A-7", "9"])
    start, merge = sources(main([str(path) for path in paths]))
    assert "dtype={'Part No.': str, 'Ref': str, 'Note': str}" in start
    assert "sep=';', decimal=',', thousands='.'" in start
    assert '    ON t."Part No." = s."Part No."\n' in merge


def test_dates_are_read_if_the_day_is_certain(folder: Path) -> None:
    import pandas as pd

    (folder / "a.csv").write_text(
        "id,due,paid,on,code\n1,05/04/2026,05/04/2026,2026-04-05,20260405\n2,30/04/2026,,,1\n",
        "utf-8",
    )
    (folder / "b.csv").write_text(
        "id,due,paid,on,code\n1,06/04/2026,06/04/2026,2026-04-06,20260406\n", "utf-8"
    )
    paths = [folder / "a.csv", folder / "b.csv"]
    options = read_files(paths)[1]
    for path, own in zip(paths, options, strict=True):
        frame = pd.read_csv(path, **own).convert_dtypes()
        assert frame["due"].dt.month.eq(4).all()
        assert frame["on"].dropna().dt.month.eq(4).all()
        # April or May: the date is ambiguous.
        assert frame["paid"].dtype == "string"
        assert frame["code"].dtype == "Int64"
    start, _ = sources(main([str(path) for path in paths]))
    assert "parse_dates=['due', 'on'], date_format={'due': '%d/%m/%Y', 'on': '%Y-%m-%d'}" in start


def test_a_file_of_windows_is_read_and_a_workbook_is_refused(folder: Path) -> None:
    (folder / "old.csv").write_text("id,name\n1,Jos\u00e9\n", "cp1252")
    assert "encoding='cp1252'" in sources(main([str(folder / "old.csv")]))[0]
    (folder / "book.xlsx").write_bytes(b"PK\x03\x04")
    (folder / "empty.csv").write_text("", "utf-8")
    with pytest.raises(SystemExit, match=r"empty\.csv has no rows of comma-separated values"):
        main([str(folder / "empty.csv")])
    with pytest.raises(SystemExit, match=r"book\.xlsx is a workbook\. Save the sheet as CSV UTF-8"):
        main([str(folder / "book.xlsx")])


def test_files_without_a_common_column_are_refused_with_their_headers(folder: Path) -> None:
    (folder / "news.csv").write_text("Supplier Part\n8\n", "utf-8")
    with pytest.raises(SystemExit, match=r"has 'Order ID', 'select', 'Stück'; news.csv has 'Supp"):
        main([str(folder / "old.csv"), str(folder / "news.csv")])


def test_a_key_with_repeated_values_is_reported(folder: Path) -> None:
    (folder / "old.csv").write_text("Part No.,Qty\na,1\na,2\n", "utf-8")
    (folder / "news.csv").write_text("Part No.,Qty\na,3\n", "utf-8")
    path = main([str(folder / "old.csv"), str(folder / "news.csv")])
    words = [c.source for c in nbformat.read(path, as_version=4).cells if c.cell_type != "code"]
    assert "`Part No.` has values more than once in old.csv" in words[0]


def test_a_notebook_is_never_overwritten_and_unknown_files_are_named(folder: Path) -> None:
    path = Path(main([]))
    path.write_text(path.read_text("utf-8").replace("Aaron", "Zoe"), "utf-8")
    assert main([]) == str(path)
    assert "Zoe" in path.read_text("utf-8")
    second = main(["old.csv"])
    assert (Path(second).name, main(["old.csv"])) == ("mine-2.ipynb", second)
    for files, words in (
        (["no.csv"], "There is no .*no.csv"),
        (["old.csv", "news.csv", "old.csv"], "Name two files"),
    ):
        with pytest.raises(SystemExit, match=words):
            main(files)
