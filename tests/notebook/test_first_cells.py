"""The first cells of the README run unchanged, and twice."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from rowmerge_nb import Engine

README = Path(__file__).parents[2].joinpath("README.md").read_text("utf-8")


@pytest.mark.spark
def test_the_first_cells_of_the_readme_run_as_they_are(shell: Any, spark: Any) -> None:
    from IPython.utils.capture import capture_output

    cells = re.search(r"```python\n(%load_ext .*?)```\n```\n(%%merge .*?)```", README, re.DOTALL)
    assert cells is not None
    assert README[: cells.end()].count("\n") < 45, "they are on the first screen"
    with Engine(spark=spark) as engine:
        shell.run_line_magic("load_ext", "rowmerge_nb")
        shell.user_ns["mine"] = engine
        shell.run_line_magic("config", "MergeMagic.engine = 'mine'")
        for cell in cells.groups() * 2:
            with capture_output():
                shell.run_cell(cell).raise_error()
        assert sorted(engine.table("accounts").to_pydict()["customer"]) == ["Aaron", "Carol", "Ed"]
