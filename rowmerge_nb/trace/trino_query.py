"""Trino's record of a query (``/v1/query/<id>``): its plan and row counts."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NoReturn, TypeVar

from rowmerge_nb.base.errors import RowMergeError
from rowmerge_nb.base.words import TRINO_VERSION
from rowmerge_nb.trace.saved.bounds import Budget, UnfoldsTooFar
from rowmerge_nb.trace.saved.files import read_file

T = TypeVar("T")

HELPERS: Final = (
    "Exchange",
    "LocalExchangeSink",
    "TaskOutput",
    "PartitionedOutput",
    "HashBuilder",
    "NestedLoopBuild",
    "SetBuilder",
    "DynamicFilterSource",
    "DevNull",
)
"""Operators that build for, or exchange rows of, another operator: their rows are counted there as
well.
"""
NEXT_STEP: Final = (
    "Save the whole answer of GET /v1/query/<id>, without ?pruned=true, once the"
    f" query has ended; the expected format is that of {TRINO_VERSION}."
)


@dataclass(frozen=True)
class TrinoOperator:
    """An operator of a stage, summed over its tasks and drivers."""

    type: str
    rows_in: int
    rows_out: int

    @property
    def helps(self) -> bool:
        """Whether it builds, sends or receives for another operator.

        >>> TrinoOperator("HashBuilderOperator", 5, 5).helps, TrinoOperator("LookupJoinOperator", 6, 6).helps
        (True, False)
        """
        return self.type.removesuffix("Operator") in HELPERS


@dataclass(frozen=True)
class TrinoNode:
    """A plan node as EXPLAIN names it, with its operators.

    Args:
        sources: the nodes below; for a RemoteSource, the roots of its stages.
    """

    id: str
    name: str
    descriptor: Mapping[str, str]
    details: tuple[str, ...]
    outputs: tuple[str, ...]
    sources: tuple[TrinoNode, ...]
    operators: tuple[TrinoOperator, ...]

    @property
    def rows_in(self) -> int | None:
        """Input rows of the working operator (the probe side of a join), or None if not counted."""
        working = [operator for operator in self.operators if not operator.helps]
        return working[0].rows_in if working else None

    @property
    def rows_out(self) -> int | None:
        working = [operator for operator in self.operators if not operator.helps]
        if not working:
            return None
        # The unmatched build rows of an outer join leave through an operator of their own.
        outer = sum(
            operator.rows_out for operator in working[1:] if operator.type == "LookupOuterOperator"
        )
        return working[-1].rows_out if not outer else working[0].rows_out + outer

    def walk(self) -> Iterator[TrinoNode]:
        todo = [self]
        while todo:
            node = todo.pop()
            yield node
            todo += reversed(node.sources)


@dataclass(frozen=True)
class TrinoQuery:
    """A query that ran on Trino."""

    id: str
    statement: str
    kind: str
    state: str
    error: str
    version: str
    plan: TrinoNode

    @property
    def table(self) -> str:
        """The written table without version: ``iceberg:demo.accounts``; ``""`` if unnamed."""
        writers = [node for node in self.plan.walk() if node.name == "MergeWriter"]
        return table_of(writers[0]) if writers else ""

    def __repr__(self) -> str:
        return (
            f"TrinoQuery({self.id}, {self.kind} {self.table}, {self.state},"
            f" {sum(1 for _ in self.plan.walk())} nodes)"
        )


def table_of(node: TrinoNode) -> str:
    """Return the table of a node without version and suffix: ``iceberg:demo.t$data@79`` is
    ``iceberg:demo.t``.
    """
    return re.sub(r"(\$data)?(@\d+)?$", "", node.descriptor.get("table", ""))


def trino_query(source: Any) -> TrinoQuery:
    """Read the JSON of an ended query, the response of Trino's coordinator to
    ``GET /v1/query/<id>``.

    `Result.beside_trino` compares it with our run of the same statement. No server is contacted.

    Args:
        source: the path of a JSON file; or the JSON as text, bytes, or a dict.

    Raises:
        RowMergeError: NOT_FOUND if the file does not exist; INVALID_ARGUMENTS if the content is
            incomplete, or no MERGE, UPDATE or DELETE.

    >>> trino_query("{}")
    Traceback (most recent call last):
    rowmerge_nb.base.errors.RowMergeError: INVALID_ARGUMENTS: This is not the JSON of a query: it has no 'queryId'. Save the whole answer ...
    """
    try:
        query = _loaded(source)
        if not isinstance(query, dict):
            _refuse(f"This is not the JSON of a query: it is {_kind(query)}")
        if "queryId" not in query:
            _refuse("This is not the JSON of a query: it has no 'queryId'")
        query_type = _part(query, "queryType", str, "the query", default="")
        update = str(query.get("updateType") or query_type)
        if update not in {"MERGE", "UPDATE", "DELETE"}:
            _refuse(
                f"The query is of type {update or 'unknown'}, which has no plan to compare here",
                "Only MERGE, UPDATE and DELETE can be compared.",
            )
        stages = _stages(query)
        version = query.get("version")
        error = query.get("errorCode")
        return TrinoQuery(
            id=_part(query, "queryId", str, "the query"),
            statement=_part(query, "query", str, "the query"),
            kind=update,
            state=_part(query, "state", str, "the query"),
            error=str(error.get("name", "")) if isinstance(error, dict) else "",
            version=str(version.get("version", "")) if isinstance(version, dict) else "",
            plan=_plan(stages),
        )
    except RecursionError:
        _refuse("The JSON is nested deeper than any plan")


def _loaded(source: Any) -> Any:
    if isinstance(source, dict):
        return source
    if isinstance(source, bytes | bytearray):
        return _parsed(bytes(source), Budget(len(source)))
    if isinstance(source, str) and source.lstrip()[:1] in {"{", "["}:
        return _parsed(source.encode("utf-8", errors="replace"), Budget(len(source)))
    if not isinstance(source, str | Path) or not str(source).strip():
        _refuse(
            f"A query's JSON is {_kind(source)}, which is not possible",
            "Give the path of a file, or the JSON itself.",
        )
    path = Path(source).expanduser()
    try:
        content, budget = read_file(path)
    except FileNotFoundError:
        raise RowMergeError(f"There is no file {path}", code="NOT_FOUND", hint=NEXT_STEP) from None
    except (OSError, ValueError, UnfoldsTooFar) as error:
        raise RowMergeError.invalid(
            f"The file {path} cannot be read: {error}",
            hint="Give the path of a file with the JSON.",
        ) from None
    return _parsed(content, budget)


def _parsed(content: bytes, budget: Budget) -> Any:
    try:
        budget.take_json(content)
        return json.loads(content.decode("utf-8", errors="replace"))
    except UnfoldsTooFar as error:
        _refuse(f"This JSON is no plan: {error}")
    except ValueError as error:
        _refuse(f"This is no JSON: {error}")


def _stages(query: dict[str, Any]) -> list[dict[str, Any]]:
    if query.get("outputStage") is not None:
        # Before Trino 477 stages contain the stages that they read.
        return _nested_stages(_part(query, "outputStage", dict, "the query"))
    if query.get("stages") is None:
        pruned = ": it was pruned" if query.get("pruned") else ""
        _refuse(f"The JSON has no 'stages'{pruned}")
    graph = _part(query, "stages", dict, "the query")
    stages = _part(graph, "stages", list, "'stages'")
    if not stages or not all(isinstance(each, dict) for each in stages):
        _refuse("'stages' of the query are not stages")
    first = _part(graph, "outputStageId", str, "'stages'")
    if all(each.get("stageId") != first for each in stages):
        _refuse(f"The query has no stage {first}, which is its 'outputStageId'")
    return sorted(stages, key=lambda stage: stage.get("stageId") != first)


def _nested_stages(root: dict[str, Any]) -> list[dict[str, Any]]:
    stages, todo = [], [root]
    while todo:
        stage = todo.pop()
        stages.append(stage)
        below = _part(stage, "subStages", list, "a stage", default=[])
        if not all(isinstance(each, dict) for each in below):
            _refuse("'subStages' of a stage are not stages")
        todo += reversed(below)
    return stages


def _plan(stages: list[dict[str, Any]]) -> TrinoNode:
    fragments: dict[str, tuple[dict[str, Any], dict[str, list[TrinoOperator]]]] = {}
    for stage in stages:
        plan = _part(stage, "plan", dict, "a stage")
        name = str(plan.get("id", ""))
        try:
            tree = json.loads(_part(plan, "jsonRepresentation", str, f"the plan of stage {name}"))
        except ValueError:
            _refuse(f"'jsonRepresentation' of the plan of stage {name} is not JSON")
        if name in fragments:
            _refuse(f"Two stages have the plan {name}")
        fragments[name] = (tree, _operators(stage, name))
    visited: set[str] = set()

    def node(content: Any, name: str) -> TrinoNode:
        if not isinstance(content, dict):
            _refuse(f"A node of the plan of stage {name} is {_kind(content)}")
        where = f"a node of stage {name}"
        identity = _part(content, "id", str, where)
        descriptor = {
            str(k): str(v) for k, v in _part(content, "descriptor", dict, where, default={}).items()
        }
        sources = [
            node(child, name) for child in _part(content, "children", list, where, default=[])
        ]
        remote = re.findall(r"[\w.]+", descriptor.get("sourceFragmentIds", ""))
        sources += [fragment(each) for each in remote if each in fragments]
        return TrinoNode(
            identity,
            _part(content, "name", str, where),
            descriptor,
            tuple(map(str, _part(content, "details", list, where, default=[]))),
            tuple(
                str(each["name"])
                for each in _part(content, "outputs", list, where, default=[])
                if isinstance(each, dict) and "name" in each
            ),
            tuple(sources),
            tuple(fragments[name][1].get(identity, ())),
        )

    def fragment(name: str) -> TrinoNode:
        if name in visited:
            _refuse(f"The rows of stage {name} go to two stages, or to itself")
        visited.add(name)
        return node(fragments[name][0], name)

    return fragment(next(iter(fragments)))


def _operators(stage: dict[str, Any], name: str) -> dict[str, list[TrinoOperator]]:
    stats = _part(stage, "stageStats", dict, f"stage {name}")
    summaries = _part(stats, "operatorSummaries", list, f"the statistics of stage {name}")
    where = f"an operator of stage {name}"
    if not all(isinstance(each, dict) for each in summaries):
        _refuse(f"'operatorSummaries' of stage {name} are not operators")
    sums: dict[tuple[str, str], tuple[int, int]] = {}
    for each in sorted(
        summaries,
        key=lambda one: (
            _part(one, "pipelineId", int, where),
            _part(one, "operatorId", int, where),
        ),
    ):
        key = (_part(each, "planNodeId", str, where), _part(each, "operatorType", str, where))
        before = sums.get(key, (0, 0))
        sums[key] = (
            before[0] + _part(each, "inputPositions", int, where),
            before[1] + _part(each, "outputPositions", int, where),
        )
    operators: dict[str, list[TrinoOperator]] = {}
    for (identity, operator_type), (rows_in, rows_out) in sums.items():
        operators.setdefault(identity, []).append(TrinoOperator(operator_type, rows_in, rows_out))
    return operators


_MISSING: Final = object()


def _part(
    content: Mapping[str, Any], name: str, cls: type[T], where: str, default: Any = _MISSING
) -> T:
    value = content.get(name)
    if value is None and default is not _MISSING:
        return default  # type: ignore[no-any-return]
    if value is None:
        _refuse(f"The JSON has no '{name}' in {where}")
    if not isinstance(value, cls) or isinstance(value, bool):
        _refuse(f"'{name}' in {where} is {_kind(value)}")
    return value


def _kind(value: Any) -> str:
    names = {
        dict: "an object",
        list: "a list",
        str: "a text",
        int: "a number",
        float: "a number",
        bool: "a boolean",
    }
    return "null" if value is None else names.get(type(value), f"of type {type(value).__name__}")


def _refuse(message: str, hint: str = NEXT_STEP) -> NoReturn:
    raise RowMergeError.invalid(message, hint=hint)
