"""Handles as JSON and back, with the modules that Trino itself uses between its servers."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from rowmerge_nb.base.errors import ConnectorError
from rowmerge_nb.connectors.trino.host.jpype_library import jpype
from rowmerge_nb.connectors.trino.host.jvm import java_class, java_text
from rowmerge_nb.connectors.trino.host.versions import SPI, block_encodings, object_mapper

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rowmerge_nb.connectors.trino.host.jvm import JavaObject

_MODULES: Final = (
    "tableHandleModule",
    "columnHandleModule",
    "splitModule",
    "outputTableHandleModule",
    "insertTableHandleModule",
    "mergeTableHandleModule",
    "transactionHandleModule",
    "partitioningHandleModule",
    "tableCredentialsModule",
)
_MOST_DIFFERENCES: Final = 50
_DEEPEST: Final = 4
_NO_VALUES: Final = frozenset(
    {"null", "0", "0.0", "false", "", "[]", "{}", "Optional.empty", "OptionalLong.empty"}
)
"""How Java prints what a field has without a value."""


class HandleJson:
    def __init__(self, class_loaders: Sequence[JavaObject], types: JavaObject) -> None:
        self._class_loaders = class_loaders
        resolver = java_class("io.trino.metadata.HandleResolver")()
        for class_loader in class_loaders:
            resolver.registerClassLoader(class_loader)
        block = java_class("io.trino.spi.block.Block").class_
        # Handles hold blocks: the values of partitions, and of domains.
        block_json = "io.trino.block.BlockJsonSerde$"
        encoding = block_encodings(types)
        maps = java_class("java.util.Map")
        self._mapper = object_mapper(
            maps.of(block, java_class(f"{block_json}Serializer")(encoding)),
            maps.of(
                java_class("io.trino.spi.type.Type").class_,
                java_class("io.trino.type.TypeDeserializer")(types),
                block,
                java_class(f"{block_json}Deserializer")(encoding),
            ),
        )
        modules = java_class("io.trino.metadata.HandleJsonModule")
        for name in _MODULES:
            module = getattr(modules, name, None)
            if module is not None:
                self._mapper.registerModule(module(resolver))

    def write(self, interface: str, handle: JavaObject) -> str:
        try:
            writer = self._mapper.writerFor(java_class(SPI + interface).class_)
            return str(writer.writeValueAsString(handle))
        except jpype.JException as error:
            raise _not_as_json(handle.getClass().getName(), "written", error) from error

    def read(self, interface: str, text: str) -> JavaObject:
        try:
            reader = self._mapper.readerFor(java_class(SPI + interface).class_)
            return java_class(SPI + interface) @ reader.readValue(java_text(text))
        except jpype.JException as error:
            name = json.loads(text).get("@type", interface)
            raise _not_as_json(str(name).rpartition(":")[2], "read", error) from error

    def report(self, interface: str, handle: JavaObject) -> dict[str, Any]:
        """Compare a handle with itself after the round trip through JSON."""
        before = self.write(interface, handle)
        other = self.read(interface, before)
        after = self.write(interface, other)
        return {
            "class": str(handle.getClass().getName()),
            "equal": bool(handle.equals(other)),
            "json": before,
            "json_after": after,
            "differences": [
                {
                    "class": owner,
                    "field": name,
                    "before": old,
                    "after": new,
                    "ignored": is_ignored,
                }
                for (owner, name, old, new, is_ignored), _ in zip(
                    self._differences(handle, other, 0), range(_MOST_DIFFERENCES), strict=False
                )
            ],
        }

    def lost_fields(self, before: JavaObject, after: JavaObject) -> list[dict[str, Any]]:
        """Return the fields with a value before the round trip through JSON, and none after it.

        Fields that the class excludes from its JSON by @JsonIgnore are not lost.
        """
        if before.equals(after):
            return []
        return [
            {"class": owner, "field": name, "before": old, "after": new}
            for (owner, name, old, new, is_ignored), _ in zip(
                self._differences(before, after, 0), range(_MOST_DIFFERENCES), strict=False
            )
            if not is_ignored and new in _NO_VALUES and old not in _NO_VALUES
        ]

    def _differences(
        self, before: JavaObject, after: JavaObject, depth: int
    ) -> Iterator[tuple[str, str, str, str, bool]]:
        owner = before.getClass()
        while owner is not None and self._is_of_plugin(owner):
            for field in owner.getDeclaredFields():
                if java_class("java.lang.reflect.Modifier").isStatic(field.getModifiers()):
                    continue
                field.setAccessible(True)
                old, new = field.get(before), field.get(after)
                if java_class("java.util.Objects").equals(old, new):
                    continue
                if (
                    old is not None
                    and new is not None
                    and depth < _DEEPEST
                    and self._is_of_plugin(_class_of(old))
                ):
                    yield from self._differences(old, new, depth + 1)
                elif _text(old) != _text(new):
                    yield (
                        str(owner.getName()),
                        str(field.getName()),
                        _text(old),
                        _text(new),
                        _is_ignored(owner, field),
                    )
            owner = owner.getSuperclass()

    def _is_of_plugin(self, owner: JavaObject) -> bool:
        loader = owner.getClassLoader()
        return loader is not None and any(loader.equals(each) for each in self._class_loaders)


def _is_ignored(owner: JavaObject, field: JavaObject) -> bool:
    name = str(field.getName())
    names = {name, f"get{name[:1].upper()}{name[1:]}", f"is{name[:1].upper()}{name[1:]}"}
    members = [
        field,
        *(
            method
            for method in owner.getDeclaredMethods()
            if str(method.getName()) in names and method.getParameterCount() == 0
        ),
    ]
    return any(
        str(annotation.annotationType().getName()).endswith(".JsonIgnore")
        for member in members
        for annotation in member.getAnnotations()
    )


def _class_of(value: JavaObject) -> JavaObject:
    return jpype.JObject(value).getClass()


def _text(value: JavaObject) -> str:
    return str(java_class("java.util.Objects").toString(value))


def _not_as_json(class_name: object, action: str, error: JavaObject) -> ConnectorError:
    detail = str(error.getMessage()).partition("\n")[0]
    return ConnectorError(
        f"A handle of {class_name} cannot be {action} as JSON: {detail}",
        code="GENERIC_INTERNAL_ERROR",
        hint="Trino sends handles to its workers as JSON. Check the class's @JsonProperty methods"
        " and its @JsonCreator.",
    )
