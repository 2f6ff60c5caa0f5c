"""The answers of ten engines' rules, situation by situation; two of the engines are run themselves."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from rowmerge_nb import DuplicateMatchError, Engine, RowMergeError, load_trace, save_trace
from rowmerge_nb.engine.api.result import Result
from rowmerge_nb.report.verdicts import Verdicts
from rowmerge_nb.trace.join_record import MatchPattern
from rowmerge_nb.trace.verdicts import ENGINES
from tests.report.building import ONLY_CHANGED, Setup, merge_trace

DOCUMENT = Path(__file__).parents[2] / "docs" / "duplicates.md"
BEGIN, END = "<!-- verdicts: begin -->", "<!-- verdicts: end -->"
UPDATE = "WHEN MATCHED THEN UPDATE SET v = s.v"
INSERT = "WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.v)"


@dataclass(frozen=True)
class Situation:
    """Source rows, clauses, and the letters of the engines that fail, in the order of `ENGINES`."""

    name: str
    clauses: str
    fails: str
    source: tuple[tuple[int, int], ...] = ((1, 1), (1, 2))
    target: tuple[tuple[int, int], ...] = ((1, 0), (2, 0))


# T Trino, P ISO and PostgreSQL, S Spark, D Delta Lake, r delta-rs, k DuckDB, M SQL Server, O Oracle, B Db2, F Snowflake
LETTERS = "TPSDrkMOBF"
SITUATIONS = [
    Situation("one clause updates for two source rows", UPDATE, "TPSDrkMOBF"),
    Situation(
        "a clause updates for one of two source rows",
        "WHEN MATCHED AND s.v = 1 THEN UPDATE SET v = s.v",
        "S",
    ),
    Situation(
        "no clause fires for two source rows",
        "WHEN MATCHED AND s.v = 9 THEN UPDATE SET v = s.v",
        "TS",
    ),
    Situation(
        "one clause updates, another deletes",
        "WHEN MATCHED AND s.v = 1 THEN UPDATE SET v = 5 WHEN MATCHED THEN DELETE",
        "PSDrkMOBF",
    ),
    Situation(
        "two clauses update",
        "WHEN MATCHED AND s.v = 1 THEN UPDATE SET v = 5 WHEN MATCHED THEN UPDATE SET v = 6",
        "PSDrkMOBF",
    ),
    Situation("one unconditional DELETE for two source rows", "WHEN MATCHED THEN DELETE", "TPkMOB"),
    Situation(
        "one conditional DELETE for two source rows",
        "WHEN MATCHED AND s.v > 0 THEN DELETE",
        "TPSDrkMOB",
    ),
    Situation(
        "two clauses delete",
        "WHEN MATCHED AND s.v = 1 THEN DELETE WHEN MATCHED THEN DELETE",
        "PSDrkMOB",
    ),
    Situation("insert only, two source rows for a row that exists", INSERT, "T"),
    Situation(
        "two source rows without a partner", f"{UPDATE} {INSERT}", "", source=((7, 1), (7, 2))
    ),
    Situation(
        "one source row for two target rows", UPDATE, "", source=((1, 1),), target=((1, 0), (1, 0))
    ),
]


def table(rows: tuple[tuple[int, int], ...]) -> pa.Table:
    return pa.table(
        {
            "id": pa.array([r[0] for r in rows], pa.int32()),
            "v": pa.array([r[1] for r in rows], pa.int32()),
        }
    )


def statement(situation: Situation) -> str:
    return f"MERGE INTO t USING s ON t.id = s.id {situation.clauses}"


@pytest.fixture(scope="module")
def results(spark: Any) -> dict[str, Result]:
    """Every situation run once; for failing ones, the result of the attempt."""
    found = {}
    with Engine(spark=spark) as engine:
        for situation in SITUATIONS:
            engine.register("t", table(situation.target))
            engine.register("s", table(situation.source))
            try:
                found[situation.name] = engine.run(statement(situation))
            except DuplicateMatchError as error:
                found[situation.name] = error.result
    return found


@pytest.mark.parametrize("situation", SITUATIONS, ids=lambda s: s.name)
def test_every_engine_answers_by_its_rule(results: dict[str, Result], situation: Situation) -> None:
    verdicts = results[situation.name].verdicts()
    assert len(verdicts) == len(ENGINES) == len(LETTERS)
    assert (
        "".join(letter for letter, v in zip(LETTERS, verdicts, strict=True) if v.answer == "fails")
        == situation.fails
    )
    assert all((v.rows > 0) == (v.answer == "fails") for v in verdicts)


@pytest.mark.parametrize("situation", SITUATIONS, ids=lambda s: s.name)
def test_trinos_verdict_is_what_this_engine_did(
    results: dict[str, Result], situation: Situation
) -> None:
    result = results[situation.name]
    assert result.verdicts()[0].answer == ("fails" if result.trace.state == "failed" else "runs")


@pytest.mark.parametrize("situation", SITUATIONS, ids=lambda s: s.name)
def test_duckdb_itself_agrees_with_its_verdict(
    results: dict[str, Result], situation: Situation
) -> None:
    duckdb = pytest.importorskip("duckdb", minversion="1.4")
    connection = duckdb.connect()
    connection.register("given_t", table(situation.target))
    connection.register("given_s", table(situation.source))
    connection.execute("CREATE TABLE t AS FROM given_t")
    connection.execute("CREATE TABLE s AS FROM given_s")
    try:
        connection.execute(statement(situation))
        answer = "runs"
    except duckdb.Error as error:
        answer = "fails" if "more than once" in str(error) else str(error)
    assert results[situation.name].verdicts()[5].answer == answer


MATCHED = {
    SITUATIONS[0].name: lambda m: m.when_matched_update({"v": "s.v"}),
    SITUATIONS[1].name: lambda m: m.when_matched_update({"v": "s.v"}, predicate="s.v = 1"),
    SITUATIONS[2].name: lambda m: m.when_matched_update({"v": "s.v"}, predicate="s.v = 9"),
    SITUATIONS[3].name: lambda m: m.when_matched_update(
        {"v": "5"}, predicate="s.v = 1"
    ).when_matched_delete(),
    SITUATIONS[4].name: lambda m: m.when_matched_update(
        {"v": "5"}, predicate="s.v = 1"
    ).when_matched_update({"v": "6"}),
    SITUATIONS[5].name: lambda m: m.when_matched_delete(),
    SITUATIONS[6].name: lambda m: m.when_matched_delete(predicate="s.v > 0"),
    SITUATIONS[7].name: lambda m: m.when_matched_delete(predicate="s.v = 1").when_matched_delete(),
    SITUATIONS[8].name: lambda m: m.when_not_matched_insert({"id": "s.id", "v": "s.v"}),
    SITUATIONS[9].name: lambda m: m.when_matched_update({"v": "s.v"}).when_not_matched_insert(
        {"id": "s.id", "v": "s.v"}
    ),
    SITUATIONS[10].name: lambda m: m.when_matched_update({"v": "s.v"}),
}


@pytest.mark.parametrize("situation", SITUATIONS, ids=lambda s: s.name)
def test_delta_rs_itself_agrees_with_its_verdict(
    results: dict[str, Result], situation: Situation, tmp_path: Path
) -> None:
    deltalake = pytest.importorskip("deltalake", minversion="1.6")
    deltalake.write_deltalake(str(tmp_path), table(situation.target))
    merge = deltalake.DeltaTable(str(tmp_path)).merge(
        table(situation.source), "t.id = s.id", source_alias="s", target_alias="t"
    )
    try:
        MATCHED[situation.name](merge).execute()
        answer = "runs"
    except deltalake.exceptions.DeltaError as error:
        answer = "fails" if "multiple source rows" in str(error) else str(error)
    assert results[situation.name].verdicts()[4].answer == answer


def test_verdicts_show_themselves_as_text_and_html(results: dict[str, Result]) -> None:
    bundle = results[SITUATIONS[0].name].verdicts()._repr_mimebundle_()
    assert (
        bundle["text/plain"].splitlines()[2]
        == "Trino                fails   1 target row is changed by more than one source row"
    )
    assert bundle["text/html"].count("<tr>") == len(ENGINES) + 1
    assert bundle["text/plain"] in bundle["text/html"]


def test_a_saved_trace_has_the_verdicts(results: dict[str, Result], tmp_path: Path) -> None:
    for result in results.values():
        save_trace(result.trace, tmp_path / "trace.json")
        assert list(Verdicts.of(load_trace(tmp_path / "trace.json"))) == list(result.verdicts())


def test_the_report_shows_verdicts_to_those_who_ask(results: dict[str, Result]) -> None:
    from rowmerge_nb.report.bundle import mime_bundle

    trace = results[SITUATIONS[3].name].trace
    assert "Snowflake" not in mime_bundle(trace)["text/plain"]
    shown = mime_bundle(trace, show="verdicts")
    assert "Snowflake            fails" in shown["text/plain"]
    assert "ERROR_ON_NONDETERMINISTIC_MERGE" in shown["text/html"]


def test_a_statement_without_joined_rows_has_no_verdicts(spark: Any) -> None:
    with Engine(spark=spark) as engine:
        engine.register("t", table(((1, 1),)))
        with pytest.raises(RowMergeError, match="no joined rows"):
            engine.run(
                "MERGE INTO t USING t s ON t.id = s.id WHEN MATCHED THEN DELETE", dry_run=True
            ).verdicts()


@pytest.mark.parametrize(
    "source",
    [
        "s",
        "s AS x",
        "(SELECT id, v FROM s) AS x",
        "(VALUES (1, 1), (1, 2)) AS x (id, v)",
        '(SELECT id, v, v AS rn, v AS "A b" FROM s) x',
    ],
)
def test_the_statement_runs_with_the_proposed_source(spark: Any, source: str) -> None:
    name = "s" if source == "s" else "x"
    sql = f"MERGE INTO t USING {{}} ON t.id = {name}.id WHEN MATCHED THEN UPDATE SET v = {name}.v"
    with Engine(spark=spark) as engine:
        engine.register("t", table(((1, 0), (2, 0))))
        engine.register("s", table(((1, 1), (1, 2))))
        with pytest.raises(DuplicateMatchError) as caught:
            engine.run(sql.format(source))
        assert caught.value.proposal is not None
        assert caught.value.proposal in str(caught.value.hint)
        assert engine.run(sql.format(caught.value.proposal)).count == 1
        assert engine.table("t").sort_by("id").to_pydict() == {"id": [1, 2], "v": [1, 0]}


def test_the_warning_of_two_acting_clauses_names_the_row_and_proposes_a_source(
    results: dict[str, Result],
) -> None:
    (notice,) = results[SITUATIONS[3].name].trace.notices
    assert "1 target row was changed by more than one clause" in notice.message
    assert (
        "target row (id = 1, v = 0), changed by source row 0 by clause 0 and source row 1 by clause 1"
        in notice.message
    )
    assert "row_number() OVER (PARTITION BY id ORDER BY v)" in notice.message


def markdown() -> str:
    """The table of the document: situations by engines."""
    names = [engine.name for engine in ENGINES]
    lines = [f"| situation | {' | '.join(names)} |", f"| --- |{' --- |' * len(names)}"]
    for situation in SITUATIONS:
        answers = ["**fails**" if letter in situation.fails else "runs" for letter in LETTERS]
        lines.append(f"| {situation.name} | {' | '.join(answers)} |")
    rules = [
        f"- **{engine.name}**: {engine.rule} ([source]({engine.source.split(',')[0].split(' and ')[0]}))"
        for engine in ENGINES
    ]
    return "\n".join([*lines, "", *rules])


def test_the_document_has_the_table_of_the_rules() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    assert text[text.index(BEGIN) + len(BEGIN) : text.index(END)].strip() == markdown()


def test_the_failing_rule_is_not_trinos_under_in_place_changes() -> None:
    two_clauses = MatchPattern(matches=2, acting=2, updates=2, deletes=0, repeated=False, rows=1)
    patterns = {"multiple_matches": (two_clauses,)}
    in_place = Verdicts.of(merge_trace(Setup(paradigm=ONLY_CHANGED), join=patterns))
    assert in_place[0].answer == "runs"
    assert "this package fails" in in_place[0].reason
    assert not any("this package" in row.reason for row in in_place[1:])
    assert "this package" not in Verdicts.of(merge_trace(join=patterns))[0].reason
