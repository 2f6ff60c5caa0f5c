"""Hive's bucket functions return the buckets of Trino's files, for every type and both versions."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from rowmerge_nb.base.errors import AnalysisError
from rowmerge_nb.connectors.hive_acid.buckets import buckets_of, check_bucket_type
from rowmerge_nb.spi.types import Type, parse_type

VECTORS = json.loads((Path(__file__).parent / "samples" / "tables.json").read_text())[
    "bucket_vectors_1024"
]
REFUSED = [kind for kind, by_version in VECTORS.items() if isinstance(by_version["1"], str)]
KNOWN = [(kind, version) for kind in VECTORS if kind not in REFUSED for version in (1, 2)]
OTHERS: dict[str, Any] = {
    "null": None,
    "true": True,
    "false": False,
    "array[1,2]": [1, 2],
    "array[]": [],
    "map(array['k'],array[1])": [("k", 1)],
}


def types_of(text: str) -> list[Type]:
    return (
        [parse_type(part) for part in ("bigint", "varchar")]
        if text == "bigint,varchar"
        else [parse_type(text)]
    )


def value(text: str) -> Any:
    if text in OTHERS:
        return OTHERS[text]
    if text.startswith("date "):
        return dt.date.fromisoformat(text[6:-1])
    if text.startswith("real "):
        return float(text[6:-1])
    if text.startswith("'"):
        return text[1:-1]
    return float(text) if "e0" in text else int(text)


@pytest.mark.parametrize(("kind", "version"), KNOWN)
def test_a_value_is_in_the_bucket_of_trino(kind: str, version: int) -> None:
    types = types_of(kind)
    vectors = VECTORS[kind][str(version)]
    rows = [
        [value(part) for part in (text.split(",") if len(types) > 1 else [text])]
        for text in vectors
    ]
    columns = [pa.array([row[i] for row in rows], of.arrow) for i, of in enumerate(types)]
    assert buckets_of(columns, types, 1024, version).tolist() == list(vectors.values())


@pytest.mark.parametrize("kind", REFUSED)
def test_a_type_that_trino_does_not_bucket_by_is_refused(kind: str) -> None:
    with pytest.raises(
        AnalysisError, match="Cannot create a table bucketed on an unsupported type: column 'c'"
    ) as caught:
        check_bucket_type("c", parse_type(kind))
    assert caught.value.code == "NOT_SUPPORTED"


def test_slices_of_columns_are_hashed_like_whole_ones() -> None:
    texts = pa.array(["a", None, "hello world", "", "é"])
    lists = pa.array([[9], [1, 2], None, [], [3]])
    maps = pa.array([[("z", 9)], [("k", 1)], None], pa.map_(pa.string(), pa.int64()))
    for column, kind in (
        (texts, "varchar"),
        (lists, "array(bigint)"),
        (maps, "map(varchar,bigint)"),
    ):
        for version in (1, 2):
            whole = buckets_of([column], [parse_type(kind)], 1024, version).tolist()
            assert (
                buckets_of([column.slice(1)], [parse_type(kind)], 1024, version).tolist()
                == whole[1:]
            )
