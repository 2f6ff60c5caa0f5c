"""Our plan and Trino's plan of the same statement."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rowmerge_nb.base.choices import ROW_CHANGES, StatementState
from rowmerge_nb.base.errors import RowMergeError
from rowmerge_nb.base.words import TRINO_VERSION
from rowmerge_nb.report.model.plan import build_plan
from rowmerge_nb.trace.node_records import ProjectFacts, ScanFacts
from rowmerge_nb.trace.trino_query import table_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rowmerge_nb.report.model.plan import Operator
    from rowmerge_nb.trace.trace import Trace
    from rowmerge_nb.trace.trino_query import TrinoNode, TrinoQuery

TARGET, UNIQUE_ID, PRESENT, SOURCE, JOIN, FILTER, CASE, CASE_NUMBER = (
    *("the target's rows", "unique_id", "present"),
    *("the source's rows", "the join", "the condition", "CASE", "case_number"),
)
MARKED, CHECKED, CHANGED, WRITTEN = "MarkDistinct", "duplicates", "transform_page", "written rows"
ORDER: Final = (
    TARGET,
    UNIQUE_ID,
    PRESENT,
    SOURCE,
    JOIN,
    FILTER,
    CASE,
    CASE_NUMBER,
    MARKED,
    CHECKED,
    CHANGED,
    WRITTEN,
)
"""The steps in execution order; each is a row count that both plans have."""
_PROJECTED: Final = {"merge_row": CASE, "case_number": CASE_NUMBER, "present": PRESENT}


@dataclass(frozen=True)
class AlignedStep:
    """A step of execution: our operator and Trino's node, ``""`` if missing, with their rows, None
    if not counted.
    """

    name: str
    ours: str
    trino: str
    our_rows: int | None
    trino_rows: int | None

    @property
    def parts(self) -> bool:
        """Both row counts exist and differ."""
        return None not in {self.our_rows, self.trino_rows} and self.our_rows != self.trino_rows


@dataclass(frozen=True)
class BesideTrino:
    """Our run of a statement beside Trino's. ``str()`` of it is a text; a notebook displays it.

    Args:
        only_ours: operators that Trino's plan lacks, with their rows.
        only_trino: nodes that our plan lacks, with their rows.
    """

    query: TrinoQuery
    steps: tuple[AlignedStep, ...]
    only_ours: tuple[tuple[str, int | None], ...]
    only_trino: tuple[tuple[str, int | None], ...]
    notices: tuple[str, ...]
    is_failed: bool

    @property
    def first(self) -> AlignedStep | None:
        """The first step at which the rows differ; None without one, or after a failure."""
        return None if self.is_failed else next((step for step in self.steps if step.parts), None)

    def __str__(self) -> str:
        return self._bundle()["text/plain"]

    def _repr_html_(self) -> str:
        return self._bundle()["text/html"]

    def _bundle(self) -> dict[str, str]:
        from rowmerge_nb.report.beside_trino import beside_trino_bundle

        return beside_trino_bundle(self)


def lay_beside(trace: Trace, query: TrinoQuery) -> BesideTrino:
    """Compare a query of Trino with our run of the same statement."""
    plan = build_plan(trace)
    if trace.kind not in ROW_CHANGES or plan is None:
        raise RowMergeError.invalid(
            f"{trace.kind} has no plan to compare with Trino's rows",
            hint="Only MERGE, UPDATE and DELETE that were planned can be compared.",
        )
    _check_same(trace, query)
    facts = {record.id: record.facts for record in trace.plan}
    ours: dict[str, tuple[str, int | None]] = {}
    only_ours: list[tuple[str, int | None]] = []
    for operator in plan.in_order:
        role = _our_role(operator, facts[operator.id])
        if role is not None and role not in ours:
            rows = next(iter(operator.rows_in), None) if role == WRITTEN else operator.rows_out
            ours[role] = (f"{operator.title} {operator.short}".strip(), rows)
        elif operator.kind not in {"TableFinish", "Output"}:
            only_ours.append((f"{operator.title} {operator.short}".strip(), operator.rows_out))
        if operator.inside is not None:
            only_ours += [(node.title, node.rows) for node in operator.inside.upward()]
    if SOURCE in ours and ours[SOURCE][1] is None:
        join = plan.of_kind("Join")
        if join is not None and len(join.rows_in) > 1:
            ours[SOURCE] = (ours[SOURCE][0], join.rows_in[1])
    theirs, used_nodes = _their_roles(query)
    nothing: tuple[str, int | None] = ("", None)
    steps = []
    for name in ORDER:
        (here, our_rows), (there, trino_rows) = ours.get(name, nothing), theirs.get(name, nothing)
        if here or there:
            steps.append(AlignedStep(name, here, there, our_rows, trino_rows))
    only_trino = [
        (_shown(node), node.rows_out)
        for node in reversed(list(query.plan.walk()))
        if node.id not in used_nodes and node.name not in {"Output", "TableCommit", "RemoteSource"}
    ]
    is_failed = query.state != "FINISHED" or trace.state != StatementState.FINISHED
    return BesideTrino(
        query,
        tuple(steps),
        tuple(only_ours),
        tuple(only_trino),
        tuple(_notices(trace, query, steps)),
        is_failed,
    )


def _our_role(operator: Operator, facts: object) -> str | None:
    if isinstance(facts, ScanFacts):
        return TARGET if facts.target else SOURCE
    if isinstance(facts, ProjectFacts) and operator.kind == "Project":
        return next((_PROJECTED[name] for name in facts.assigned if name in _PROJECTED), None)
    return {
        "Source": SOURCE,
        "AssignUniqueId": UNIQUE_ID,
        "Join": JOIN,
        "Filter": FILTER,
        "Case": CASE,
        "MarkDistinct": MARKED,
        "DuplicateCheck": CHECKED,
        "MergeProcessor": CHANGED,
        "MergeWriter": WRITTEN,
    }.get(operator.kind)


def _their_roles(query: TrinoQuery) -> tuple[dict[str, tuple[str, int | None]], set[str]]:
    roles: dict[str, tuple[str, int | None]] = {}
    node_ids: set[str] = set()

    def take(role: str, node: TrinoNode, rows: int | None) -> None:
        roles.setdefault(role, (_shown(node), rows))
        node_ids.add(node.id)

    for node in query.plan.walk():
        condition = node.descriptor.get("filterPredicate", "")
        if node.name == "MergeWriter":
            take(WRITTEN, node, node.rows_in)
        elif node.name == "MergeProcessor":
            take(CHANGED, node, node.rows_out)
        elif node.name == "MarkDistinct":
            take(MARKED, node, node.rows_out)
        elif "is_distinct" in condition:
            take(CHECKED, node, node.rows_out)
        elif node.name.endswith("Join") and any(_numbers_target(side) for side in node.sources):
            take(JOIN, node, node.rows_out)
            source = next((side for side in node.sources if not _numbers_target(side)), None)
            while source is not None and source.name == "AssignUniqueId":
                source = next(iter(source.sources), None)
            if source is not None:
                take(SOURCE, source, node.rows_in)
        elif _is_target_number(node):
            take(UNIQUE_ID, node, node.rows_out)
        elif condition and query.kind != "MERGE" and FILTER not in roles:
            take(FILTER, node, node.rows_out)
        for detail in node.details:
            role = _PROJECTED.get(detail.partition(" := ")[0])
            # An UPDATE without clauses assigns the same name again.
            if (
                role is not None
                and " := " in detail
                and not (role == CASE_NUMBER and query.kind != "MERGE")
            ):
                take(role, node, node.rows_out)
    target = _target(query)
    if target is not None:
        take(TARGET, target, target.rows_in)
    return roles, node_ids


def _is_target_number(node: TrinoNode) -> bool:
    """Return whether a node numbers the target's rows; since Trino 483 the source's rows have
    numbers too.
    """
    return node.name == "AssignUniqueId" and "source_unique_id" not in node.outputs


def _numbers_target(node: TrinoNode) -> bool:
    return any(_is_target_number(each) for each in node.walk())


def _target(query: TrinoQuery) -> TrinoNode | None:
    begin = next((node for node in query.plan.walk() if _is_target_number(node)), query.plan)
    scans = (node for node in begin.walk() if node.name in _SCANS)
    return next((node for node in scans if table_of(node) == query.table), None)


_SCANS: Final = frozenset({"TableScan", "ScanFilter", "ScanProject", "ScanFilterProject"})


def _shown(node: TrinoNode) -> str:
    table = table_of(node).rpartition(".")[2] if node.name in _SCANS else ""
    return f"{node.name} {table}".strip()


def _check_same(trace: Trace, query: TrinoQuery) -> None:
    ours, theirs = trace.target.qualified_name or trace.target.name or "", query.table
    same_table = _last(ours) == _last(theirs) or not theirs
    if trace.kind != query.kind or (
        not same_table and _words(trace.statement) != _words(query.statement)
    ):
        raise RowMergeError.invalid(
            f"The query is another statement: {query.kind} of {theirs or 'no table'};"
            f" here it is {trace.kind} of {ours}",
            hint="Pass the JSON of the query that ran this statement in Trino.",
        )


def _last(name: object) -> str:
    text = ".".join(map(str, name)) if isinstance(name, tuple) else str(name)
    return text.rpartition(".")[2].strip('"').lower()


def _words(text: str) -> list[str]:
    return re.sub(r"\s+", " ", text).strip().rstrip("; ").split(" ")


def _notices(trace: Trace, query: TrinoQuery, steps: Sequence[AlignedStep]) -> Iterator[str]:
    if _words(trace.statement) != _words(query.statement):
        yield "The texts of the statements differ; the plans are compared anyway"
    if query.state != "FINISHED":
        yield (
            f"Trino's query ended as {query.state}{f' ({query.error})' if query.error else ''}: its"
            " rows are those of that moment"
        )
    if trace.state == StatementState.FAILED:
        code = trace.error.code if trace.error is not None else "an error"
        also = ", as Trino's did" if query.error and code == query.error else ""
        yield (
            f"The statement failed here with {code}{also}: its rows are those that were counted"
            " until then"
        )
    elif trace.state != StatementState.FINISHED:
        yield "The statement was not run here, so only Trino has rows"
    if not any(step.trino_rows is not None for step in steps):
        yield "Trino counted no rows for these operators"
    elif unknown := [step.name for step in steps if step.our_rows is None and step.ours]:
        yield f"Not counted here, and not compared: {', '.join(unknown)}"
    if query.version and f"Trino {query.version}" != TRINO_VERSION:
        yield f"The query is from Trino {query.version}; the format of {TRINO_VERSION} is expected"
