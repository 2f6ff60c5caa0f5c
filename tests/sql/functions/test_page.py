from __future__ import annotations

from pathlib import Path

from rowmerge_nb.sql.functions.overloads import overloads
from rowmerge_nb.sql.functions.page import page
from rowmerge_nb.sql.functions.refused import REFUSED

PAGE = Path(__file__).parents[3] / "docs" / "functions.md"


def test_the_page_of_functions_is_what_the_tables_say():
    assert PAGE.read_text(encoding="utf-8") == page()


def test_no_function_is_both_known_and_refused():
    assert [name for name in REFUSED if overloads(name)] == []
