"""SHOW FUNCTIONS compared with Trino 483: the same names, except those listed by the documentation."""

from __future__ import annotations

from pathlib import Path

from rowmerge_nb.sql.functions.refused import REFUSED
from rowmerge_nb.sql.functions.signatures import listed_functions

NAMES = (Path(__file__).parent / "trino_names.txt").read_text(encoding="utf-8").split()
NANOSECONDS = {"from_iso8601_timestamp_nanos", "from_unixtime_nanos"}
OF_VARIANT = {"variant_is_null", "table_changes"}
OF_PLUGINS = {"index", "char2hexint", "great_circle_distance"}


def test_the_names_are_trinos():
    names = {row[0] for row in listed_functions()}
    assert set(NAMES) - names == (set(NAMES) & set(REFUSED)) | NANOSECONDS | OF_VARIANT
    assert names - set(NAMES) == OF_PLUGINS


def test_a_function_without_a_table_is_listed_with_trinos_signatures():
    rows = [row[:4] for row in listed_functions() if row[0] in {"greatest", "sequence", "concat"}]
    assert ("greatest", "E", "E", "scalar") in rows
    assert ("concat", "array(E)", "E, array(E)", "scalar") in rows
    assert ("sequence", "unknown", "bigint, bigint, bigint", "table") in rows
    assert len(set(rows)) == len(rows)
