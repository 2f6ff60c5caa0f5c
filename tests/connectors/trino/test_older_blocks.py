"""Arrow arrays are converted to blocks of Trino 380 with the same values and back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from rowmerge_nb.spi.types import parse_type
from tests.connectors.trino.conftest import BlockProgram, block_program
from tests.connectors.trino.older_jars import older_jars
from tests.connectors.trino.test_blocks import VALUES

if TYPE_CHECKING:
    from collections.abc import Iterator

TYPES = list(VALUES)


@pytest.fixture(scope="module")
def older_blocks() -> Iterator[BlockProgram]:
    jars = older_jars()
    with block_program(jars.engine, jars.java) as program:
        yield program


def page(times: int) -> pa.RecordBatch:
    """A page of all types with NULLs among their three values."""
    columns = [
        pa.array([*values, None] * times, parse_type(sql_type).arrow)
        for sql_type, (values, _) in VALUES.items()
    ]
    return pa.RecordBatch.from_arrays(columns, names=[f"c{i}" for i in range(len(columns))])


def test_values_of_all_types_arrive_in_java_and_return(older_blocks: BlockProgram) -> None:
    whole = page(1)
    header, back = older_blocks.round_trip(whole, TYPES)
    back.validate(full=True)
    assert back.to_pydict() == whole.to_pydict()
    for (sql_type, (_, texts)), arrived in zip(VALUES.items(), header["values"], strict=True):
        assert texts is None or arrived == [*texts, None], sql_type


@pytest.mark.parametrize(("start", "length"), [(3, 70), (8, 64), (1, 1), (4, 0), (0, 3)])
def test_slices_and_empty_pages_return(older_blocks: BlockProgram, start: int, length: int) -> None:
    part = page(25).slice(start, length)
    _, back = older_blocks.round_trip(part, TYPES)
    back.validate(full=True)
    assert back.to_pydict() == part.to_pydict()


@pytest.mark.parametrize("form", ["region", "dictionary", "sparse", "run length"])
def test_blocks_of_other_forms_return(older_blocks: BlockProgram, form: str) -> None:
    whole = page(2)
    count = whole.num_rows
    indexes = {
        "region": range(1, count - 1),
        "dictionary": [i for i in range(count) for _ in range(3)][::-1],
        "sparse": [count - 1, 0],
        "run length": [1] * 4,
    }[form]
    header, back = older_blocks.round_trip(whole, TYPES, form)
    back.validate(full=True)
    assert back.to_pydict() == whole.take(pa.array(indexes)).to_pydict(), header["classes"]


def test_pages_of_only_nulls_return(older_blocks: BlockProgram) -> None:
    arrays = [pa.nulls(2, parse_type(sql_type).arrow) for sql_type in TYPES]
    part = pa.RecordBatch.from_arrays(arrays, names=[f"c{i}" for i in range(len(arrays))])
    header, back = older_blocks.round_trip(part, TYPES)
    assert back.to_pydict() == part.to_pydict()
    assert all(values == [None, None] for values in header["values"])
