"""Files of saved traces: private, complete or missing; any content opens as a trace or is refused in one sentence."""

from __future__ import annotations

import base64
import copy
import json
import os
import random
import re
from contextlib import suppress
from dataclasses import replace
from operator import attrgetter
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import pytest

from rowmerge_nb import RowMergeError, load_trace, save_trace
from rowmerge_nb.base.choices import Flow, RepeatedMatches, StatementState, TraceLevel
from rowmerge_nb.report.bundle import mime_bundle
from rowmerge_nb.report.html import render_page
from rowmerge_nb.trace.saved import files as module
from rowmerge_nb.trace.saved.traces import FORMAT
from rowmerge_nb.trace.trace import Trace
from tests.report.building import merge_trace
from tests.report.cases import CASES
from tests.report.traces import duplicate_trace, hostile_trace
from tests.trace.parts import with_parts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from enum import StrEnum
    from pathlib import Path

    from rowmerge_nb.trace.node_records import NodeFacts


MUTATIONS = 400


def refused(path: Any) -> str:
    with pytest.raises(RowMergeError) as caught:
        load_trace(path)
    assert type(caught.value) is RowMergeError
    assert caught.value.code == "INVALID_ARGUMENTS"
    assert "save_trace" in caught.value.hint or "Give a path" in caught.value.hint
    return caught.value.message


def content_of(trace: Trace, path: Path) -> Any:
    save_trace(trace, path)
    return json.loads(path.read_bytes())


@pytest.mark.parametrize("name", CASES)
def test_a_saved_trace_is_the_trace(name: str, tmp_path: Path) -> None:
    trace = CASES[name]()
    save_trace(trace, tmp_path / "trace.json")
    assert mime_bundle(load_trace(tmp_path / "trace.json")) == mime_bundle(trace)


def test_only_its_owner_may_read_it_even_if_the_former_file_was_public(
    tmp_path: Path,
) -> None:
    path, link = tmp_path / "trace.json", tmp_path / "link.json"
    path.write_text("old")
    path.chmod(0o666)
    link.symlink_to(path)
    before = os.umask(0)
    try:
        save_trace(merge_trace(), link)
    finally:
        os.umask(before)
    assert path.stat().st_mode & 0o777 == 0o600
    assert link.is_symlink()
    assert load_trace(link) == merge_trace()
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["link.json", "trace.json"]


@pytest.mark.parametrize("step", ["fsync", "write"])
def test_a_disk_that_is_full_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    path = tmp_path / "trace.json"
    save_trace(merge_trace(), path)

    class Full:
        def __init__(self, number: int, mode: str) -> None:
            os.close(number)

        def __enter__(self) -> Any:
            raise OSError(28, "No space left on device")

        def __exit__(self, *_: object) -> None: ...

    def full(number: int) -> None:
        raise OSError(28, "No space left on device")

    if step == "write":
        monkeypatch.setattr(module.os, "fdopen", Full)
    else:
        monkeypatch.setattr(module.os, "fsync", full)
    with pytest.raises(RowMergeError) as caught:
        save_trace(duplicate_trace(), path)
    monkeypatch.undo()
    assert caught.value.code == "GENERIC_INSUFFICIENT_RESOURCES"
    assert load_trace(path) == merge_trace()
    assert [entry.name for entry in tmp_path.iterdir()] == ["trace.json"]


def test_traces_that_cannot_be_saved_are_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    trace = merge_trace()
    for path in (tmp_path, tmp_path / "pipe", tmp_path / "no" / "such", "a\0b", 3, None):
        with pytest.raises(RowMergeError) as caught:
            save_trace(trace, path)  # type: ignore[arg-type]
        assert caught.value.code == "INVALID_ARGUMENTS"
        assert caught.value.hint
    with pytest.raises(RowMergeError, match="A value of type dict is not a trace") as caught:
        save_trace({}, tmp_path / "x.json")  # type: ignore[arg-type]
    assert caught.value.hint == "Give result.trace."
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["pipe"]


def test_half_a_character_survives(tmp_path: Path) -> None:
    trace = replace(merge_trace(), statement="MERGE '\ud83d'")
    save_trace(trace, tmp_path / "trace.json")
    assert load_trace(tmp_path / "trace.json") == trace
    assert "\\ud83d" in render_page([trace], "page").encode().decode()
    assert all(text.encode() for text in mime_bundle(trace).values())


def test_a_path_that_is_not_a_file_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe", "/dev/zero", tmp_path / "missing", "a\0b", None, 7):
        refused(path)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "is not a trace"),
        (b"\xff\xfe\x00", "is not a trace"),
        (b"[" * 200_000, "nested too deeply"),
        (b'{"a": ' * 50_000, "nested too deeply"),
        (b"[]", "is not a trace"),
        (b'{"format": "x"}', "is not a trace"),
        (b'{"rowmerge_nb trace 99": {}}', "of the format 'rowmerge_nb trace 99'"),
        (b'{"rowmerge_nb trace 1": {}}', "$: an object is not a Trace"),
        (b'{"rowmerge_nb trace 1": 1' + b"0" * 5000 + b"}", "is not a trace"),
        (
            b'{"rowmerge_nb trace 1": {"is": "NodeRecord", "fields": {}}}',
            "$: a NodeRecord is not a Trace",
        ),
    ],
)
def test_other_content_is_reported(tmp_path: Path, content: bytes, told: str) -> None:
    (tmp_path / "x.json").write_bytes(content)
    assert told in refused(tmp_path / "x.json")


def changed(content: Any, place: str, value: Any) -> None:
    """Set a value at a path within a saved trace."""
    *way, last = re.findall(r"\w+", place)
    here = content[FORMAT]
    for step in way:
        here = here["items"][int(step)] if step.isdigit() else here["fields"][step]
    (here["items"] if last.isdigit() else here["fields"]).__setitem__(
        int(last) if last.isdigit() else last, value
    )


@pytest.mark.parametrize(
    ("place", "value", "told"),
    [
        ("count", "7", "$.count: '7' is not an integer"),
        ("count", True, "$.count: True is not an integer"),
        ("count", 2**63, "$.count: 9223372036854775808 is not an integer"),
        ("count", 1.5, "$.count: 1.5 is not an integer"),
        ("committed", 1, "$.committed: 1 is not a truth value"),
        ("statement", None, "$.statement: None is not a text"),
        ("clauses[1].rows", [], "$.clauses[1].rows: a list is not an integer"),
        (
            "clauses[1].operation",
            {"is": "Operation", "value": 77},
            "$.clauses[1].operation: 77 is not the number",
        ),
        (
            "clauses[0]",
            {"is": "WriterRecord", "fields": {}},
            "$.clauses[0]: a WriterRecord is not a ClauseRecord",
        ),
        ("calls[0].seconds", float("nan"), "$.calls[0].seconds: nan is not a number"),
        ("writers", {"is": "mapping", "items": []}, "$.writers: a mapping is not a tuple"),
        (
            "samples.pages.before",
            {"is": "page", "arrow": "AAAA"},
            "$.samples.pages.before: it holds no page",
        ),
        (
            "samples.pages.before",
            {"is": "page", "arrow": "?"},
            "$.samples.pages.before: it holds no page",
        ),
        (
            "samples.pages.layout.column_count",
            2,
            "$.samples.pages.layout.redistribution_columns: [2] are not columns",
        ),
        (
            "samples.pages.layout.column_count",
            2**62,
            "$.samples.pages.layout.column_count: 4611686018427387904 is not a number of columns",
        ),
        (
            "samples.pages.layout.redistribution_columns[0]",
            3,
            "$.samples.pages.layout.redistribution_columns: [3] are not columns of the table",
        ),
        (
            "samples.pages.layout.era",
            "current",
            "$.samples.pages.layout: it is one of 7 channels, and there are 6",
        ),
        (
            "samples.pages.layout.era",
            "bronze",
            "$.samples.pages.layout.era: 'bronze' is none of documents, current",
        ),
        (
            "samples.pages.transformed",
            False,
            "$.samples.pages.transformed: the pages before and after have other channels",
        ),
        (
            "samples.stored_pages[0].layout.column_count",
            -1,
            "$.samples.stored_pages[0].layout.column_count: -1 is not a number of columns",
        ),
        (
            "samples.pages.produced",
            {"is": "tuple", "items": [1]},
            "$.samples.pages.produced: it describes 1 rows",
        ),
        ("plan[0].sources[0]", "none", "$.plan[0].sources[0]: 'none' is not a node below it"),
        ("plan[1].sources[0]", "1", "is not a node below it"),
        ("rows", {"is": "mapping", "items": [["1", 1, 2]]}, "$.rows: an entry is not a pair"),
        (
            "plan[5].facts",
            {"is": "Facts", "fields": {}},
            "$.plan[5].facts: a Facts is none of ScanFacts, QueryFacts, ProjectFacts",
        ),
        ("plan[5].facts", 3, "$.plan[5].facts: 3 is none of ScanFacts"),
        ("more", 1, "$.more: no entry of this name is allowed there"),
    ],
)
def test_the_position_of_an_error_is_reported(
    tmp_path: Path, place: str, value: Any, told: str
) -> None:
    content = content_of(merge_trace(), tmp_path / "x.json")
    changed(content, place, value)
    (tmp_path / "x.json").write_text(json.dumps(content))
    assert told in refused(tmp_path / "x.json")


def test_a_missing_field_is_reported(tmp_path: Path) -> None:
    content = content_of(merge_trace(), tmp_path / "x.json")
    del content[FORMAT]["fields"]["clauses"]["items"][2]["fields"]["rows"]
    (tmp_path / "x.json").write_text(json.dumps(content))
    assert "$.clauses[2].rows: it is missing" in refused(tmp_path / "x.json")


def test_values_of_rows_are_bounded_in_depth(tmp_path: Path) -> None:
    content = content_of(duplicate_trace(), tmp_path / "x.json")
    deep: Any = 1
    for _ in range(100):
        deep = {"is": "tuple", "items": [deep]}
    changed(content, "join.duplicate_groups[0].row_id", deep)
    (tmp_path / "x.json").write_text(json.dumps(content))
    assert "nested deeper than 64 levels" in refused(tmp_path / "x.json")


def places(value: Any, way: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if way:
        yield way
    if isinstance(value, dict | list):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield from places(value[key], (*way, key))


def at(value: Any, way: tuple[Any, ...]) -> Any:
    for step in way:
        value = value[step]
    return value


ODD = [
    *(
        None,
        True,
        0,
        -1,
        3.5,
        1e308,
        float("nan"),
        float("-inf"),
        2**80,
        -(2**63),
        "",
        "x",
        "<b>&\"'\\N\\",
        "\ud800",
        [],
        {},
        [1],
    ),
    *({"is": tag, "items": []} for tag in ("tuple", "mapping")),
    *({"is": "Operation", "value": value} for value in (0, 77, None)),
    *({"is": "mapping", "items": [[key, 2]]} for key in (1, None, {"is": "tuple", "items": [1]})),
    *({"is": kind, "fields": {}} for kind in ("Trace", "Call", "ErrorRecord")),
    *({"is": "page", "arrow": value} for value in ("", "////", 3)),
    {"is": "value", "page": None},
]


def mutated(content: Any, draw: random.Random) -> None:
    """Change a saved trace at one point: a value, a key, an order, bytes of Arrow data."""
    ways = list(places(content))
    way = draw.choice(ways)
    parent, step = at(content, way[:-1]), way[-1]
    value = parent[step]
    how = draw.randrange(6)
    if how == 0:
        del parent[step]
    elif how == 1:
        parent[step] = copy.deepcopy(at(content, draw.choice(ways)))
    elif how == 2 and isinstance(parent, list):
        parent.insert(step, copy.deepcopy(value))
    elif how == 2:
        parent["extra"] = 1
    elif how == 3 and isinstance(value, str) and len(value) > 100:
        with suppress(ValueError):
            data = bytearray(base64.b64decode(value))
            for _ in range(draw.choice([1, 3, 10])):
                data[draw.randrange(len(data))] = draw.randrange(256)
            parent[step] = base64.b64encode(
                bytes(data[: draw.choice([len(data), len(data) // 2])])
            ).decode()
    else:
        parent[step] = draw.choice(ODD)


@pytest.mark.parametrize(
    "make",
    [merge_trace, duplicate_trace, hostile_trace, CASES["update_updatable"], CASES["insert"]],
)
def test_a_file_with_any_change_is_refused_by_our_error_or_can_be_drawn(
    tmp_path: Path, make: Callable[[], Trace]
) -> None:
    path, draw = tmp_path / "x.json", random.Random(7)
    content = content_of(make(), path)
    opened = 0
    for _ in range(MUTATIONS // 5):
        damaged = copy.deepcopy(content)
        for _ in range(draw.choice([1, 1, 2])):
            with suppress(KeyError, IndexError, TypeError):
                mutated(damaged, draw)
        path.write_text(json.dumps(damaged))
        with suppress(RowMergeError):
            trace = load_trace(path)
            opened += 1
            assert all(text.encode() for text in mime_bundle(trace).values())
    assert opened < MUTATIONS // 5


def test_a_file_that_is_cut_off_or_has_other_bytes_is_refused_or_opens(tmp_path: Path) -> None:
    path, draw = tmp_path / "x.json", random.Random(3)
    save_trace(merge_trace(), path)
    whole = path.read_bytes()
    for _ in range(60):
        data = bytearray(whole[: draw.randrange(len(whole))] if draw.random() < 0.5 else whole)
        for _ in range(draw.choice([0, 1, 5])):
            if data:
                data[draw.randrange(len(data))] = draw.randrange(256)
        path.write_bytes(data)
        with suppress(RowMergeError):
            mime_bundle(load_trace(path))


HOSTILE = (
    *(
        "\\N\\G\\L",
        '"quotes" \\',
        "<b>x</b>&amp;",
        "a\nb\x00\x01\x0b",
        "\ufffe\uffff",
        "\ud800",
        "</TABLE>>",
        "<<TABLE",
        "-->",
        "]]>",
        "a:b",
    ),
    *(
        '<TD BGCOLOR="#0a0000"></TD>',
        "<BR/>",
        "</FONT>",
        "{}|",
        "&#x41;",
        "\\",
        "🎉",
        "<script>alert(1)</script>",
    ),
)


def with_text(facts: NodeFacts | None, text: str) -> Any:
    """Return facts of a node with another text in all their texts."""
    if facts is None:
        return None
    changes = {
        name: (text,) if isinstance(value, tuple) else text
        for name, value in vars(facts).items()
        if type(value) in {str, tuple}
    }
    return replace(facts, **changes)


@pytest.mark.parametrize("text", HOSTILE)
def test_no_text_of_a_trace_breaks_out_of_drawings_and_pages(text: str) -> None:
    trace = merge_trace()
    plan = tuple(
        replace(
            record,
            id=record.id + text,
            sources=tuple(source + text for source in record.sources),
            name=text,
            arguments=text,
            details=(text,),
            meaning=text,
            layout=((text, text),) * len(record.layout),
            trino=text,
            facts=with_text(record.facts, text),
        )
        for record in trace.plan
    )
    rows = {key + text: value for key, value in trace.rows.items()}
    names = dict.fromkeys(("name", "qualified_name", "connector", "catalog"), text)
    hostile = with_parts(trace, statement=text, target=names, plan=plan, rows=rows)
    html = mime_bundle(hostile)["text/html"]
    drawings = re.findall(r"<svg.*?</svg>", html, re.DOTALL)
    assert len(drawings) == 2
    expected = [element.tag for element in ET.fromstring(drawings[0]).iter()]
    assert "script" not in " ".join(expected)
    assert "<script" not in html


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("state", StatementState),
        ("settings.flow", Flow),
        ("settings.duplicates", RepeatedMatches),
        ("settings.trace_level", TraceLevel),
    ],
)
def test_words_are_plain_texts_in_the_file_and_an_unknown_one_is_refused(
    name: str, words: type[StrEnum], tmp_path: Path
) -> None:
    path = tmp_path / "trace.json"
    content = content_of(merge_trace(), path)
    value = attrgetter(name)(load_trace(path))
    assert type(value) is words
    assert f'"{name.rsplit(".", maxsplit=1)[-1]}": "{value}"' in path.read_text()
    changed(content, name, "sideways")
    path.write_text(json.dumps(content))
    assert f"$.{name}: 'sideways' is none of {', '.join(words)}" in refused(path)
