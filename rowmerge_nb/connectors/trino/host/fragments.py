"""Fragments of the wire as slices of Java, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from rowmerge_nb.base.errors import ConnectorError
from rowmerge_nb.connectors.trino.host.jpype_library import jpype
from rowmerge_nb.connectors.trino.host.jvm import call_plugin, java_class, java_list
from rowmerge_nb.connectors.trino.host_channel import unpack_fragments

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rowmerge_nb.connectors.trino.host.jvm import JavaObject


def fragment_slices(request: Mapping[str, Any], payload: memoryview) -> JavaObject:
    slices = java_class("io.airlift.slice.Slices")
    return java_list(
        [
            slices.wrappedBuffer(jpype.JArray(jpype.JByte)(np.frombuffer(fragment, np.int8)))
            for fragment in unpack_fragments(request.get("lengths") or [], payload)
        ]
    )


def finished_fragments(sink: JavaObject) -> list[bytes]:
    future = call_plugin(sink, "finish")
    fragments = future.get()
    if fragments is None or any(fragment is None for fragment in fragments):
        raise ConnectorError(
            f"{sink.getClass().getName()}.finish returned"
            f" {'a null fragment' if fragments is not None else 'a future of null'}",
            code="GENERIC_INTERNAL_ERROR",
            hint="Return the fragments as slices, or an empty list.",
        )
    return [np.array(fragment.getBytes()).tobytes() for fragment in fragments]
