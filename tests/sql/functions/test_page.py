from __future__ import annotations

from pathlib import Path

from rowmerge_nb.sql.functions.overloads import overloads
from rowmerge_nb.sql.functions.page import page
from rowmerge_nb.sql.functions.refused import REFUSED

PAGE = Path(__file__).parents[3] / "docs" / "functions.md"


def test_the_page_of_functions_is_what_the_tables_say():
    assert PAGE.read_text(encoding="utf-8") == page()


def test_no_function_is_both_known_and_refused():
    assert [name for name in REFUSED if not all(overload.refusal for overload in overloads(name))] == []


def test_no_two_subjects_name_a_part_of_their_templates_alike():
    from rowmerge_nb.sql.functions import aggregates, arrays, binary, datetime, json, maps, math, strings, windows

    names = [
        name for module in (math, strings, binary, json, datetime, arrays, maps, aggregates, windows) for name in module.FRAGMENTS
    ]
    assert sorted(names) == sorted(set(names))
