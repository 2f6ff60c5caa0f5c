"""Exceptions of Java as plain data for the wire."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from rowmerge_nb.base.errors import RowMergeError
from rowmerge_nb.connectors.trino.host.jpype_library import is_java_exception
from rowmerge_nb.connectors.trino.host.jvm import java_class, java_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rowmerge_nb.connectors.trino.host.jvm import JavaObject

_WRAPPERS: Final = frozenset(
    {
        "java.util.concurrent.ExecutionException",
        "java.util.concurrent.CompletionException",
        "com.google.common.util.concurrent.UncheckedExecutionException",
    }
)
_NOT_FOUND: Final = frozenset(
    {"java.lang.NoClassDefFoundError", "java.lang.ClassNotFoundException"}
)
_JACKSON: Final = "com.fasterxml.jackson."
_HANDLE_JSON: Final = {
    "com.fasterxml.jackson.core:jackson-core": f"{_JACKSON}core.JsonFactory",
    "com.fasterxml.jackson.core:jackson-databind": f"{_JACKSON}databind.ObjectMapper",
    "com.fasterxml.jackson.module:jackson-module-blackbird": f"{_JACKSON}module.blackbird.BlackbirdModule",
}
"""The artifacts without which a plugin's handles cannot be JSON, and a class of each."""
_MOST_FRAMES: Final = 200
_MOST_CAUSES: Final = 10
_NUMBERED: Final = re.compile(r"^\d+\) (.+)$", re.MULTILINE)
"""How Guice and Airlift number the mistakes of a configuration."""


def describe_error(error: BaseException) -> dict[str, Any]:
    """Return an error as plain data: class, message, code, frames and causes.

    >>> described = describe_error(ValueError("no such call"))
    >>> described["message"], described["code"], described["frames"]
    ('no such call', 'GENERIC_INTERNAL_ERROR', [])
    """
    if is_java_exception(error):
        described = _describe_throwable(_unwrap(error))
        return described | _missing_class(described)
    described = {
        "class": type(error).__name__,
        "message": str(error),
        "code": getattr(error, "code", None) or "GENERIC_INTERNAL_ERROR",
        "type": None,
        "frames": [],
        "causes": [],
    }
    if isinstance(error, RowMergeError):
        described["message"] = error.message
        described["hint"] = error.hint
    if is_java_exception(error.__cause__):
        cause = _describe_throwable(_unwrap(error.__cause__))
        described["frames"] = cause["frames"]
        described["causes"] = [
            {name: value for name, value in cause.items() if name != "causes"},
            *cause["causes"],
        ]
        described |= _missing_class(described)
    return described


def missing_class_name(message: str) -> str | None:
    """Return the class that a NoClassDefFoundError or ClassNotFoundException names, if it does.

    >>> missing_class_name("org/lz4/Decoder")
    'org.lz4.Decoder'
    >>> missing_class_name("Could not initialize class shop.Codes")
    """
    name = message.strip().replace("/", ".")
    return name if re.fullmatch(r"[\w$]+(\.[\w$]+)+", name) else None


def _missing_class(described: dict[str, Any]) -> dict[str, Any]:
    for each in reversed([described, *described["causes"]]):
        name = missing_class_name(each["message"]) if each["class"] in _NOT_FOUND else None
        if name is None:
            continue
        if name.startswith(_JACKSON):
            jars = {artifact: _jar_with(each) for artifact, each in _HANDLE_JSON.items()}
            return {"hint": handle_json_hint(jars)}
        jar = _jar_with(name)
        return {
            "hint": f"Add the jar with {name} to the plugin's folder"
            + (f"; Trino's lib has it in {jar}." if jar else ".")
            + " A plugin sees its own jars and the classes of the SPI only."
        }
    return {}


def _jar_with(name: str) -> str | None:
    loader = java_class("java.lang.ClassLoader").getSystemClassLoader()
    resource = loader.getResource(java_text(f"{name.replace('.', '/')}.class"))
    return str(resource).partition("!")[0].rpartition("/")[2] if resource else None


def handle_json_hint(jars: Mapping[str, str | None]) -> str:
    """Return which jars the JSON of handles needs, by their coordinates and Trino's own jars.

    >>> handle_json_hint({"com.fasterxml.jackson.core:jackson-core": "jackson-core-2.22.1.jar"})
    "The JSON of handles needs these jars in the plugin's folder; add those that it lacks: com.fasterxml.jackson.core:jackson-core:2.22.1. Trino's lib has them, and io.airlift:json depends on them."
    """
    coordinates = []
    for artifact, jar in jars.items():
        version = re.search(r"-(\d[\w.-]*)\.jar$", jar or "")
        coordinates.append(f"{artifact}:{version[1]}" if version else artifact)
    return (
        "The JSON of handles needs these jars in the plugin's folder; add those that it lacks:"
        f" {', '.join(coordinates)}. Trino's lib has them, and io.airlift:json depends on them."
    )


def configuration_mistakes(message: str) -> list[str]:
    r"""Return the numbered mistakes in a message of Guice or Airlift, without repetitions.

    >>> configuration_mistakes("Configuration errors:\n\n1) Error: no path\n\n1 error")
    ['Error: no path']
    """
    return list(dict.fromkeys(text.strip() for text in _NUMBERED.findall(message)))


def _unwrap(error: JavaObject) -> JavaObject:
    while str(error.getClass().getName()) in _WRAPPERS and error.getCause() is not None:
        error = error.getCause()
    return error


def _describe_throwable(error: JavaObject) -> dict[str, Any]:
    causes: list[dict[str, Any]] = []
    cause = error.getCause()
    while cause is not None and len(causes) < _MOST_CAUSES:
        causes.append(_describe_one(cause))
        cause = cause.getCause()
    return {**_describe_one(error), "causes": causes}


def _describe_one(error: JavaObject) -> dict[str, Any]:
    code, error_type = "GENERIC_INTERNAL_ERROR", None
    if isinstance(error, java_class("io.trino.spi.TrinoException")):
        error_code = error.getErrorCode()
        code, error_type = str(error_code.getName()), str(error_code.getType())
    message = error.getMessage()
    text = str(error.getClass().getName()) if message is None else str(message)
    mistakes = configuration_mistakes(text)
    return {
        "class": str(error.getClass().getName()),
        "message": "\n".join(mistakes) if mistakes else text,
        "code": code,
        "type": error_type,
        "frames": [_frame(element) for element in list(error.getStackTrace())[:_MOST_FRAMES]],
    }


def _frame(element: JavaObject) -> str:
    file, line = element.getFileName(), int(element.getLineNumber())
    location = "Unknown Source" if file is None else f"{file}:{line}" if line >= 0 else str(file)
    return f"{element.getClassName()}.{element.getMethodName()}({location})"
