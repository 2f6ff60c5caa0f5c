from __future__ import annotations

import re
from pathlib import Path

from rowmerge_nb.sql.functions.function_page import page
from rowmerge_nb.sql.functions.overloads import known, overloads
from rowmerge_nb.sql.functions.refused import REFUSED

PAGE = Path(__file__).parents[3] / "docs" / "functions.md"


def test_the_page_of_functions_matches_the_tables():
    assert PAGE.read_text(encoding="utf-8") == page()


def test_no_function_is_both_supported_and_refused():
    assert [
        name for name in REFUSED if not all(overload.refusal for overload in overloads(name))
    ] == []


def test_no_two_subjects_name_a_part_of_their_templates_alike():
    from rowmerge_nb.sql.functions import aggregates, arrays, binary, datetime, maps, math, strings
    from rowmerge_nb.sql.functions import json_functions as json
    from rowmerge_nb.sql.functions import window_functions as windows

    spark = (math, strings, binary, json, datetime, arrays, maps, aggregates, windows)
    for parts in (
        [module.FRAGMENTS for module in spark],
        [module.DUCKDB_FRAGMENTS for module in (math, strings, datetime, arrays)],
    ):
        names = [name for fragments in parts for name in fragments]
        assert sorted(names) == sorted(set(names))


def test_every_part_of_a_template_is_replaced():
    rows = [entry for name in known() for entry in overloads(name)]
    left = re.compile(r"\{(?!\d|\*|type|fail:|pattern\})[^{}]*\}")
    assert [str(entry) for entry in rows if left.search(entry.duckdb)] == []
    assert len([entry for entry in rows if entry.duckdb]) > 100
