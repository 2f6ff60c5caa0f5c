"""Saving a trace and opening it again: JSON, with Arrow data inside as base64 of an Arrow stream. Needs no Spark."""

from __future__ import annotations

import base64
import dataclasses
import json
from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from typing import Any

import pyarrow as pa

from rowmerge_nb.engine import trace as trace_module
from rowmerge_nb.engine.trace import Trace
from rowmerge_nb.errors import RowMergeError
from rowmerge_nb.plan.explain import NodeRecord
from rowmerge_nb.plan.nodes import CaseBranch
from rowmerge_nb.spi.operations import Operation
from rowmerge_nb.spi.output import ConnectorOutputMetadata, Written
from rowmerge_nb.spi.values import python_values

__all__ = ["load_trace", "save_trace"]

FORMAT = "rowmerge_nb trace 1"
_CLASSES: dict[str, Any] = {
    **{name: getattr(trace_module, name) for name in trace_module.__all__},
    "ConnectorOutputMetadata": ConnectorOutputMetadata,
    "Written": Written,
    "NodeRecord": NodeRecord,
    "CaseBranch": CaseBranch,
}


def save_trace(trace: Trace, path: str | Path) -> None:
    """Write a trace to a file.

    >>> import tempfile, os
    >>> file = os.path.join(tempfile.mkdtemp(), "trace.json")
    >>> save_trace(Trace(statement="DROP TABLE t", kind="DROP TABLE", state="finished"), file)
    >>> load_trace(file).kind
    'DROP TABLE'
    """
    Path(path).write_text(json.dumps({FORMAT: _encode(trace)}, ensure_ascii=False), encoding="utf-8")


def load_trace(path: str | Path) -> Trace:
    """Open a saved trace.

    Raises:
        RowMergeError: INVALID_ARGUMENTS if the file is not a trace of this format.
    """
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
        # The format is the key under which the trace is kept, so that another one is simply not there.
        decoded: Trace = _decode(content[FORMAT])
    except (OSError, ValueError, KeyError, TypeError) as error:
        msg = f"'{path}' cannot be opened as a trace: {type(error).__name__}: {error}"
        raise RowMergeError(
            msg, code="INVALID_ARGUMENTS", hint=f"Write one with save_trace; this version reads '{FORMAT}'."
        ) from error
    return decoded


def _encode(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {field.name: _encode(getattr(value, field.name)) for field in dataclasses.fields(value)}
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
        return {"is": "tuple", "items": [_encode(item) for item in value]}
    if isinstance(value, Mapping):
        return {"is": "mapping", "items": [[_encode(key), _encode(item)] for key, item in value.items()]}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    # Values of rows that JSON has no form for (dates, decimals, bytes) travel as one-row pages of their own type.
    return {"is": "value", "page": _encode(pa.RecordBatch.from_pydict({"value": [value]}))}


def _decode(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    kind = value["is"]
    if kind == "Operation":
        return Operation(value["value"])
    if kind == "page":
        return pa.ipc.open_stream(base64.b64decode(value["arrow"])).read_next_batch()
    if kind == "tuple":
        return tuple(_decode(item) for item in value["items"])
    if kind == "mapping":
        return {_decode(key): _decode(item) for key, item in value["items"]}
    if kind == "value":
        return python_values(_decode(value["page"]).column(0))[0]
    return _CLASSES[kind](**{name: _decode(item) for name, item in value["fields"].items()})
