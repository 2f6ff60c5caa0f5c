"""A replay as a self-contained test: of pytest, or of JUnit for a plugin of Trino."""

from __future__ import annotations

import datetime as dt
import decimal
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rowmerge_nb.base.arguments import checked, checked_path
from rowmerge_nb.base.choices import Flow
from rowmerge_nb.base.errors import RowMergeError, error_text
from rowmerge_nb.base.words import number as written_number
from rowmerge_nb.replays.case import case
from rowmerge_nb.replays.origin import ReplayOrigin
from rowmerge_nb.replays.rows import NamedRows
from rowmerge_nb.replays.shown import headline
from rowmerge_nb.spi.operations import Era, Operation
from rowmerge_nb.spi.values import python_values

if TYPE_CHECKING:
    from rowmerge_nb.replays.run import Replay
    from rowmerge_nb.trace.record import HandedPage, Record

MOST_ROWS: Final = 1_000
"""The maximum number of rows in a file, for readability."""


def write_test(
    result: Replay,
    path: str | Path,
    connector: str | None,
    make_table: str | None,
    *,
    expect_error: bool,
) -> Path:
    file = Path(checked_path(path, "path"))
    checked(expect_error, "expect_error", bool, "True or False")
    _check_file(file)
    if expect_error and result.error is None:
        raise RowMergeError.invalid(
            "No call failed in this replay, so a test cannot expect its error",
            hint="Omit expect_error.",
        )
    if file.suffix == ".java":
        text = _java_text(result, file, connector, make_table, expect_error=expect_error)
    else:
        maker = _maker(result, make_table)
        text = _text(result, _reference(result, connector), maker, expect_error=expect_error)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("x", encoding="utf-8") as output:
            output.write(text)
    except OSError as error:
        raise RowMergeError.invalid(
            f"The test cannot be written as '{file}': {error.strerror or error}"
            f" ('{error.filename}')",
            hint="Name a file in a folder that you may write to.",
        ) from error
    return file


def _check_file(file: Path) -> None:
    if file.suffix not in {".py", ".java"} or file.is_dir():
        raise RowMergeError.invalid(
            f"'{file}' is not the name of a Python or Java file",
            hint="Name a file such as 'test_shop.py' for pytest, or 'TestShop.java' for JUnit 5.",
        )
    if file.exists():
        raise RowMergeError.invalid(
            f"'{file}' already exists, and to_test does not overwrite files",
            hint="Remove the file, or give the test another name.",
        )


def _java_text(
    result: Replay,
    file: Path,
    connector: str | None,
    make_table: str | None,
    *,
    expect_error: bool,
) -> str:
    for name, value in (("connector", connector), ("make_table", make_table)):
        if value is not None:
            raise RowMergeError.invalid(
                f"{name} = {value!r} names Python code, which a test in Java cannot call",
                hint=f"Omit {name}.",
            )
    # Few replays are written as a test in Java.
    from rowmerge_nb.replays.java_test import write_java_test

    return write_java_test(result, file, expect_error=expect_error)


def _reference(result: Replay, connector: str | None) -> str:
    if connector is not None:
        origin = ReplayOrigin.of(connector)
        if not origin.is_own:
            raise RowMergeError.invalid(
                f"connector = {connector!r} is a connector, which every run of the"
                " test would change",
                hint="Pass a class that creates one, or a function without arguments.",
            )
        return connector
    reference = result.origin.reference
    if reference is None:
        raise RowMergeError.invalid(
            f"A file cannot import {result.origin.name}: it is a connector itself, or was defined"
            " in a notebook or within a function",
            hint=(
                "Put the connector's code into a file, such as shop.py, with a"
                " function `def make_connector(): return ShopConnector()`, and pass"
                " connector='shop:make_connector'."
            ),
        )
    return reference


def _maker(result: Replay, make_table: str | None) -> str | None:
    if result.make_table is None or make_table is not None:
        return make_table
    module = getattr(result.make_table, "__module__", "__main__")
    name = getattr(result.make_table, "__qualname__", "")
    if module == "__main__" or not name.isidentifier():
        raise RowMergeError.invalid(
            "A file cannot import make_table: it was defined in a notebook or within a function",
            hint="Put it into a file, such as shop.py, and pass make_table='shop:make_table'.",
        )
    return f"{module}:{name}"


def replayed_record(result: Replay) -> Record:
    pages = tuple(page for page in result.record.pages if page.number in result.numbers)
    return replace(result.record, pages=pages)


def _text(result: Replay, connector: str, make_table: str | None, *, expect_error: bool) -> str:
    record = replayed_record(result)
    count = record.page_rows + (record.rows.num_rows if record.rows is not None else 0)
    if count > MOST_ROWS:
        raise RowMergeError.invalid(
            f"A test with {written_number(count)} rows is too large",
            hint="Shrink the replay first: replay.shrink().to_test(...).",
        )
    lines = list(_case_lines(record))
    _check("\n".join(lines), record)
    literals = "\n".join(lines)
    uses = [
        name
        for name, mark in (("datetime", "datetime."), ("decimal", "decimal."))
        if mark in literals
    ]
    imports = [f"import {name}" for name in uses]
    names = dict.fromkeys(
        reference for reference in (connector, make_table) if reference is not None
    )
    ours = [
        f"from {reference.partition(':')[0]} import {reference.partition(':')[2]}"
        for reference in names
    ]
    name = connector.partition(":")[2]
    argument = "" if make_table is None else f", make_table={make_table.partition(':')[2]}"
    arguments = f"{name}{argument}" + (
        f", call={_literal(result.call)}" if not result.call.startswith("finish_") else ""
    )
    test, claim = ("rows_that_are_left_are_those_that_must_be", "done.agrees")
    if expect_error:
        test = f"{result.step or 'replay'}_refuses_these_rows"
        claim = (
            f"(done.step, type(done.error).__name__) == ({_literal(result.step)},"
            f" {_literal(type(result.error).__name__)})"
        )
    elif result.error is not None:
        test, claim = f"{result.step or 'replay'}_takes_these_rows", "not done.failed"
    return "\n".join(
        [
            f'"""{_quoted(headline(result))}."""',
            "",
            *(f"{line}" for line in imports),
            *([""] if imports else []),
            "from rowmerge_nb.replays import case, replay",
            "",
            *ours,
            "",
            *lines,
            "",
            "",
            f"def test_{test}():",
            f"    done = replay(CASE, {arguments})",
            f"    assert {claim}, done",
            "",
        ]
    )


def _quoted(sentence: str) -> str:
    first = " ".join(sentence.split())
    return first.replace("\\", "\\\\").replace('"""', "'''").rstrip('."')


def _case_lines(record: Record) -> Iterator[str]:
    yield "CASE = case("
    for name, value in _arguments(record).items():
        yield f"    {name}={_literal(value)},"
    rows = [f"        {_literal(row)}," for row in target_rows(record)]
    yield from ["    rows=[", *rows, "    ],"] if rows else ["    rows=[],"]
    yield "    pages=["
    for handed_page in record.pages:
        yield f"        ({handed_page.number}, [  # {record.worker} {handed_page.number}"
        for row in page_rows(record, handed_page):
            yield f"            {_literal(row)},"
        yield "        ]),"
    yield "    ],"
    yield ")"


def _arguments(record: Record) -> dict[str, Any]:
    session = dict(record.session)
    arguments = {
        "kind": "INSERT" if record.row_id is None else record.kind,
        "table": ".".join(record.name[1:]),
        "columns": {column.name: column.type for column in record.columns},
        "not_null": [column.name for column in record.columns if not column.nullable],
        "properties": {
            name: list(v) if isinstance(v, tuple) else v
            for name, v in record.properties.items()
            if v not in (None, ())
        },
        "session": {} if session == {"era": str(Era.DOCUMENTS)} else session,
        "redistribution": record.redistribution,
        "flow": str(record.flow),
        "updated": (
            dict(record.updated)
            if record.flow is Flow.UPDATABLE or record.era is Era.CURRENT
            else {}
        ),
        "channels": record.channels,
    }
    defaults = {"kind": "MERGE", "flow": str(Flow.MERGE)}
    return {
        name: value
        for name, value in arguments.items()
        if value not in (defaults.get(name), [], {}, ())
    }


def target_rows(record: Record) -> list[tuple[Any, ...]]:
    if record.rows is None:
        return []
    return list(zip(*map(python_values, record.rows.columns[: len(record.columns)]), strict=True))


def page_rows(record: Record, handed_page: HandedPage) -> list[tuple[Any, ...]]:
    page, indexes = handed_page.page, NamedRows(record).of(handed_page.page).tolist()
    targets = [target if target >= 0 else None for target in indexes]
    channels = [python_values(column) for column in page.columns]
    if record.row_id is None:
        return [("INSERT", None, values) for values in zip(*channels, strict=True)]
    if record.flow is Flow.UPDATABLE:
        operation = "UPDATE" if record.channels else "DELETE"
        others = list(zip(*channels[1:], strict=True)) or [()] * page.num_rows
        return [(operation, target, values) for target, values in zip(targets, others, strict=True)]
    after, count = record.layout.after, len(record.columns)
    operations = [Operation(value).name for value in channels[after.operation]]
    values = list(zip(*channels[:count], strict=True))
    if after.case_number is None:
        return list(zip(operations, targets, values, strict=True))
    return list(zip(operations, targets, values, channels[after.case_number], strict=True))


def _literal(value: Any) -> str:
    """Format a value as Python.

    >>> _literal((1, float("nan"), {"a": [None, "b"]}))
    '(1, float("nan"), {"a": [None, "b"]})'
    """
    if isinstance(value, float) and not math.isfinite(value):
        return f'float("{value}")'
    if isinstance(value, tuple):
        return f"({', '.join(map(_literal, value))}{',' if len(value) == 1 else ''})"
    if isinstance(value, list):
        return f"[{', '.join(map(_literal, value))}]"
    if isinstance(value, dict):
        return (
            f"{{{', '.join(f'{_literal(key)}: {_literal(item)}' for key, item in value.items())}}}"
        )
    if isinstance(value, decimal.Decimal):
        return f"decimal.{value!r}"
    if isinstance(value, dt.datetime) and value.tzinfo is not None:
        return repr(value.astimezone(dt.UTC)).replace(
            "tzinfo=datetime.timezone.utc", "tzinfo=datetime.UTC"
        )
    literal = repr(value)
    # In double quotes, as formatters prefer, unless it contains some.
    return (
        f'"{literal[1:-1]}"'
        if isinstance(value, str) and literal[0] == "'" and '"' not in value
        else literal
    )


def _check(literal: str, record: Record) -> None:
    try:
        # The output of `_literal`: literals, and calls of datetime and decimal.
        scope: dict[str, Any] = {"case": case, "datetime": dt, "decimal": decimal}
        exec(literal, scope)  # noqa: S102 - as above
        same = _same(scope["CASE"], record)
        wrong = "its values differ when they are read back"
    except Exception as error:  # noqa: BLE001 - reported below
        same, wrong = False, error_text(error)
    if not same:
        raise RowMergeError.invalid(
            f"The rows of this replay cannot be written into a file: {wrong}",
            hint="Save the record, and replay it in your own test: replay(path, ...).",
        )


def _same(evaluated: Record, record: Record) -> bool:
    if [page.number for page in evaluated.pages] != [page.number for page in record.pages]:
        return False
    pairs: list[tuple[Sequence[Any], Sequence[Any]]] = [
        (target_rows(evaluated), target_rows(record))
    ]
    pairs += [
        (page_rows(evaluated, one), page_rows(record, other))
        for one, other in zip(evaluated.pages, record.pages, strict=True)
    ]
    return all(_literal(tuple(one)) == _literal(tuple(other)) for one, other in pairs)
