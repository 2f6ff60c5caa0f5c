"""A replay of a plugin of Trino as a self-contained JUnit test."""

from __future__ import annotations

import datetime as dt
import html
import itertools
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from rowmerge_nb.base.choices import Flow
from rowmerge_nb.base.errors import RowMergeError
from rowmerge_nb.base.words import number as written_number
from rowmerge_nb.replays.java_plugin import JavaConnector
from rowmerge_nb.replays.rows import data_of, rows_left
from rowmerge_nb.replays.shown import headline
from rowmerge_nb.replays.table import unlocated_properties
from rowmerge_nb.replays.written import page_rows, replayed_record, target_rows
from rowmerge_nb.spi.operations import Era
from rowmerge_nb.spi.types import Type
from rowmerge_nb.spi.values import python_values

if TYPE_CHECKING:
    import jinja2

    from rowmerge_nb.replays.java_plugin import PluginFacts
    from rowmerge_nb.replays.run import Replay
    from rowmerge_nb.trace.record import Record

MOST_VALUES: Final = 3_000
"""The maximum number of values in a file, since Java limits the size of a method."""
_LONGEST_TEXT: Final = 65_535
"""The maximum number of bytes of a Java string constant."""
_SECRET: Final = re.compile(
    r"password|secret|token|credential|access-key|private-key", re.IGNORECASE
)
_PACKAGE: Final = re.compile(r".*/src/(?:test|main)/java/(.+)/[^/]+")
_TRINO_EXCEPTION: Final = "io.trino.spi.TrinoException"
_CONFLICT: Final = "TRANSACTION_CONFLICT"


def write_java_test(result: Replay, file: Path, *, expect_error: bool) -> str:
    if not re.fullmatch(r"[A-Za-z_$][\w$]*", file.stem, re.ASCII):
        raise RowMergeError.invalid(
            f"A Java class cannot be named '{file.stem}'",
            hint="Name the file like a class, such as TestShelf.java.",
        )
    facts = _checked_plugin(result)
    package = _PACKAGE.fullmatch(file.absolute().as_posix())
    names = {
        "class_name": file.stem,
        "package": package[1].replace("/", ".") if package else "",
        **_variables(result, facts, expect_error=expect_error),
    }
    template = _environment().get_template("test.java.j2")
    imports, static_imports = _imports(template.render(names, imports=(), static_imports=()))
    return template.render(names, imports=imports, static_imports=static_imports)


def _checked_plugin(result: Replay) -> PluginFacts:
    hint = "Write a test in Python: to_test('test_shop.py')."
    if result.record.flow is Flow.UPDATABLE:
        raise RowMergeError.unsupported(
            "A test in Java has calls of merge sinks, but the record is of the older flow",
            hint=hint,
        )
    if result.make_table is not None:
        raise RowMergeError.unsupported(
            "A test in Java cannot call make_table, a function of Python",
            hint=hint,
        )
    if not result.origin.is_own:
        raise RowMergeError.invalid(
            f"{result.origin.name} is a connector, whose tables would be changed by every run of"
            " the test",
            hint="Replay the record with a function that makes the connector in a given folder.",
        )
    if result.record.rows is None:
        raise RowMergeError.invalid(
            "The record does not have the rows of the target, which a test in Java creates",
            hint="Record the statement with record=True.",
        )
    if result.plugin is None:
        raise RowMergeError.unsupported(
            f"{result.origin.name} started no Trino plugin, so a test in Java has nothing to call",
            hint=hint,
        )
    return result.plugin


def _environment() -> jinja2.Environment:
    import jinja2

    environment = jinja2.Environment(  # noqa: S701 - it writes Java, not HTML
        loader=jinja2.PackageLoader("rowmerge_nb.replays"),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["lines"] = _lines
    return environment


def _lines(items: Sequence[str], indent: int) -> str:
    r"""Return arguments of a Java call, each on its own line.

    >>> _lines(["1", "2"], 4), _lines([], 4)
    ('\n    1,\n    2', '')
    """
    return ",".join(f"\n{' ' * indent}{item}" for item in items)


def _variables(result: Replay, facts: PluginFacts, *, expect_error: bool) -> dict[str, Any]:
    record = replayed_record(result)
    types = [column.sql_type for column in record.columns]
    ends_after = {"begin_merge": "begin", "begin_insert": "begin", "finish": "finish"}.get(
        result.call, ""
    )
    is_compared = not ends_after and not expect_error
    rows = target_rows(record)
    expected_rows = _expected_rows(record) if is_compared else []
    pages = [page_rows(record, page) for page in record.pages]
    count = sum(map(_size, [rows, expected_rows, pages]))
    if count > MOST_VALUES:
        raise RowMergeError.invalid(
            f"A test in Java with {written_number(count)} values is too large",
            hint="Shrink the replay first: replay.shrink().to_test(...).",
        )
    return {
        "headline": _comment(headline(result)),
        "version": facts.version,
        "version_literal": _text(facts.version),
        "features": facts.features,
        "plugin_name": facts.plugin_class,
        "schema": _text(record.name[1]),
        "table": _text(record.name[2]),
        "columns": [_text(column.name) for column in record.columns],
        "types": [_text(str(sql_type)) for sql_type in types],
        "not_null": [_text(column.name) for column in record.columns if not column.nullable],
        "rows": [_row(row, types) for row in rows],
        "expected_rows": [_row(row, types) for row in expected_rows],
        "is_compared": is_compared,
        "is_insert": record.row_id is None,
        "ends_after": ends_after,
        "method": _method(result, expect_error=expect_error),
        "expected_error": _expected_error(result) if expect_error else None,
        "writers": [
            {
                "number": number,
                "pages": [
                    [_change(record, row, types) for row in rows_of_page]
                    for page, rows_of_page in zip(record.pages, pages, strict=True)
                    if page.number == number
                ],
            }
            for number in result.numbers
        ],
        "updated": [
            f"{number}, List.of({', '.join(f'columns.get({_text(name)})' for name in names)})"
            for number, names in (record.updated if record.era is Era.CURRENT else {}).items()
        ],
        "table_properties": _entries(unlocated_properties(record)),
        "cases": [
            line
            for base, line in _CASES.items()
            if base in set(itertools.chain(*map(_bases, types)))
        ],
        **_catalog(result),
    }


def _expected_rows(record: Record) -> list[tuple[Any, ...]]:
    assert record.rows is not None
    table = data_of(record, record.rows)
    result = rows_left(record, table, np.arange(table.num_rows), record.pages)
    return list(zip(*map(python_values, result.columns), strict=True))


def _catalog(result: Replay) -> dict[str, Any]:
    """Return what the connector is made of; the test reads secrets from its environment."""
    with result.origin.opened_in() as (connector, folder):
        assert isinstance(connector, JavaConnector)
        name, settings = connector.connector_name, dict(connector.properties)
        session = dict(connector.session_properties)
    entries, uses_folder = [], False
    for key, value in settings.items():
        parts = [_text(part) for part in value.split(str(folder))] if folder else [_text(value)]
        text = " + folder + ".join(parts)
        uses_folder = uses_folder or len(parts) > 1
        if _SECRET.search(key):
            variable = re.sub(r"\W+", "_", key).upper()
            text = f'Objects.requireNonNull(System.getenv("{variable}"), "Set {variable}")'
        entries.append(f"Map.entry({_text(key)}, {text})")
    return {
        "connector_name": _text(name),
        "properties": entries,
        "uses_folder": uses_folder,
        "session_properties": _entries(session),
    }


def _entries(values: Mapping[str, Any]) -> list[str]:
    return [f"Map.entry({_text(name)}, {_property(values[name])})" for name in sorted(values)]


def _property(value: Any) -> str:
    """Format the value of a property.

    >>> _property(["a", "b"]), _property(3), _property(True)
    ('List.of("a", "b")', '3L', 'true')
    """
    if isinstance(value, list | tuple):
        return f"List.of({', '.join(map(_property, value))})"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return f"{value}L"
    return repr(value) if isinstance(value, float) else _text(str(value))


def _method(result: Replay, *, expect_error: bool) -> str:
    if result.error is None:
        return "testRowsThatAreLeft"
    step = "".join(word.capitalize() for word in (result.step or "replay").split("_"))
    return f"test{step}{'Refuses' if expect_error else 'Takes'}TheseRows"


def _expected_error(result: Replay) -> dict[str, str]:
    java_class = getattr(result.error, "java_class", "")
    if not java_class:
        raise RowMergeError.invalid(
            "The replay's error is not a Java exception, so a test in Java cannot expect it",
            hint="Omit expect_error.",
        )
    code = getattr(result.error, "code", "")
    if java_class == _TRINO_EXCEPTION:
        # A conflict has a code of this project, which Java does not know.
        return {"class_name": "TrinoException", "code": "" if code == _CONFLICT else _text(code)}
    return {"class_name": java_class.replace("$", "."), "code": ""}


def _comment(sentence: str) -> str:
    """Return a sentence for a Java comment.

    >>> _comment("a */ b < c")
    'a * / b &lt; c.'
    """
    # Java reads \\u escapes in comments too.
    text = " ".join(sentence.split()).replace("*/", "* /").replace("\\", "/")
    return f"{html.escape(text, quote=False).rstrip('.')}."


def _size(value: Any) -> int:
    if isinstance(value, Mapping):
        return sum(map(_size, value.values()))
    return sum(map(_size, value)) if isinstance(value, list | tuple) else 1


def _row(row: Sequence[Any], types: Sequence[Type]) -> str:
    return f"row({_arguments(row, types)})"


def _arguments(row: Sequence[Any], types: Sequence[Type]) -> str:
    if len(row) == 1 and row[0] is None:
        return "(Object) null"
    return ", ".join(_literal(value, sql_type) for value, sql_type in zip(row, types, strict=True))


def _change(record: Record, row: Sequence[Any], types: Sequence[Type]) -> str:
    operation, target, values, *case_number = row
    if record.row_id is None:
        return _row(values, types)
    index = "null" if target is None else str(target)
    number = case_number[0] if case_number else 0
    constant = f"ConnectorMergeSink.{operation}_OPERATION_NUMBER"
    return f"change({constant}, {index}, {number}, {_arguments(values, types)})"


def _bases(sql_type: Type) -> Iterator[str]:
    yield sql_type.base
    for parameter in sql_type.parameters:
        if isinstance(parameter, Type):
            yield from _bases(parameter)


_CASES: Final = {
    "boolean": "BooleanType t -> t.writeBoolean(builder, (Boolean) value);",
    "tinyint": "TinyintType t -> t.writeLong(builder, (Long) value);",
    "smallint": "SmallintType t -> t.writeLong(builder, (Long) value);",
    "integer": "IntegerType t -> t.writeLong(builder, (Long) value);",
    "bigint": "BigintType t -> t.writeLong(builder, (Long) value);",
    "real": "RealType t -> t.writeFloat(builder, ((Double) value).floatValue());",
    "double": "DoubleType t -> t.writeDouble(builder, (Double) value);",
    "decimal": "DecimalType t when t.isShort() -> t.writeLong(builder, ((BigDecimal)"
    " value).unscaledValue().longValueExact());\n            case DecimalType t ->"
    " t.writeObject(builder, Int128.valueOf(((BigDecimal) value).unscaledValue()));",
    "varchar": "VarcharType t -> t.writeSlice(builder, Slices.utf8Slice((String) value));",
    "char": "CharType t -> t.writeSlice(builder, Slices.utf8Slice(((String)"
    ' value).replaceAll(" +$", "")));',
    "varbinary": "VarbinaryType t -> t.writeSlice(builder, Slices.wrappedBuffer((byte[]) value));",
    "json": "JsonType t -> t.writeSlice(builder, Slices.utf8Slice((String) value));",
    "date": "DateType t -> t.writeLong(builder, ((LocalDate) value).toEpochDay());",
    "time": "TimeType t -> t.writeLong(builder, ((LocalTime) value).toNanoOfDay() * 1000);",
    "timestamp": "TimestampType t when t.isShort() -> t.writeLong(builder,"
    " ChronoUnit.MICROS.between(LocalDateTime.of(1970, 1, 1, 0, 0), (LocalDateTime) value));\n"
    "            case TimestampType t -> t.writeObject(builder, new"
    " LongTimestamp(ChronoUnit.MICROS.between(LocalDateTime.of(1970, 1, 1, 0, 0), (LocalDateTime)"
    " value), 0));",
    "timestamp with time zone": "TimestampWithTimeZoneType t when t.isShort() ->"
    " t.writeLong(builder, DateTimeEncoding.packDateTimeWithZone(((Instant) value).toEpochMilli(),"
    " TimeZoneKey.UTC_KEY));\n            case TimestampWithTimeZoneType t ->"
    " t.writeObject(builder, LongTimestampWithTimeZone.fromEpochSecondsAndFraction(((Instant)"
    " value).getEpochSecond(), ((Instant) value).getNano() * 1000L, TimeZoneKey.UTC_KEY));",
    "uuid": "UuidType t -> t.writeSlice(builder, UuidType.javaUuidToTrinoUuid((UUID) value));",
    "array": "ArrayType t -> ((ArrayBlockBuilder) builder).buildEntry(elements -> ((List<?>)"
    " value).forEach(element -> write(t.getElementType(), elements, element)));",
    "map": "MapType t -> ((MapBlockBuilder) builder).buildEntry((keys, values) -> ((List<?>)"
    " value).forEach(entry -> {\n"
    "                write(t.getKeyType(), keys, ((List<?>) entry).getFirst());\n"
    "                write(t.getValueType(), values, ((List<?>) entry).getLast());\n"
    "            }));",
    "row": "RowType t -> ((RowBlockBuilder) builder).buildEntry(fields -> {\n"
    "                for (int field = 0; field < fields.size(); field++) {\n"
    "                    write(t.getTypeParameters().get(field), fields.get(field), ((List<?>)"
    " value).get(field));\n"
    "                }\n"
    "            });",
}
"""The cases of a Java switch that write a value of each type into a block builder."""


def _literal(value: Any, sql_type: Type) -> str:
    r"""Format a value as a Java expression.

    >>> print(_literal(7, Type("bigint")), _literal('a"b', Type("varchar")))
    7L "a\"b"
    >>> _literal([1, None], Type("array", (Type("bigint"),)))
    'row(1L, null)'
    """
    if value is None:
        return "null"
    base = sql_type.base
    if base == "array":
        return _row(value, list(sql_type.parameters) * len(value))
    if base == "map":
        pairs = [_row(pair, sql_type.parameters) for pair in value]
        return f"row({', '.join(pairs)})"
    if base == "row":
        return _row(list(value.values()), sql_type.parameters)
    write = _LITERALS.get(base)
    # A time that Python has no value for is text.
    if write is None or (base in _MOMENTS and isinstance(value, str)):
        raise RowMergeError.invalid(
            f"A test in Java cannot have the value {value!r} of type {sql_type}",
            hint="Shrink the replay, or write a test in Python: to_test('test_shop.py').",
        )
    return write(value)


def _text(value: str) -> str:
    r"""Format text as a Java string constant.

    >>> print(_text("it's \"\n\u2028"))
    "it's \"\n\u2028"
    """
    if len(value.encode()) > _LONGEST_TEXT:
        raise RowMergeError.invalid(
            f"A Java string constant has at most {written_number(_LONGEST_TEXT)} bytes, and one"
            f" of the values has {written_number(len(value.encode()))}",
            hint="Shrink the replay first: replay.shrink().to_test(...).",
        )
    # JSON and Java have the same escapes.
    return json.dumps(value).replace("\x7f", "\\u007f")


def _double(value: float) -> str:
    if math.isnan(value):
        return "Double.NaN"
    if math.isinf(value):
        return f"Double.{'POSITIVE' if value > 0 else 'NEGATIVE'}_INFINITY"
    return repr(float(value))


_MOMENTS: Final = frozenset({"date", "time", "timestamp", "timestamp with time zone"})
_LITERALS: Final[Mapping[str, Callable[[Any], str]]] = {
    "boolean": lambda value: str(value).lower(),
    **dict.fromkeys(("tinyint", "smallint", "integer", "bigint"), _property),
    **dict.fromkeys(("real", "double"), _double),
    "decimal": lambda value: f'new BigDecimal("{value:f}")',
    **dict.fromkeys(("varchar", "char", "json"), _text),
    "varbinary": lambda value: f'HexFormat.of().parseHex("{value.hex()}")',
    "date": lambda value: f'LocalDate.parse("{value.isoformat()}")',
    "time": lambda value: f'LocalTime.parse("{value.isoformat()}")',
    "timestamp": lambda value: f'LocalDateTime.parse("{value.isoformat()}")',
    "timestamp with time zone": lambda value: (
        f'Instant.parse("{value.astimezone(dt.UTC).replace(tzinfo=None).isoformat()}Z")'
    ),
    "uuid": lambda value: f'UUID.fromString("{value}")',
}


_CLASSES: Final = {
    "java.lang.reflect": ("Proxy",),
    "java.math": ("BigDecimal",),
    "java.nio.file": ("Path",),
    "java.time": ("Instant", "LocalDate", "LocalDateTime", "LocalTime"),
    "java.time.temporal": ("ChronoUnit",),
    "java.util": (
        *("ArrayDeque", "ArrayList", "Arrays", "Collection", "Deque", "HashMap", "HexFormat"),
        *("List", "Map", "Objects", "Optional", "Set", "UUID"),
    ),
    "java.util.stream": ("Collectors", "Stream"),
    "io.airlift.slice": ("Slice", "Slices"),
    "io.trino.spi": ("HostAddress", "Node", "Page", "PageBuilder", "TrinoException"),
    "io.trino.spi.block": (
        *("ArrayBlockBuilder", "Block", "BlockBuilder", "MapBlockBuilder", "RowBlockBuilder"),
    ),
    "io.trino.spi.connector": (
        *("ColumnHandle", "ColumnMetadata", "Connector", "ConnectorContext", "ConnectorFactory"),
        *("ConnectorInsertTableHandle", "ConnectorMergeSink", "ConnectorMergeTableHandle"),
        *("ConnectorMetadata", "ConnectorPageSink", "ConnectorPageSource"),
        *("ConnectorPageSourceProvider", "ConnectorSession", "ConnectorSplit"),
        *("ConnectorSplitSource", "ConnectorTableHandle", "ConnectorTableMetadata"),
        *("ConnectorTransactionHandle", "Constraint", "DynamicFilter", "DynamicFilterSnapshot"),
        *("MemoryContext", "RetryMode", "SaveMode", "SchemaTableName", "SourcePage"),
    ),
    "io.trino.spi.security": ("PrincipalType", "TrinoPrincipal"),
    "io.trino.spi.session": ("PropertyMetadata",),
    "io.trino.spi.transaction": ("IsolationLevel",),
    "io.trino.spi.type": (
        *("ArrayType", "BigintType", "BooleanType", "CharType", "DateTimeEncoding", "DateType"),
        *("DecimalType", "DoubleType", "Int128", "IntegerType", "LongTimestamp"),
        *("LongTimestampWithTimeZone", "MapType", "RealType", "RowType", "SmallintType"),
        *("TimeType", "TimeZoneKey", "TimestampType", "TimestampWithTimeZoneType", "TinyintType"),
        *("Type", "UuidType", "VarbinaryType", "VarcharType"),
    ),
    "io.trino.split": ("RecordPageSourceProvider",),
    "io.trino.testing": ("TestingConnectorContext", "TestingConnectorSession"),
    "io.trino.type": ("JsonType",),
    "org.junit.jupiter.api": ("Test",),
    "org.junit.jupiter.api.io": ("TempDir",),
}
_ASSERTIONS: Final = ("assertEquals", "assertThrows")


def _imports(text: str) -> tuple[list[list[str]], list[str]]:
    # Words in texts and comments do not need imports.
    code = re.sub(r'"(?:[^"\\]|\\.)*"|/\*.*?\*/|//[^\n]*', "", text, flags=re.DOTALL)
    words = set(re.findall(r"(?<![\w.])[A-Za-z]\w*", code))
    names = [
        f"{package}.{name}"
        for package, classes in _CLASSES.items()
        for name in classes
        if name in words
    ]
    java = sorted(name for name in names if name.startswith("java."))
    others = sorted(name for name in names if not name.startswith("java."))
    return [others, java], [
        f"org.junit.jupiter.api.Assertions.{name}" for name in _ASSERTIONS if name in words
    ]
