"""Every statement has one class of run, and no such class inherits from another."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from rowmerge_nb.engine.api.statement_options import Options
from rowmerge_nb.engine.statements import dispatch
from rowmerge_nb.engine.statements.dispatch import kind_of_run
from rowmerge_nb.engine.statements.insert import CreateTableAsRun
from rowmerge_nb.engine.statements.naming import kind_of, name_shown
from rowmerge_nb.engine.statements.older_flow import UpdatableRun
from rowmerge_nb.engine.statements.statement import StatementRun
from rowmerge_nb.sql.analyzer.analysis import (
    Analysis,
    CreateTableAnalysis,
    DeleteAnalysis,
    ExplainAnalysis,
    RowChangeAnalysis,
    UpdateAnalysis,
)


def below(kind: type) -> list[type]:
    return [inner for direct in kind.__subclasses__() for inner in (direct, *below(direct))]


def made(kind: type[Any], **attributes: Any) -> Any:
    """A resolved statement with only its class and these attributes."""
    analysis = object.__new__(kind)
    for name, value in attributes.items():
        object.__setattr__(analysis, name, value)
    return analysis


def test_kinds_of_runs_are_one_level_below_what_they_share() -> None:
    kinds = [kind for kind in below(StatementRun) if kind.__module__.startswith("rowmerge_nb.")]
    assert len(kinds) == 13
    assert all(kind.__bases__ == (StatementRun,) for kind in kinds)


def test_every_resolved_statement_has_a_kind_of_run() -> None:
    # EXPLAIN plans the statement that it explains.
    resolved = set(below(Analysis)) - {RowChangeAnalysis, ExplainAnalysis}
    assert set(dispatch._RUNS) == resolved


@pytest.mark.parametrize("kind", [UpdateAnalysis, DeleteAnalysis])
def test_the_older_flow_has_a_run_of_its_own(kind: type[Any]) -> None:
    assert kind_of_run(made(kind), Options().changed(flow="updatable")) is UpdatableRun
    assert kind_of_run(made(kind), Options()) is not UpdatableRun


def test_create_table_with_a_query_inserts() -> None:
    analysis = made(CreateTableAnalysis, tree=object(), name=("memory", "default", "t"))
    assert kind_of_run(analysis, Options()) is CreateTableAsRun
    assert (kind_of(analysis), name_shown(analysis)) == (
        "CREATE TABLE AS",
        ("t", "memory.default.t", "memory"),
    )


def test_a_target_is_shown_as_written() -> None:
    target = SimpleNamespace(display="T", qualified="memory.default.t", catalog="memory")
    assert name_shown(made(UpdateAnalysis, target=target)) == ("T", "memory.default.t", "memory")
