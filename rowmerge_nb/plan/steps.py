"""EXPLAIN's output: steps as a tree or cut into fragments, as text, JSON or a graph.

A step is a node under Trino's name with the lines below it. Fragments lie between remote exchanges.
"""

from __future__ import annotations

import itertools
import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from rowmerge_nb.base.choices import ExplainFormat

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

Layout = tuple[tuple[str, str], ...]
SINGLE: Final = "SINGLE"
SOURCE: Final = "SOURCE"


@dataclass(frozen=True)
class Partitioning:
    """How rows are spread over tasks: ``SOURCE``, ``SINGLE``, ``HASH``, ... by which symbols."""

    scheme: str
    arguments: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Return the form of a fragment's header: ``HASH [id]``."""
        return f"{self.scheme} [{', '.join(self.arguments)}]"


@dataclass(frozen=True)
class Exchanged:
    """A remote exchange: how rows are spread below it and above it."""

    within: str
    to: Partitioning


@dataclass(frozen=True)
class Step:
    """A node as EXPLAIN prints it; ``exchange`` is set for a remote exchange."""

    name: str
    descriptor: tuple[tuple[str, str], ...]
    layout: Layout
    details: tuple[str, ...] = ()
    sources: tuple[Step, ...] = ()
    exchange: Exchanged | None = None

    @property
    def title(self) -> str:
        parts = (f"{key} = {value}" if key else value for key, value in self.descriptor)
        return f"{self.name}[{', '.join(parts)}]"


@dataclass(frozen=True)
class Fragment:
    number: int
    partitioning: str
    root: Step
    output: Partitioning


@dataclass(frozen=True)
class Spread:
    """Steps, and how their rows are spread over tasks."""

    step: Step
    scheme: str
    keys: tuple[str, ...] = ()

    def under(self, step: Step) -> Spread:
        return replace(self, step=step)


def single(spread: Spread) -> Spread:
    if spread.scheme == SINGLE:
        return spread
    return Spread(remote_exchange(spread.step, spread.scheme, Partitioning(SINGLE)), SINGLE)


def remote_exchange(source: Step, within: str, to: Partitioning) -> Step:
    return Step("RemoteSource", (), source.layout, (), (source,), Exchanged(within, to))


def local_exchange(source: Step, scheme: str, arguments: Sequence[str] = ()) -> Step:
    """Put an exchange between the threads of a task above a step."""
    kinds = dict(source.layout)
    descriptor = (
        (("arguments", f"[{', '.join(f'{name}::{kinds[name]}' for name in arguments)}]"),)
        if arguments
        else ()
    )
    return Step(
        "LocalExchange", (("partitioning", scheme), *descriptor), source.layout, (), (source,)
    )


def fragments_of(root: Step) -> list[Fragment]:
    """Cut a plan at its remote exchanges.

    A fragment has a lower number than those that it reads, as in Trino.
    """
    numbers, fragments = itertools.count(), list[Fragment]()

    def cut(step: Step) -> Step:
        sources = step.sources
        if step.exchange is None:
            return replace(step, sources=tuple(cut(source) for source in sources))
        read = [fragment(source, step.exchange.within, step.exchange.to) for source in sources]
        descriptor = (("sourceFragmentIds", f"[{', '.join(map(str, read))}]"), *step.descriptor)
        return replace(step, descriptor=descriptor, sources=(), exchange=None)

    def fragment(step: Step, within: str, output: Partitioning) -> int:
        number = next(numbers)
        fragments.append(Fragment(number, within, cut(step), output))
        return number

    fragment(root, "COORDINATOR_ONLY", Partitioning("SINGLE"))
    return sorted(fragments, key=lambda part: part.number)


def explained(root: Step, form: ExplainFormat, *, distributed: bool) -> str:
    parts = (
        fragments_of(root) if distributed else [Fragment(0, "SINGLE", root, Partitioning("SINGLE"))]
    )
    if form is ExplainFormat.GRAPHVIZ:
        return _graph(parts)
    if form is ExplainFormat.JSON:
        numbers = itertools.count()
        plans = {str(part.number): _as_json(part.root, numbers) for part in parts}
        return json.dumps(plans if distributed else plans["0"], indent=2, ensure_ascii=False)
    if not distributed:
        return "\n".join(_lines(root, "", ""))
    return "\n\n".join("\n".join(_fragment(part)) for part in parts)


def _fragment(part: Fragment) -> Iterator[str]:
    yield f"Fragment {part.number} [{part.partitioning}]"
    yield f"{_INDENT}Output layout: [{', '.join(name for name, _ in part.root.layout)}]"
    yield f"{_INDENT}Output partitioning: {part.output}"
    yield from _lines(part.root, _INDENT, _INDENT)


def _lines(step: Step, first: str, rest: str) -> Iterator[str]:
    yield f"{first}{step.title}"
    bar = "│   " if step.sources else "    "
    columns = ", ".join(f"{name}:{type_name}" for name, type_name in step.layout)
    yield f"{rest}{bar}Layout: [{columns}]"
    for detail in step.details:
        yield f"{rest}{bar}{detail}"
    for index, source in enumerate(step.sources):
        last = index == len(step.sources) - 1
        yield from _lines(
            source, rest + ("└─ " if last else "├─ "), rest + ("   " if last else "│  ")
        )


_INDENT: Final = "    "


def _as_json(step: Step, numbers: Iterator[int]) -> dict[str, Any]:
    return {
        "id": str(next(numbers)),
        "name": step.name,
        "descriptor": {key or "text": value for key, value in step.descriptor},
        "outputs": [{"type": type_name, "name": name} for name, type_name in step.layout],
        "details": list(step.details),
        "estimates": [],
        "children": [_as_json(source, numbers) for source in step.sources],
    }


def _graph(parts: Sequence[Fragment]) -> str:
    lines = ["digraph distributed_plan {" if len(parts) > 1 else "digraph logical_plan {"]
    numbers = itertools.count(1)
    edges: list[str] = []
    roots: dict[int, str] = {}
    reads: list[tuple[str, int]] = []
    for part in parts:
        lines += [f"subgraph cluster_{part.number} {{", f'label = "{part.partitioning}"']
        roots[part.number] = _vertex(part.root, numbers, lines.append, edges, reads)
        lines.append("}")
    edges += [f"{vertex} -> {roots[number]};" for vertex, number in reads if number in roots]
    return "\n".join([*lines, *edges, "}"])


def _vertex(
    step: Step,
    numbers: Iterator[int],
    write: Callable[[str], None],
    edges: list[str],
    reads: list[tuple[str, int]],
) -> str:
    vertex = f"plannode_{next(numbers)}"
    columns = "\\n".join(map(_escaped, step.details))
    label = f"{{{_escaped(step.title)}{'|' + columns if columns else ''}}}"
    write(f'{vertex}[label="{label}", style="rounded, filled", shape=record, fillcolor=white];')
    if step.name.startswith("Remote"):
        ids = dict(step.descriptor).get("sourceFragmentIds", "[]")[1:-1]
        reads += [(vertex, int(number)) for number in ids.split(", ") if number]
    for source in step.sources:
        edges.append(f"{vertex} -> {_vertex(source, numbers, write, edges, reads)};")
    return vertex


def _escaped(text: str) -> str:
    return "".join(f"\\{mark}" if mark in '\\"{}|<>[]' else mark for mark in text)
