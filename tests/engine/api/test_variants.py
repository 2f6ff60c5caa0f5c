"""Results derived from a trace for other options match runs with these options; otherwise, a sentence names the reason."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from proof.variants import compare
from rowmerge_nb import Engine, RowMergeError, load_trace, save_trace
from rowmerge_nb.base.choices import StatementState
from rowmerge_nb.engine.api.what_if import MOST_ROWS, under_other_paradigm, variants_of
from rowmerge_nb.report.html import render_html
from rowmerge_nb.report.model.report import build_report
from rowmerge_nb.trace.trace import Trace
from tests.trace.parts import with_parts

pytestmark = pytest.mark.spark

MERGE = """MERGE INTO {t} t USING (VALUES (1, 5, 'b'), (2, 6, 'a'), (9, 8, 'c'), (8, 8, 'c')) AS s (id, m, place) ON t.id = s.id
WHEN MATCHED AND s.m = 6 THEN DELETE WHEN MATCHED THEN UPDATE SET n = s.m, place = s.place
WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.m, s.place)"""


@pytest.fixture(scope="module")
def engine(spark: Any) -> Engine:
    engine = Engine(spark=spark, dialect="extended")
    rows = "SELECT * FROM (VALUES (1, 10, VARCHAR 'a'), (2, 20, 'b'), (3, 30, 'c')) AS v (id, n, place)"
    engine.run(f"CREATE TABLE plain AS {rows}")
    engine.run(f"CREATE TABLE placed WITH (partitioned_by = ARRAY['place']) AS {rows}")
    engine.run(f"CREATE TABLE cut WITH (partitioned_by = ARRAY['truncate(place, 1)']) AS {rows}")
    return engine


def run(engine: Engine, statement: str, **options: Any) -> Trace:
    return engine.run(statement, rehearse=True, **options).trace


@pytest.mark.trial
@pytest.mark.parametrize(
    "statements",
    [range(14), pytest.param(range(14, 200), marks=pytest.mark.long)],
    ids=["some", "many"],
)
def test_random_statements_run_as_derived(engine: Engine, statements: range) -> None:
    summary = compare(engine, statements, 476, most=2)
    assert summary.differences == [], summary.differences[0]
    assert summary.compared > len(statements)
    assert summary.places > 10 * summary.unknown


@pytest.mark.parametrize(
    ("statement", "choices"),
    [
        (MERGE.format(t="placed"), ["paradigm", "era", "duplicates"]),
        ("UPDATE placed SET n = 0 WHERE id < 3", ["paradigm", "era"]),
        ("DELETE FROM placed WHERE id < 3", ["era"]),
        ("DELETE FROM placed WHERE id < 3 RETURNING id", ["era"]),
        (
            f"{MERGE.format(t='placed')} WHEN NOT MATCHED BY SOURCE AND t.id > 5 THEN DELETE WHEN NOT MATCHED BY SOURCE THEN DO NOTHING",
            None,
        ),
    ],
)
@pytest.mark.parametrize("era", ["documents", "current"])
def test_all_options_that_make_a_difference_are_derived(
    engine: Engine, statement: str, choices: list[str] | None, era: str
) -> None:
    variants = variants_of(run(engine, statement, era=era))
    assert variants.why == ""
    assert list(variants.choices) == (choices or ["paradigm", "era", "duplicates"])
    for trace in variants.traces.values():
        options = {
            "paradigm": trace.settings.paradigm,
            "era": trace.settings.era,
            "duplicates": str(trace.settings.duplicates),
        }
        ran = run(engine, statement, **options)
        assert trace.samples.pages is not None
        assert ran.samples.pages is not None
        assert (
            trace.samples.pages.before,
            trace.samples.pages.after,
            trace.samples.pages.writers,
        ) == (
            ran.samples.pages.before,
            ran.samples.pages.after,
            ran.samples.pages.writers,
        )
        assert (trace.count, [w.rows for w in trace.writers]) == (
            ran.count,
            [w.rows for w in ran.writers],
        )
        assert (trace.calls, [writer.fragments for writer in trace.writers]) == (
            (),
            [0] * len(trace.writers),
        )


def test_a_function_of_the_connector_is_known_by_the_buckets_of_the_run(
    engine: Engine,
) -> None:
    trace = run(engine, MERGE.format(t="cut"), paradigm="CHANGE_ONLY_UPDATED_COLUMNS")
    split = variants_of(trace).traces["DELETE_ROW_AND_INSERT_ROW", "documents", "trino"]
    assert split.samples.pages is not None
    told = dict(
        zip(
            split.samples.pages.after.column("place").to_pylist(),
            split.samples.pages.writers,
            strict=True,
        )
    )
    # Nothing went to the old partition of the updated row while it stayed one row.
    assert told["a"] == -1
    assert min(told["b"], told["c"]) >= 0


def test_another_rule_ends_a_statement_with_the_error_of_a_run(engine: Engine) -> None:
    twice = MERGE.format(t="plain").replace("(2, 6, 'a')", "(1, 6, 'a')")
    refused = variants_of(run(engine, twice)).traces[
        "DELETE_ROW_AND_INSERT_ROW", "documents", "standard"
    ]
    with pytest.raises(RowMergeError) as failed:
        run(engine, twice, duplicates="standard")
    assert refused.error is not None
    assert (refused.error.code, refused.error.message, refused.error.line) == (
        failed.value.code,
        failed.value.message,
        failed.value.line,
    )
    assert failed.value.hint is not None
    assert failed.value.hint.startswith(refused.error.hint or "?")
    assert (refused.committed, refused.count, refused.writers) == (False, None, ())
    assert failed.value.result is not None
    assert "returns no page" in variants_of(failed.value.result.trace).why


def test_a_saved_trace_has_all_of_it(engine: Engine, tmp_path: Path) -> None:
    trace = run(engine, MERGE.format(t="placed"))
    save_trace(trace, tmp_path / "trace.json")
    again = variants_of(load_trace(tmp_path / "trace.json"))
    assert [one.samples.pages for one in again.traces.values()] == [
        one.samples.pages for one in variants_of(trace).traces.values()
    ]


def test_an_underivable_variant_names_the_reason(engine: Engine) -> None:
    trace = run(engine, MERGE.format(t="placed"))
    pages = trace.samples.pages
    assert pages is not None
    off = run(engine, MERGE.format(t="placed"), trace="off")
    for changed, why in (
        (off, "lacks rows"),
        (with_parts(trace, samples={"pages": replace(pages, complete=False)}), "lacks rows"),
        (with_parts(trace, samples={"pages": replace(pages, tasks=())}), "lacks rows"),
        (replace(trace, count=7), "differs from what the run recorded"),
        (
            with_parts(
                trace,
                samples={
                    "pages": replace(pages, writers=(1 - pages.writers[0], *pages.writers[1:]))
                },
            ),
            "differs from what the run recorded",
        ),
        (replace(trace, state=StatementState.FAILED), "It failed"),
        (
            with_parts(trace, settings={"paradigm": "BOTH"}),
            "could not be derived from its rows: KeyError",
        ),
    ):
        variants = variants_of(changed)
        assert (variants.choices, variants.traces) == ({}, {})
        assert why in variants.why
    rows = f"SELECT n, n, 'a' FROM UNNEST(sequence(1, {MOST_ROWS + 1})) AS u (n)"
    many = run(
        engine,
        f"MERGE INTO plain t USING ({rows}) AS s (id, m, place) ON t.id = s.id WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.m, s.place)",
        trace="full",
    )
    assert f"more than {MOST_ROWS:,} rows" in variants_of(many).why


def test_the_era_stays_without_the_old_rows(engine: Engine) -> None:
    trace = run(engine, MERGE.format(t="placed"))
    pages = trace.samples.pages
    assert pages is not None
    assert pages.witness is not None
    target = pages.witness.column("target")
    some = pa.StructArray.from_arrays(target.flatten()[:1], ["id"], mask=target.is_null())
    at = pages.witness.schema.names.index("target")
    narrow = pages.witness.set_column(at, "target", some)
    variants = variants_of(with_parts(trace, samples={"pages": replace(pages, witness=narrow)}))
    assert list(variants.choices) == ["paradigm", "duplicates"]
    assert variants.why.startswith("The era stays as it was")


@pytest.mark.parametrize("paradigm", ["DELETE_ROW_AND_INSERT_ROW", "CHANGE_ONLY_UPDATED_COLUMNS"])
def test_a_report_shows_the_rows_of_the_other_paradigm_beside_those_of_the_run(
    engine: Engine, paradigm: str
) -> None:
    trace = run(engine, MERGE.format(t="placed"), paradigm=paradigm)
    other = under_other_paradigm(trace)
    assert other is not None
    ran = run(engine, MERGE.format(t="placed"), paradigm=other.settings.paradigm)
    there = build_report(trace, ran).pages
    told = build_report(trace, other).pages
    assert told is not None
    assert there is not None
    assert told.aligned_rows == there.aligned_rows
    assert [row.source for row in told.aligned_rows] == ["0"]
    assert sorted(
        len(side) for side in (told.aligned_rows[0].left, told.aligned_rows[0].right)
    ) == [1, 2]
    assert "The other paradigm" in render_html(build_report(trace, other), show="pages")
    assert under_other_paradigm(run(engine, "DELETE FROM placed WHERE id < 3")) is None


def test_the_calls_name_their_subjects(engine: Engine) -> None:
    calls = {call.method: call for call in run(engine, MERGE.format(t="placed")).calls}
    assert calls["begin_merge"].given == "table memory.default.placed"
    assert calls["begin_merge"].gave == calls["create_merge_sink"].given
    assert calls["create_merge_sink"].given
    assert calls["finish_merge"].bytes
    assert calls["rollback"].given == "the transaction of catalog memory"
