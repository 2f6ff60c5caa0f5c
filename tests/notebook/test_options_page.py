from __future__ import annotations

from pathlib import Path

from rowmerge_nb.notebook.options_page import page

PAGE = Path(__file__).parents[2] / "docs" / "options.md"


def test_the_page_of_options_is_what_the_table_has():
    assert PAGE.read_text(encoding="utf-8") == page()
