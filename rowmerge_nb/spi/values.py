"""Values of Arrow arrays as Python objects."""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa

from rowmerge_nb.base.names import quoted_text

_LONGEST: Final = 40


def python_values(array: pa.Array | pa.ChunkedArray) -> list[Any]:
    """Return the values as ``to_pylist`` does, but dates and timestamps outside of Python's range
    as text.

    >>> import pyarrow as pa
    >>> python_values(pa.array([2932896, 2932897], pa.int32()).cast(pa.date32()))
    [datetime.date(9999, 12, 31), '10000-01-01']
    """
    try:
        return list(array.to_pylist())
    except (OverflowError, ValueError):
        # Value by value, which is slow: few tables hold such moments.
        return [_value(scalar) for scalar in array]


def python_rows(page: pa.RecordBatch) -> list[dict[str, Any]]:
    """Return a page's rows as dictionaries of `python_values`; channel names must be distinct.

    >>> import pyarrow as pa
    >>> python_rows(pa.RecordBatch.from_pydict({"a": [1, 2], "b": ["x", None]}))
    [{'a': 1, 'b': 'x'}, {'a': 2, 'b': None}]
    """
    rows = zip(*map(python_values, page.columns), strict=True)
    return [dict(zip(page.schema.names, row, strict=True)) for row in rows]


def _value(scalar: pa.Scalar) -> Any:
    arrow_type = scalar.type
    if not scalar.is_valid:
        return None
    if pa.types.is_struct(arrow_type):
        return {
            arrow_type.field(index).name: _value(scalar[index])
            for index in range(arrow_type.num_fields)
        }
    if pa.types.is_map(arrow_type):
        entries = scalar.values
        return list(
            zip(python_values(entries.field(0)), python_values(entries.field(1)), strict=True)
        )
    if (
        pa.types.is_list(arrow_type)
        or pa.types.is_large_list(arrow_type)
        or pa.types.is_fixed_size_list(arrow_type)
    ):
        return python_values(scalar.values)
    try:
        return scalar.as_py()
    except (OverflowError, ValueError):
        return far_text(scalar)


def far_text(scalar: pa.Scalar) -> str:
    """Format a date or timestamp outside of Python's range.

    >>> import pyarrow as pa
    >>> far_text(pa.scalar(253402300800500000, pa.timestamp("us"))), far_text(pa.scalar(253402300800000000, pa.timestamp("us", "UTC")))
    ('10000-01-01 00:00:00.500000', '10000-01-01 00:00:00 UTC')
    """
    text = str(scalar.cast(pa.string()).as_py())
    moment, zone = text.removesuffix("Z"), " UTC" if text.endswith("Z") else ""
    return moment.removesuffix("." + "0" * 6) + zone


def shown_value(scalar: pa.Scalar) -> str:
    """Format a value for an error message: strings as SQL literals, long values truncated.

    >>> import pyarrow as pa
    >>> shown_value(pa.scalar(None)), shown_value(pa.scalar("a'b")), shown_value(pa.scalar(7)), shown_value(pa.scalar(2932897, pa.date32()))
    ('NULL', "'a''b'", '7', '10000-01-01')
    """
    if not scalar.is_valid:
        return "NULL"
    text = str(_value(scalar))
    if pa.types.is_string(scalar.type) or pa.types.is_large_string(scalar.type):
        text = quoted_text(text)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}\N{HORIZONTAL ELLIPSIS}"
