"""The rows of a statement compared with the expected ones: missing rows, unexpected rows, and the reasons."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from rowmerge_nb import Engine, HiveAcidConnector, Result, RowMergeError, load_trace, save_trace
from rowmerge_nb.base.choices import StatementState
from rowmerge_nb.engine.api.frames.dataframes import whole_frame
from rowmerge_nb.report.row_check import RowCheck
from rowmerge_nb.trace.trace import Trace

pytestmark = pytest.mark.spark

MERGE = """MERGE INTO accounts t USING (VALUES ('Aaron', 6), ('Carol', 9), ('Ed', NULL)) AS s (customer, n) ON t.customer = s.customer
WHEN MATCHED AND s.n > 8 THEN DELETE
WHEN MATCHED THEN UPDATE SET purchases = s.n
WHEN NOT MATCHED AND s.n > 0 THEN INSERT (customer, purchases) VALUES (s.customer, s.n)"""
LEFT = pd.DataFrame({"PURCHASES": [11, 6], "customer": ["Dave", "Aaron"]})


@pytest.fixture
def engine(spark: Any) -> Engine:
    engine = Engine(spark=spark)
    engine.run("CREATE TABLE accounts (customer varchar, purchases decimal(4, 1))")
    engine.run("INSERT INTO accounts VALUES ('Aaron', 5), ('Carol', 3), ('Dave', 11)")
    return engine


def test_the_expected_rows_match_in_any_order_of_rows_and_columns(engine: Engine) -> None:
    rehearsed = engine.run(MERGE, rehearse=True).check_rows(LEFT)
    assert (rehearsed.same, rehearsed.sentence, rehearsed.rows) == (
        True,
        "Right: 2 rows, as wanted.",
        (),
    )
    done = engine.run(MERGE)
    assert done.check_rows(pa.Table.from_pandas(LEFT)).same
    assert engine.run("SELECT * FROM accounts").check_rows(LEFT).same
    assert "Right" in done.check_rows(LEFT)._repr_mimebundle_()["text/html"]


def test_wrong_rows_are_shown_with_the_reasons_of_rows_with_the_same_key(engine: Engine) -> None:
    wanted = pd.DataFrame({"customer": ["Aaron", "Carol", "Ed"], "purchases": [6, 9, None]})
    check = engine.run(MERGE).check_rows(wanted, by="customer")
    assert not check.same
    assert check.missing.to_pylist() == [
        {"customer": "Carol", "purchases": Decimal("9.0")},
        {"customer": "Ed", "purchases": None},
    ]
    assert check.unexpected.to_pylist() == [{"customer": "Dave", "purchases": Decimal("11.0")}]
    assert check.to_pandas()["row"].tolist() == ["missing", "missing", "unexpected"]
    assert str(check) == (
        "Not yet: 2 rows missing, 1 row unexpected.\n\n            customer "
        " purchases\nmissing     Carol           9.0\nmissing     Ed            "
        " NULL\nunexpected  Dave           11.0\n\nSource row 1 (Carol, 9): clause 0 DELETE\n"
        "  It has a partner: ON is true: t.customer = s.customer (s.customer = 'Carol',"
        " t.customer = 'Carol').\n  Clause 0 fires: s.n > 8 (s.n = 9).\n  Only the first"
        " clause that fires applies: 1 is not reached.\n\nSource row 2 (Ed, NULL): no clause"
        " fired\n  It has no partner: ON is true for no row of the target.\n  Clause 2 is"
        " unknown: s.n > 0, since s.n is NULL.\n  No clause fires, so the row does"
        " nothing.\n\n(Dave)\n  No row that took part has its customer."
    )
    html = check._repr_mimebundle_()["text/html"]
    assert "since s.n is NULL" in html
    assert html.count('<th scope="row">missing') == 2


def test_existing_and_inserted_rows_explain_differences_without_a_key(engine: Engine) -> None:
    check = engine.run(MERGE, rehearse=True).check_rows(engine.table("accounts"))
    text = str(check)
    assert "Source row 0 (Aaron, 6): clause 1 UPDATE" in text  # made ('Aaron', 6), of ('Aaron', 5)
    assert "Source row 1 (Carol, 9): clause 0 DELETE" in text  # took ('Carol', 3)
    assert text.count("Aaron, 6): clause") == 1
    assert "Ed" not in text


def test_rows_are_counted_and_of_many_the_first_are_shown(engine: Engine) -> None:
    twice = engine.run("SELECT * FROM (VALUES (1, ARRAY[1]), (1, ARRAY[1]), (2, NULL)) AS v (a, b)")
    assert twice.check_rows(pa.table({"a": [2, 1, 1], "b": [None, [1], [1]]})).same
    check = twice.check_rows(pa.table({"a": [1, 2, 2, 2], "b": [[1], None, None, None]}))
    assert check.missing.to_pydict() == {"a": [2, 2], "b": [None, None]}
    assert check.unexpected.to_pydict() == {"a": [1], "b": [[1]]}
    many = engine.run("SELECT * FROM TABLE(sequence(1, 12)) AS v (n)").check_rows(
        pd.DataFrame({"n": []})
    )
    assert (many.sentence, str(many).count("unexpected  "), str(many).splitlines()[-1]) == (
        "Not yet: 12 rows unexpected.",
        10,
        "and 2 more",
    )
    hostile = engine.run("SELECT '<b>x' AS a").check_rows(pd.DataFrame({"a": []}))
    assert "&lt;b&gt;x" in hostile._repr_mimebundle_()["text/html"]
    nothing = engine.run("SELECT * FROM accounts WHERE false")
    assert nothing.check_rows(LEFT.head(0)).sentence == "Correct: no row, as expected."


def test_update_and_delete_are_checked_as_well(engine: Engine) -> None:
    check = engine.run("DELETE FROM accounts WHERE purchases < 4", rehearse=True).check_rows(
        engine.table("accounts"), "customer"
    )
    assert "(Carol, 3.0): DELETE" in str(check)
    updated = engine.run("UPDATE accounts SET purchases = 1", flow="updatable")
    assert updated.check_rows(
        pd.DataFrame({"customer": ["Dave", "Carol", "Aaron"], "purchases": 1})
    ).same


@pytest.mark.parametrize(
    ("wanted", "by", "said"),
    [
        (
            "accounts",
            None,
            "wanted = 'accounts' is not possible. Give a DataFrame",
        ),
        (
            LEFT.rename(columns={"customer": "custmer"}),
            None,
            "The rows have no column 'custmer'. Did you mean 'customer'",
        ),
        (
            LEFT[["customer"]],
            None,
            "The expected rows have no column 'purchases'. The columns are: customer, purchases.",
        ),
        (
            LEFT.assign(PURCHASES="much"),
            None,
            r"Column 'purchases' of the expected rows does not fit decimal\(4,1\)",
        ),
        (
            LEFT.assign(PURCHASES=12345),
            None,
            r"Column 'purchases' of the expected rows does not fit decimal\(4,1\)",
        ),
        (LEFT, "name", "The rows have no column 'name'"),
        (LEFT, ["customer", "purchase"], "Did you mean 'purchases'"),
        (LEFT, 5, "by = 5 is"),
        (LEFT, [], "by is of type list, which is not possible. Give at least one column"),
    ],
)
def test_impossible_comparisons_are_refused(
    engine: Engine, wanted: Any, by: Any, said: str
) -> None:
    result = engine.run("SELECT * FROM accounts")
    with pytest.raises(RowMergeError, match=said) as raised:
        result.check_rows(wanted, by)
    assert raised.value.code == "INVALID_ARGUMENTS"


def test_unknown_rows_are_not_compared(engine: Engine, tmp_path: Path) -> None:
    with pytest.raises(RowMergeError) as raised:
        engine.run("UPDATE accounts SET purchases = 1 / 0")
    done = engine.run(MERGE)
    save_trace(done.trace, tmp_path / "merge.json")
    engine.add_catalog("lake", HiveAcidConnector(tmp_path / "lake"))
    engine.run("CREATE TABLE lake.default.t AS SELECT 1 AS n")
    for result, said in (
        (raised.value.result, r"This UPDATE failed \(DIVISION_BY_ZERO\)"),
        (done.what_if(), "The rows that this MERGE left are unknown"),
        (Result(load_trace(tmp_path / "merge.json")), "unknown"),
        (engine.run(MERGE, dry_run=True), "unknown"),
        (engine.run("INSERT INTO accounts VALUES ('Gus', 1)"), "The rows that this INSERT left"),
        (engine.run("DELETE FROM lake.default.t", rehearse=True), "The rows that this DELETE left"),
    ):
        with pytest.raises(RowMergeError, match=said) as refused:
            result.check_rows(LEFT)
        assert refused.value.code == "NOT_SUPPORTED"
    with pytest.raises(RowMergeError, match="Two columns of the rows have the same name"):
        engine.run("SELECT 1 AS a, 2 AS a").check_rows(pd.DataFrame({"a": [1]}))
    engine.run("DROP TABLE accounts")
    with pytest.raises(RowMergeError, match="accounts"):
        done.check_rows(LEFT)


def test_zero_and_nan_are_unique(engine: Engine) -> None:
    wanted = pa.table({"d": [0.0, float("nan"), None]})
    assert (
        engine.run("SELECT * FROM (VALUES -0e0, nan(), CAST(NULL AS double)) AS v (d)")
        .check_rows(wanted)
        .same
    )


def test_padding_of_a_char_is_not_a_difference_but_other_blanks_are() -> None:
    trace = Trace(statement="SELECT ...", kind="SELECT", state=StatementState.FINISHED)
    rows = pa.table({"c": ["ab   ", None], "v": ["ab ", "x"]})
    assert RowCheck.of(
        trace, rows, pa.table({"c": ["ab", None], "v": ["ab ", "x"]}), padded={"c"}
    ).same
    assert not RowCheck.of(
        trace, rows, pa.table({"c": ["ab", None], "v": ["ab", "x"]}), padded={"c"}
    ).same
    assert not RowCheck.of(trace, rows, pa.table({"c": ["ab", None], "v": ["ab ", "x"]})).same


def test_nanoseconds_beyond_sql_are_refused_when_rows_are_compared() -> None:
    with pytest.raises(RowMergeError, match="would lose data"):
        whole_frame("wanted", pa.table({"w": pa.array([1_001], pa.timestamp("ns"))}))
    table = whole_frame("wanted", pa.table({"w": pa.array([2_000], pa.timestamp("ns"))})).table
    assert table is not None
    assert table.column("w").cast(pa.int64()).to_pylist() == [2]
