"""The cells of docs/design.md, in a shell."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from rowmerge_nb import Engine
from tests.notebook.conftest import Notebook

PAGE = Path(__file__).resolve().parents[2] / "docs" / "design.md"


@pytest.mark.trial
def test_the_cells_answer_their_questions_in_order(shell, spark):
    sections = PAGE.read_text(encoding="utf-8").split("\n## ")
    shell.run_line_magic("load_ext", "rowmerge_nb")
    with Engine(spark=spark) as engine:
        shell.user_ns["engine"] = engine
        shell.run_line_magic("config", "MergeMagic.engine = 'engine'")
        notebook = Notebook(shell, engine)
        shown = {
            section.partition("\n")[0]: [
                notebook.run(cell)
                for cell in re.findall(r"^```\n(%%merge.*?)```", section, re.MULTILINE | re.DOTALL)
            ]
            for section in sections
        }
        left = engine.run("SELECT id FROM sales ORDER BY id").to_pandas()["id"].tolist()
    assert all(shown.values()), "each question has a cell"
    failed = "What happens when it fails?"
    assert [
        (title, cell.error)
        for title, cells in shown.items()
        for cell in cells
        if cell.error and title != failed
    ] == []
    [failure] = shown[failed]
    assert failure.failure.changed is False
    assert left == [1, 2, 3, 4]
    [paradigms] = shown["Which row change paradigm?"]
    assert "DELETE_ROW_AND_INSERT_ROW" in paradigms.text
    assert "CHANGE_ONLY_UPDATED_COLUMNS" in paradigms.text
    [lab] = shown["What does a change cost?"]
    assert "moves fewer bytes than" in lab.text
    [compactions] = shown["How often to compact?"]
    assert "With a compaction after every 2 statements" in compactions.text
    [stores] = shown["Which store?"]
    assert "left to merge" in stores.text
    [layout] = shown["Which layout?"]
    assert "2 writers" in layout.text
