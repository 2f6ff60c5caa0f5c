"""All synthetic traces by name, for tests that apply to each of them."""

from __future__ import annotations

from tests.report import building, traces
from tests.report.building import ONLY_CHANGED, Setup

CASES = {
    "merge": building.merge_trace,
    "merge_only_changed": lambda: building.merge_trace(Setup(paradigm=ONLY_CHANGED)),
    "merge_current": lambda: building.merge_trace(Setup(era="current")),
    "merge_current_only_changed": lambda: building.merge_trace(
        Setup(era="current", paradigm=ONLY_CHANGED)
    ),
    "merge_mark_exchange": lambda: building.merge_trace(Setup(mark_exchange=True)),
    "merge_not_partitioned": lambda: building.merge_trace(Setup(redistribution=())),
    "merge_without_witness": lambda: building.merge_trace(Setup(witness=False)),
    "merge_unknown_sizes": lambda: building.merge_trace(Setup(rows_before=None)),
    "merge_empty_source": lambda: building.merge_trace(Setup(rows=())),
    "merge_insert_only": traces.insert_only_trace,
    "merge_counts_only": lambda: building.merge_trace(
        samples={"pages": None, "stored_pages": ()}, settings={"trace_level": "off"}
    ),
    "merge_without_plan": lambda: building.merge_trace(plan=(), rows={}),
    "merge_two_versions": traces.warning_trace,
    "merge_nothing_fired": traces.nothing_fired_trace,
    "merge_pruned": traces.pruned_trace,
    "merge_without_clauses": lambda: building.merge_trace(clauses=()),
    "update": traces.update_trace,
    "update_updatable": traces.updatable_trace,
    "delete_updatable": lambda: traces.updatable_trace("DELETE FROM accounts WHERE purchases > 3"),
    "many_clauses": traces.many_clauses_trace,
    "wide": traces.wide_trace,
    "hostile": traces.hostile_trace,
    "explain": traces.explain_trace,
    "dry_run": lambda: traces.explain_trace(state="planned"),
    "duplicates": traces.duplicate_trace,
    "analysis_error": traces.analysis_trace,
    "insert": traces.insert_trace,
    "create_table": lambda: traces.simple_trace("CREATE TABLE"),
    "create_table_as": lambda: traces.simple_trace("CREATE TABLE AS", count=5),
    "drop_table": lambda: traces.simple_trace("DROP TABLE"),
    "select": lambda: traces.simple_trace("SELECT", target={"name": ""}),
}
