from __future__ import annotations

import pytest

from rowmerge_nb.spi.metadata import ColumnMetadata
from rowmerge_nb.spi.operations import Era
from rowmerge_nb.spi.types import parse_type
from rowmerge_nb.sql.analyzer.analysis import MergeAnalysis, TableBinding
from rowmerge_nb.sql.spark.printer import print_spark
from rowmerge_nb.sql.spark.query_printer import print_query
from tests.sql.support import ACCOUNTS, FakeTables, meaning, place, refusal, unmarked

DOCUMENT = """MERGE INTO accounts t USING monthly_accounts_update s
    ON (t.customer = s.customer)
    WHEN MATCHED AND s.address = 'Berkeley' THEN
        DELETE
    WHEN MATCHED AND s.customer = 'Joe Shmoe' THEN
        UPDATE SET purchases = purchases + 100.0
    WHEN MATCHED THEN
        UPDATE SET purchases = s.purchases + t.purchases, address = s.address
    WHEN NOT MATCHED THEN
        INSERT (customer, purchases, address)
            VALUES (s.customer, s.purchases, s.address)"""


def _merge(sql: str, **options) -> MergeAnalysis:
    found = meaning(sql, **options)
    assert isinstance(found, MergeAnalysis)
    return found


def _equalities(merge: MergeAnalysis) -> list[tuple[str, str]]:
    return [
        (unmarked(print_spark(target)), unmarked(print_spark(source)))
        for target, source in merge.equalities
    ]


def test_the_statement_of_the_documents_is_analyzed_unchanged():
    merge = _merge(DOCUMENT)
    assert [f.symbol for f in merge.target_fields] == ["customer", "purchases", "address"]
    assert [f.symbol for f in merge.source.fields] == ["customer_0", "purchases_0", "address_0"]
    assert _equalities(merge) == [("`customer`", "`customer_0`")]
    assert merge.source.binding is not None
    assert (merge.source.alias, merge.target_alias) == ("s", "t")
    joe = merge.clauses[1].values
    assert joe[0] is None
    assert joe[2] is None
    assert joe[1] is not None
    assert str(joe[1].type) == "decimal(38,0)"
    assert joe[1].references == {"purchases"}


def test_an_ambiguous_name_in_set_means_the_target_and_is_noticed():
    (notice,) = _merge(DOCUMENT).notices
    assert "Trino refuses the name 'purchases'" in notice.message
    assert notice.span is not None
    assert (notice.span.line, notice.span.column) == (6, 32)


def test_the_ambiguous_name_is_refused_as_in_trino_in_the_current_era():
    error = refusal(DOCUMENT, era=Era.CURRENT)
    assert place(error) == ("AMBIGUOUS_NAME", 6, 32)
    assert error.hint == "Write s.purchases or t.purchases."


@pytest.mark.parametrize(
    "clause",
    [
        "WHEN MATCHED AND purchases > 1 THEN DELETE",
        "WHEN MATCHED THEN UPDATE SET purchases = t.purchases, address = customer",
        "WHEN MATCHED THEN UPDATE SET address = address, customer = address",
        "WHEN NOT MATCHED THEN INSERT (purchases) VALUES (purchases)",
    ],
)
def test_the_exception_is_for_the_assigned_column_in_set_only(clause):
    error = refusal(
        f"MERGE INTO accounts t USING monthly_accounts_update s ON t.customer = s.customer {clause}"
    )
    assert error.code == "AMBIGUOUS_NAME"


def test_equalities_are_those_that_every_match_must_satisfy():
    merge = _merge(
        "MERGE INTO numbers t USING (SELECT i AS k, d AS f, s AS w FROM numbers) q "
        "ON t.l = q.k AND reverse(q.w) = t.s AND t.d = q.f AND (t.i = q.k OR t.b) AND t.i = 4 WHEN MATCHED THEN DELETE"
    )
    assert _equalities(merge) == [("`l`", "CAST(`i_0` AS BIGINT)"), ("`s`", "reverse(`s_0`)")]


def test_a_query_as_source_is_printed_with_the_symbols_of_its_fields():
    merge = _merge(
        "MERGE INTO parts t USING (VALUES (1, 'x')) s(id, c) ON t.id = s.id WHEN MATCHED THEN DELETE"
    )
    assert [(f.name, f.relation) for f in merge.source.fields] == [("id", "s"), ("c", "s")]
    text = print_query(merge.source.tree)
    assert all(f"`{f.symbol}`" in text for f in merge.source.fields)


def test_names_of_the_plan_are_never_symbols():
    tables = FakeTables(
        {
            "t": [("present", "integer"), ("row_id", "integer"), ("$path", "varchar")],
            "s": [("present", "integer")],
        }
    )
    merge = _merge(
        "MERGE INTO t USING s ON t.present = s.present WHEN MATCHED THEN DELETE", tables=tables
    )
    assert [f.symbol for f in (*merge.target_fields, *merge.source.fields)] == [
        "present_0",
        "row_id_0",
        "path",
        "present_1",
    ]


def test_a_self_merge_binds_the_table_once():
    merge = _merge(
        "MERGE INTO numbers a USING numbers b ON a.i = b.i WHEN MATCHED THEN UPDATE SET s = (SELECT max(s) FROM numbers)"
    )
    assert [b.qualified for b in merge.bindings] == ["memory.default.numbers"]


def test_a_dataframe_of_the_notebook_is_a_source_but_no_target():
    tables = FakeTables(ACCOUNTS.tables)
    column = ColumnMetadata("Customer", parse_type("varchar"))
    tables.frames["df"] = TableBinding("df", "", ("df",), (column,), "v_df", dataframe=object())
    merge = _merge(
        "MERGE INTO accounts t USING df ON t.customer = df.customer WHEN MATCHED THEN DELETE",
        tables=tables,
    )
    assert merge.source.binding is tables.frames["df"]
    error = refusal(
        "MERGE INTO df USING accounts t ON true WHEN MATCHED THEN DELETE", tables=tables
    )
    assert error.code == "NOT_SUPPORTED"


def test_a_wrong_number_of_values_names_both_numbers_and_points_at_the_values():
    error = refusal(
        "MERGE INTO numbers t USING numbers s ON true WHEN NOT MATCHED THEN INSERT (i, s) VALUES (s.i)"
    )
    assert place(error) == ("MISMATCHED_COLUMN_COUNT", 1, 90)
    assert error.message == "INSERT has 2 columns but 1 value"


def test_near_names_are_offered():
    assert (
        refusal("MERGE INTO acounts t USING numbers s ON true WHEN MATCHED THEN DELETE").hint
        == "Did you mean 'accounts'?"
    )
    error = refusal(
        "MERGE INTO accounts t USING numbers s ON t.custmer = s.s WHEN MATCHED THEN DELETE"
    )
    assert error.hint == "Did you mean 't.customer'?"
    error = refusal(
        "MERGE INTO accounts t USING numbers s ON true WHEN MATCHED THEN UPDATE SET adress = 'x'"
    )
    assert error.hint == "Did you mean 'address'?"


@pytest.mark.parametrize(
    ("condition", "hint"),
    [
        ('t.address = "Berkeley"', "Text is written in single quotes: 'Berkeley'."),
        (
            "t.address = Berkeley",
            (
                "Text is written in single quotes: 'Berkeley'. The columns are customer, purchases,"
                " address, id, code, tags, made."
            ),
        ),
        ("Revenue > 5", "The columns are customer, purchases, address, id, code, tags, made."),
        ("t.revenue > 5", "The columns are customer, purchases, address."),
        ("t.address = adress", "Did you mean 'address'?"),
        (
            't.address = "adress"',
            "Did you mean 'address'? Text is written in single quotes: 'adress'.",
        ),
        ("n.nope = 1", "The columns are id, code, tags, made."),
        ("n.customer = 'x'", "Did you mean 't.customer'?"),
        ("t.purchase = 1", "Did you mean 't.purchases'?"),
    ],
)
def test_a_name_that_is_not_a_column_has_a_fitting_hint(condition, hint):
    error = refusal(
        f"MERGE INTO accounts t USING parts n ON true WHEN MATCHED AND {condition} THEN DELETE"
    )
    assert (error.code, error.hint) == ("COLUMN_NOT_FOUND", hint)


def test_text_that_is_too_long_for_its_column_fails_when_it_is_stored():
    merge = _merge(
        "MERGE INTO parts t USING numbers s ON true WHEN MATCHED THEN UPDATE SET code = s.s"
    )
    code = merge.clauses[0].values[1]
    assert code is not None
    assert "Cannot truncate non-space characters" in print_spark(code.tree)


def test_a_correlated_subquery_reads_the_symbols_of_both_sides():
    merge = _merge(
        "MERGE INTO numbers t USING numbers src ON t.i = src.i "
        "WHEN MATCHED THEN UPDATE SET l = (SELECT max(n.l) FROM numbers n WHERE n.i = src.i AND n.s = t.s)"
    )
    value = merge.clauses[0].values[1]
    assert value is not None
    assert value.references == {"i_0", "s"}


def test_equal_rows_are_equalities_of_their_fields():
    merge = _merge(
        "MERGE INTO numbers t USING numbers s ON (t.i, t.s) = (s.i, s.s) WHEN MATCHED THEN DELETE"
    )
    assert _equalities(merge) == [("`i`", "`i_0`"), ("`s`", "`s_0`")]


def test_a_column_in_a_subquery_hides_the_outer_alias_of_that_name():
    error = refusal(
        "MERGE INTO parts t USING numbers s ON t.id = s.i WHEN MATCHED AND EXISTS (SELECT 1 FROM numbers n WHERE n.s = s.s) THEN DELETE"
    )
    assert (error.code, error.message) == ("TYPE_MISMATCH", "Expression s is not of type ROW")
