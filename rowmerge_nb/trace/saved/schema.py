"""A trace as JSON, and back; input is checked against the trace's dataclasses."""

from __future__ import annotations

import base64
import dataclasses
import math
import types
from collections.abc import Callable, Mapping
from enum import Enum, StrEnum
from functools import cache
from typing import Any, Final, TypeVar, Union, get_args, get_origin, get_type_hints

import pyarrow as pa

from rowmerge_nb.spi.operations import Era, Operation
from rowmerge_nb.spi.page import PageLayout
from rowmerge_nb.spi.values import python_values
from rowmerge_nb.trace.check_records import CommitCheck
from rowmerge_nb.trace.clause_record import ClauseRecord, Term
from rowmerge_nb.trace.node_records import NodeRecord, QueryFacts
from rowmerge_nb.trace.page_samples import PageSample
from rowmerge_nb.trace.saved.bounds import read_stream
from rowmerge_nb.trace.trace import Trace

T = TypeVar("T")

_DEPTH: Final = 64
"""The nesting limit of row values; Arrow reads no deeper types."""
_NAMES: Final = {
    "Operation": Operation,
    "Mapping": Mapping,
    "ClauseRecord": ClauseRecord,
    "Term": Term,
}
"""Names in annotations that their modules import under TYPE_CHECKING only."""
_INTEGERS: Final = range(-(2**63), 2**63)


class TraceSchemaError(ValueError):
    """An invalid part of a saved file, at a path such as ``$.clauses[3].rows``.

    >>> str(TraceSchemaError("$.count", "a text is not a number"))
    '$.count: a text is not a number'
    """

    def __init__(self, path: str, wrong: str) -> None:
        super().__init__(f"{path}: {wrong}")
        self.path = path


def encoded(value: Any) -> Any:
    """Return a trace, or a part of one, as JSON data."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {
            field.name: encoded(getattr(value, field.name)) for field in dataclasses.fields(value)
        }
        return {"is": type(value).__name__, "fields": fields}
    if isinstance(value, Operation):
        return {"is": "Operation", "value": int(value)}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, pa.RecordBatch):
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, value.schema) as writer:
            writer.write_batch(value)
        return {"is": "page", "arrow": base64.b64encode(sink.getvalue()).decode()}
    if isinstance(value, tuple | list):
        return {"is": "tuple", "items": [encoded(item) for item in value]}
    if isinstance(value, Mapping):
        return {
            "is": "mapping",
            "items": [[encoded(key), encoded(item)] for key, item in value.items()],
        }
    if value is None or isinstance(value, bool | int | float | str):
        return value
    # Values without a JSON form (dates, decimals, bytes) become one-row pages of their own type.
    return {"is": "value", "page": encoded(pa.RecordBatch.from_pydict({"value": [value]}))}


def decoded(content: Any) -> Trace:
    """Read a trace from the output of `encoded`; raise TraceSchemaError for an invalid part.

    >>> decoded(encoded(Trace(statement="DROP TABLE t", kind="DROP TABLE", state="finished"))).kind
    'DROP TABLE'
    >>> decoded({"is": "Trace", "fields": {"statement": 3}})
    Traceback (most recent call last):
    rowmerge_nb.trace.saved.schema.TraceSchemaError: $.kind: it is missing
    """
    trace = decoded_as(content, Trace)
    _check_plan(trace.plan)
    _check_commit(trace.checks.commit, "$.checks.commit")
    samples = trace.samples
    if samples.pages is not None:
        _check_pages(samples.pages, "$.samples.pages")
    if samples.requested_rows is not None and samples.requested_rows.pages is not None:
        _check_pages(samples.requested_rows.pages, "$.samples.requested_rows.pages")
    for at, sample in enumerate(samples.stored_pages):
        if sample.layout is not None:
            _check_layout(
                sample.layout,
                sample.layout.after.stored.stop,
                sample.page,
                f"$.samples.stored_pages[{at}].layout",
            )
    return trace


def decoded_as(content: Any, cls: type[T]) -> T:
    """Read a dataclass; raise TraceSchemaError if a part does not match its annotation."""
    instance: T = _dataclass(content, cls, "$")
    return instance


def _value(value: Any, annotation: Any, path: str) -> Any:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin in {Union, types.UnionType}:
        if value is None and types.NoneType in arguments:
            return None
        return _value(
            value,
            _chosen(value, [one for one in arguments if one is not types.NoneType], path),
            path,
        )
    if origin is tuple:
        return _tuple(value, arguments, path)
    if origin is not None and issubclass(origin, Mapping):
        return _mapping(
            value,
            lambda key: _value(key, arguments[0], path),
            lambda item, at: _value(item, arguments[1], at),
            path,
        )
    if dataclasses.is_dataclass(annotation):
        return _dataclass(value, annotation, path)
    if isinstance(annotation, type) and issubclass(annotation, StrEnum):
        return _member(value, annotation, path)
    return _READERS[annotation](value, path)


def _chosen(value: Any, annotations: list[Any], path: str) -> Any:
    if len(annotations) == 1:
        return annotations[0]
    if type(value) in annotations:
        return type(value)
    tag = value.get("is") if isinstance(value, dict) else None
    for annotation in annotations:
        if annotation.__name__ == tag:
            return annotation
    raise TraceSchemaError(
        path,
        f"{_named(value)} is none of"
        f" {', '.join(annotation.__name__ for annotation in annotations)}",
    )


def _dataclass(value: Any, cls: Any, path: str) -> Any:
    content = _tagged(value, cls.__name__, "fields", path)
    if not isinstance(content, dict):
        raise TraceSchemaError(path, "it has no fields")
    hints = _fields(cls)
    if missing := [name for name in hints if name not in content]:
        raise TraceSchemaError(path=f"{path}.{missing[0]}", wrong="it is missing")
    if strange := [name for name in content if name not in hints]:
        raise TraceSchemaError(
            path=f"{path}.{strange[0][:80]}", wrong="no entry of this name is allowed there"
        )
    return cls(
        **{name: _value(content[name], hint, f"{path}.{name}") for name, hint in hints.items()}
    )


@cache
def _fields(cls: Any) -> Mapping[str, Any]:
    # Names imported under TYPE_CHECKING are missing at run time.
    hints = get_type_hints(cls, localns=_NAMES)
    return {field.name: hints[field.name] for field in dataclasses.fields(cls)}


def _tagged(value: Any, tag: str, content: str, path: str) -> Any:
    if not isinstance(value, dict) or value.get("is") != tag or value.keys() != {"is", content}:
        raise TraceSchemaError(path, f"{_named(value)} is not a {tag}")
    return value[content]


def _tuple(value: Any, arguments: tuple[Any, ...], path: str) -> tuple[Any, ...]:
    items = _items(value, "tuple", path)
    annotations = [arguments[0]] * len(items) if arguments[-1] is Ellipsis else list(arguments)
    if len(annotations) != len(items):
        raise TraceSchemaError(
            path, f"it has {len(items)} parts, and {len(annotations)} are expected"
        )
    return tuple(
        _value(item, annotation, f"{path}[{i}]")
        for i, (item, annotation) in enumerate(zip(items, annotations, strict=True))
    )


def _mapping(
    value: Any, read_key: Callable[[Any], Any], read: Callable[[Any, str], Any], path: str
) -> dict[Any, Any]:
    entries = {}
    for item in _items(value, "mapping", path):
        if not isinstance(item, list) or len(item) != 2:
            raise TraceSchemaError(path, "an entry is not a pair of key and value")
        key = read_key(item[0])
        if key in entries:
            raise TraceSchemaError(path, f"key {key!r} occurs twice")
        entries[key] = read(item[1], f"{path}[{key!r}]")
    return entries


def _items(value: Any, tag: str, path: str) -> list[Any]:
    items = _tagged(value, tag, "items", path)
    if not isinstance(items, list):
        raise TraceSchemaError(path, f"{_named(items)} is not a list")
    return items


def _text(value: Any, path: str) -> str:
    if type(value) is not str:
        raise TraceSchemaError(path, f"{_named(value)} is not a text")
    return value


def _member(value: Any, enum: type[StrEnum], path: str) -> StrEnum:
    if not isinstance(value, str) or value not in {member.value for member in enum}:
        raise TraceSchemaError(path, f"{_named(value)} is none of {', '.join(enum)}")
    return enum(value)


def _boolean(value: Any, path: str) -> bool:
    if type(value) is not bool:
        raise TraceSchemaError(path, f"{_named(value)} is not a truth value")
    return value


def _integer(value: Any, path: str) -> int:
    if type(value) is not int or value not in _INTEGERS:
        raise TraceSchemaError(path, f"{_named(value)} is not an integer of 64 bits")
    return value


def _number(value: Any, path: str) -> float:
    if type(value) not in {int, float} or not (
        value in _INTEGERS if type(value) is int else math.isfinite(value)
    ):
        raise TraceSchemaError(path, f"{_named(value)} is not a number")
    return value if type(value) is int else float(value)


def _operation(value: Any, path: str) -> Operation:
    number = _tagged(value, "Operation", "value", path)
    if type(number) is not int or number not in {int(operation) for operation in Operation}:
        raise TraceSchemaError(path, f"{_named(number)} is not the number of an operation")
    return Operation(number)


def _era(value: Any, path: str) -> Era:
    if _text(value, path) not in set(Era):
        raise TraceSchemaError(path, f"{_named(value)} is not the name of an era")
    return Era(value)


def decoded_page(value: Any, path: str) -> pa.RecordBatch:
    text = _tagged(value, "page", "arrow", path)
    try:
        (page,) = read_stream(base64.b64decode(text, validate=True))
    except (
        pa.ArrowException,
        ValueError,
        TypeError,
        OSError,
        KeyError,
        NotImplementedError,
        MemoryError,
    ) as error:
        raise TraceSchemaError(
            path, f"it holds no page of Arrow data: {' '.join(str(error).split())[:200]}"
        ) from error
    return page


def _free(value: Any, path: str, depth: int = 0) -> Any:
    if depth > _DEPTH:
        raise TraceSchemaError(path, f"it is nested deeper than {_DEPTH} levels")
    if value is None or isinstance(value, bool | int | float | str):
        return value
    tag = value.get("is") if isinstance(value, dict) else None
    if tag == "tuple":
        return tuple(
            _free(item, f"{path}[{i}]", depth + 1)
            for i, item in enumerate(_items(value, "tuple", path))
        )
    if tag == "mapping":
        return _mapping(
            value, lambda key: _key(key, path), lambda item, at: _free(item, at, depth + 1), path
        )
    if tag == "value":
        page = decoded_page(_tagged(value, "value", "page", path), path)
        if page.num_columns != 1 or page.num_rows != 1:
            raise TraceSchemaError(
                path,
                f"a page of {page.num_columns} columns and {page.num_rows} rows is not one value",
            )
        try:
            return python_values(page.column(0))[0]
        except (pa.ArrowException, ValueError, TypeError, OverflowError, ArithmeticError) as error:
            raise TraceSchemaError(path, f"its value has no form in Python: {error}") from error
    raise TraceSchemaError(path, f"{_named(value)} is not a value of a row")


def _key(value: Any, path: str) -> Any:
    key = _free(value, path, _DEPTH)
    try:
        hash(key)
    except TypeError as error:
        raise TraceSchemaError(path, f"{_named(value)} cannot be a key") from error
    return key


_READERS: Final[Mapping[Any, Callable[[Any, str], Any]]] = {
    str: _text,
    bool: _boolean,
    int: _integer,
    float: _number,
    Operation: _operation,
    Era: _era,
    pa.RecordBatch: decoded_page,
    Any: _free,
}


def _named(value: Any) -> str:
    if isinstance(value, dict):
        tag = value.get("is")
        return f"a {tag[:40]}" if isinstance(tag, str) else "an object"
    if isinstance(value, list):
        return "a list"
    text = repr(value[:40] if isinstance(value, str) else value)
    return text if len(text) <= 60 else text[:59] + "…"


def _check_plan(plan: tuple[NodeRecord, ...], path: str = "$.plan") -> None:
    """Check that the plan is a tree in preorder: every node but the root is the source of exactly
    one earlier node.
    """
    positions: dict[str, int] = {}
    for at, record in enumerate(plan):
        if record.id in positions:
            raise TraceSchemaError(
                path=f"{path}[{at}].id", wrong=f"node {record.id!r} occurs twice"
            )
        positions[record.id] = at
        if isinstance(record.facts, QueryFacts):
            _check_plan(record.facts.nodes, f"{path}[{at}].facts.nodes")
    used: set[str] = set()
    for at, record in enumerate(plan):
        for i, source in enumerate(record.sources):
            if positions.get(source, -1) <= at or source in used:
                raise TraceSchemaError(
                    path=f"{path}[{at}].sources[{i}]",
                    wrong=f"{source!r} is not a node below it alone",
                )
            used.add(source)
    if len(used) != max(len(positions) - 1, 0):
        raise TraceSchemaError(path=path, wrong="its nodes are not one tree")


def _check_commit(check: CommitCheck | None, path: str) -> None:
    if check is None:
        return
    if (check.expected is None) != (check.actual is None):
        raise TraceSchemaError(path, "it has one of the pages 'expected' and 'actual' only")
    if check.expected is None or check.actual is None:
        return
    if not check.expected.schema.equals(check.actual.schema):
        raise TraceSchemaError(f"{path}.actual", "it has other columns than the expected rows")
    for name, page in (("expected", check.expected), ("actual", check.actual)):
        if page.num_rows != len(check.rows):
            raise TraceSchemaError(
                f"{path}.{name}",
                f"it has {page.num_rows} rows, and {len(check.rows)} are described",
            )
    for at, row in enumerate(check.rows):
        if not set(row.differing) <= set(range(check.expected.num_columns)):
            wrong = f"{list(row.differing)} are not columns of its rows"
            raise TraceSchemaError(f"{path}.rows[{at}].differing", wrong)


def _check_pages(pages: PageSample, path: str) -> None:
    layout = pages.layout
    _check_layout(layout, layout.after.count, pages.after, f"{path}.layout")
    if pages.transformed:
        _check_channels(layout.before.count, pages.before, f"{path}.layout")
        merge_row = pages.before.column(layout.before.merge_row).type
        if not pa.types.is_struct(merge_row) or merge_row.num_fields != layout.merge_row.count:
            raise TraceSchemaError(
                path=f"{path}.before",
                wrong=f"its channel {layout.before.merge_row} is not a merge row",
            )
    elif not pages.before.schema.equals(pages.after.schema):
        raise TraceSchemaError(
            path=f"{path}.transformed", wrong="the pages before and after have other channels"
        )
    for name, rows, described_rows in (
        ("produced", pages.before.num_rows, len(pages.produced)),
        ("writers", pages.after.num_rows, len(pages.writers)),
        (
            "placement",
            pages.after.num_rows,
            pages.after.num_rows if pages.placement is None else len(pages.placement.numbers),
        ),
        (
            "witness",
            pages.before.num_rows,
            pages.before.num_rows if pages.witness is None else pages.witness.num_rows,
        ),
    ):
        if rows != described_rows:
            raise TraceSchemaError(
                path=f"{path}.{name}",
                wrong=f"it describes {described_rows} rows, and there are {rows}",
            )
    if pages.tasks and (min(pages.tasks) < 1 or sum(pages.tasks) != pages.before.num_rows):
        raise TraceSchemaError(
            path=f"{path}.tasks", wrong=f"it does not add up to {pages.before.num_rows} rows"
        )
    if pages.placement is not None and pages.placement.writers < 1:
        wrong = f"{pages.placement.writers} is not a number of writers"
        raise TraceSchemaError(path=f"{path}.placement.writers", wrong=wrong)
    if not set(pages.produced) <= {0, 1, 2} or sum(pages.produced) != pages.after.num_rows:
        raise TraceSchemaError(
            path=f"{path}.produced", wrong=f"it does not add up to {pages.after.num_rows} rows"
        )


def _check_layout(layout: PageLayout, channels: int, page: pa.RecordBatch, path: str) -> None:
    if not 0 <= layout.column_count <= page.num_columns:
        raise TraceSchemaError(
            path=f"{path}.column_count",
            wrong=f"{layout.column_count} is not a number of columns of its page",
        )
    indexes = layout.redistribution_columns
    if not set(indexes) <= set(range(layout.column_count)) or list(indexes) != sorted(set(indexes)):
        wrong = f"{list(indexes)} are not columns of the table, in table order"
        raise TraceSchemaError(path=f"{path}.redistribution_columns", wrong=wrong)
    _check_channels(channels, page, path)


def _check_channels(channels: int, page: pa.RecordBatch, path: str) -> None:
    if channels != page.num_columns:
        raise TraceSchemaError(
            path, f"it is one of {channels} channels, and there are {page.num_columns}"
        )
