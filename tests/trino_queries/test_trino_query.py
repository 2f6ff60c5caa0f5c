"""Queries of Trino 483 compared with our runs of their statements; an invalid query JSON is one error."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

import rowmerge_nb as rm
from rowmerge_nb import Engine, Result, RowMergeError, trino_query
from rowmerge_nb.base.choices import StatementState
from rowmerge_nb.trace.trace import Trace

HERE = Path(__file__).parent
NAMES = (
    "1-merge",
    "2-merge-partitioned",
    "3-merge-duplicate",
    "4-update",
    "5-delete",
    "6-merge-large",
)


def answer(name: str) -> dict[str, Any]:
    return json.loads(gzip.decompress((HERE / f"{name}.json.gz").read_bytes()))


def older_answer() -> dict[str, Any]:
    """The answer of Trino 476, whose stages contain each other."""
    return answer("1-merge-of-476")


def test_a_query_of_an_older_trino_is_read_too() -> None:
    query = trino_query(older_answer())
    assert (query.kind, query.version, len(list(query.plan.walk()))) == ("MERGE", "476", 21)


@pytest.mark.parametrize(
    ("name", "kind", "nodes"),
    [
        ("1-merge", "MERGE", 22),
        ("4-update", "UPDATE", 14),
        ("5-delete", "DELETE", 8),
        ("6-merge-large", "MERGE", 27),
    ],
)
def test_a_query_is_read_with_its_plan_over_all_stages(name: str, kind: str, nodes: int) -> None:
    query = trino_query(answer(name))
    assert (query.kind, query.state, query.version, query.error) == (kind, "FINISHED", "483", "")
    assert len(list(query.plan.walk())) == nodes
    assert query.statement.startswith(kind)
    assert repr(query).startswith(f"TrinoQuery({query.id}, {kind} iceberg:demo.")


def test_a_file_a_text_and_bytes_are_the_same_query(tmp_path: Path) -> None:
    given = answer("5-delete")
    path = tmp_path / "query.json"
    path.write_text(json.dumps(given), "utf-8")
    wanted = trino_query(given)
    assert (
        trino_query(path)
        == trino_query(str(path))
        == trino_query(path.read_text())
        == trino_query(path.read_bytes())
        == wanted
    )


@pytest.fixture(scope="module")
def results(spark: Any) -> dict[str, Result]:
    """The recorded statements, each on the tables of Trino, by the names of their files."""
    engine, found = Engine(spark=spark), {}
    name = ""
    for part in (HERE / "statements.sql").read_text("utf-8").split(";\n"):
        if recorded := re.search(r"recorded as ([\w-]+)\.json", part):
            name = recorded[1]
        text = re.sub(r"(?m)^\s*--.*\n?", "", part).strip()
        if not text or "warm" in text or text.startswith(("CREATE SCHEMA", "SELECT")):
            continue
        text = text.replace("partitioning = ARRAY", "partitioned_by = ARRAY")
        try:
            result = engine.run(text)
        except RowMergeError as error:
            result = cast("Result", error.result)
        if text.startswith(("MERGE", "UPDATE", "DELETE")):
            found[name] = result
    assert found.keys() == set(NAMES)
    return found


@pytest.mark.spark
@pytest.mark.parametrize("name", [name for name in NAMES if name != "3-merge-duplicate"])
def test_the_recorded_statements_have_the_rows_that_trino_counted(
    results: dict[str, Result], name: str
) -> None:
    beside = results[name].beside_trino(answer(name))
    assert beside.first is None
    assert "have the same rows in all" in str(beside)
    both = [step for step in beside.steps if None not in {step.our_rows, step.trino_rows}]
    assert len(both) >= {"5-delete": 3, "4-update": 5, "6-merge-large": 10}.get(name, 11)


@pytest.mark.spark
def test_the_output_names_the_operators_of_both(results: dict[str, Result]) -> None:
    text = str(results["1-merge"].beside_trino(answer("1-merge")))
    lines = [" ".join(line.split()) for line in text.splitlines()]
    assert "the join RIGHT JOIN 6 LeftJoin 6" in lines
    assert "the source's rows TableScan s 6 TableScan monthly_accounts_update 6" in lines
    assert "transform_page transform_page 9 MergeProcessor 9" in lines
    assert "written rows MergeWriter 9 MergeWriter 9" in lines
    assert "Only in Trino: LocalExchange" in text
    page = results["1-merge"].beside_trino(answer("1-merge"))._repr_html_()
    assert page.count("<table") == 1
    assert "MergeProcessor" in page


@pytest.mark.spark
def test_the_first_point_of_difference_is_named(results: dict[str, Result]) -> None:
    given = answer("1-merge")

    for operator in operators(given):
        if operator["operatorType"] == "MergeProcessorOperator":
            operator["outputPositions"] = 10
        if operator["operatorType"] == "MergeWriterOperator":
            operator["inputPositions"] = 10
    beside = results["1-merge"].beside_trino(given)
    assert beside.first is not None
    assert (beside.first.name, beside.first.our_rows, beside.first.trino_rows) == (
        "transform_page",
        9,
        10,
    )
    assert "diverges from this run at transform_page: 9 here, 10 in Trino." in " ".join(
        str(beside).split()
    )
    assert str(beside).count("◀") == 1


@pytest.mark.spark
def test_a_comparison_of_failed_statements_has_no_first_difference(
    results: dict[str, Result],
) -> None:
    beside = results["3-merge-duplicate"].beside_trino(answer("3-merge-duplicate"))
    assert beside.is_failed
    assert beside.first is None
    text = " ".join(str(beside).split())
    assert (
        "Trino's query ended as FAILED (MERGE_TARGET_ROW_MULTIPLE_MATCHES): its rows are those of that moment"
        in text
    )
    assert "failed here with MERGE_TARGET_ROW_MULTIPLE_MATCHES, as Trino's did" in text


@pytest.mark.spark
def test_a_source_query_is_not_counted_here_and_is_reported(results: dict[str, Result]) -> None:
    beside = results["6-merge-large"].beside_trino(answer("6-merge-large"))
    assert "Not counted here, and not compared: the source's rows" in " ".join(str(beside).split())
    assert any(name.startswith("CrossJoin Unnest") for name, _ in beside.only_trino)


@pytest.mark.spark
def test_the_query_of_another_statement_is_refused(results: dict[str, Result]) -> None:
    for other in ("4-update", "6-merge-large"):
        with pytest.raises(RowMergeError, match="another statement") as caught:
            results["1-merge"].beside_trino(answer(other))
        assert caught.value.code == "INVALID_ARGUMENTS"
        assert caught.value.hint


def test_a_result_without_a_plan_is_refused() -> None:
    with pytest.raises(RowMergeError, match="SELECT has no plan") as caught:
        Result(
            Trace(statement="SELECT 1", kind="SELECT", state=StatementState.FINISHED)
        ).beside_trino(answer("1-merge"))
    assert caught.value.code == "INVALID_ARGUMENTS"


def operators(given: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for stage in given["stages"]["stages"]:
        yield from stage["stageStats"]["operatorSummaries"]


def without(*path: str | int) -> dict[str, Any]:
    given = answer("5-delete")
    part: Any = given
    for name in path[:-1]:
        part = part[name]
    del part[path[-1]]
    return given


def with_value(value: Any, *path: str | int) -> dict[str, Any]:
    given = answer("5-delete")
    part: Any = given
    for name in path[:-1]:
        part = part[name]
    part[path[-1]] = value
    return given


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (7, "of type int|a number"),
        (None, "null"),
        ("", "a text"),
        ("{", "This is no JSON"),
        ("[1]", "it is a list"),
        ({}, "has no 'queryId'"),
        (without("stages"), "has no 'stages'"),
        (with_value(None, "stages"), "has no 'stages'"),
        ({**without("stages"), "pruned": True}, "it was pruned"),
        (without("stages", "stages"), "has no 'stages'"),
        (with_value([], "stages", "stages"), "are not stages"),
        (with_value([7], "stages", "stages"), "are not stages"),
        (without("stages", "outputStageId"), "has no 'outputStageId'"),
        (with_value("x.0", "stages", "outputStageId"), "has no stage x.0"),
        (without("query"), "has no 'query'"),
        (without("state"), "has no 'state'"),
        (without("stages", "stages", 0, "plan"), "has no 'plan'"),
        (
            without("stages", "stages", 0, "plan", "jsonRepresentation"),
            "has no 'jsonRepresentation'",
        ),
        (with_value("{", "stages", "stages", 0, "plan", "jsonRepresentation"), "is not JSON"),
        (with_value("[]", "stages", "stages", 0, "plan", "jsonRepresentation"), "is a list"),
        (without("stages", "stages", 0, "stageStats"), "has no 'stageStats'"),
        (
            without("stages", "stages", 0, "stageStats", "operatorSummaries"),
            "has no 'operatorSummaries'",
        ),
        (
            with_value([7], "stages", "stages", 0, "stageStats", "operatorSummaries"),
            "are not operators",
        ),
        (
            with_value(
                [{"pipelineId": 0, "operatorId": "0"}],
                "stages",
                "stages",
                0,
                "stageStats",
                "operatorSummaries",
            ),
            "'operatorId'",
        ),
        (
            {**older_answer(), "outputStage": {**older_answer()["outputStage"], "subStages": [7]}},
            "are not stages",
        ),
        ("[" * 100_000 + "]" * 100_000, "nested deeper"),
        ({**answer("5-delete"), "updateType": "INSERT"}, "of type INSERT"),
    ],
)
def test_an_invalid_query_is_one_error_with_a_next_step(given: Any, message: str) -> None:
    with pytest.raises(RowMergeError, match=message) as caught:
        trino_query(given)
    assert caught.value.code == "INVALID_ARGUMENTS"
    assert caught.value.hint


def test_a_stage_below_itself_is_refused() -> None:
    given = answer("5-delete")
    tree = {
        "id": "1",
        "name": "RemoteSource",
        "descriptor": {"sourceFragmentIds": "[0]"},
        "children": [],
    }
    given["stages"]["stages"][0]["plan"]["jsonRepresentation"] = json.dumps(tree)
    with pytest.raises(RowMergeError, match="two stages, or to itself"):
        trino_query(given)


def test_a_missing_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(RowMergeError, match="There is no file") as caught:
        rm.trino_query(tmp_path / "nothing.json")
    assert caught.value.code == "NOT_FOUND"
    with pytest.raises(RowMergeError, match="cannot be read"):
        rm.trino_query(tmp_path)
