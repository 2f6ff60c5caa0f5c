"""Expressions on pages: they have the meaning and the errors of the flow of MERGE, or are refused."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest

from rowmerge_nb import Engine, RowMergeError
from rowmerge_nb.base.errors import SetupError
from rowmerge_nb.engine.tasks.page_program import (
    AssignedColumn,
    PageEvaluator,
    PageExpression,
    PageProgram,
    PageQuery,
    require_duckdb,
    translated,
)
from rowmerge_nb.sql.analyzer.expressions import in_lists
from rowmerge_nb.sql.duckdb.duckdb_text import UnprintableError, once
from rowmerge_nb.sql.duckdb.printer import PagePrinter
from rowmerge_nb.sql.tree.statements import Span
from rowmerge_nb.sql.typed.expressions import Apply, Constant, references, walk
from tests.engine.tasks.page_expressions import (
    computed,
    regexp,
    same,
    table,
    tree_of,
    values_of,
    wide_table,
)


@pytest.mark.trial
@pytest.mark.parametrize(
    ("name", "rows", "file"),
    [("v", table(), "page_expressions.txt"), ("w", wide_table(), "page_expressions_wide.txt")],
    ids=["v", "w"],
)
def test_expressions_on_pages_match_spark_for_values_that_trip_implementations_up(
    spark: Any, name: str, rows: pa.Table, file: str
) -> None:
    expressions = Path(__file__).with_name(file).read_text("utf-8").splitlines()
    with Engine(spark=spark) as engine:
        engine.register(name, rows)
        texts = ", ".join(f"{text} AS c{place}" for place, text in enumerate(expressions))
        wanted = engine.run(f"SELECT {texts} FROM {name}").table
    found = {text: values_of(computed(text, rows, name)[0]) for text in expressions}
    columns = dict(zip(expressions, map(values_of, wanted.columns), strict=True))
    different = {
        text: [
            pair for pair in zip(values, columns[text], strict=True) if not same(pair[:1], pair[1:])
        ]
        for text, values in found.items()
        if not same(values, columns[text])
    }
    assert not different


@pytest.mark.parametrize(
    ("number", "shown"),
    [
        ("1e23", "1.0E23"),
        ("9.223372036854775e18", "9.223372036854775E18"),
        ("1e-323", "9.9E-324"),
        ("2e-3", "2.0E-3"),
        ("5e-324", "4.9E-324"),
    ],
)
def test_a_double_is_shown_with_the_fewest_distinguishing_digits_like_java_from_19_on(
    number: str, shown: str
) -> None:
    rows = table().slice(0, 1).set_column(6, "d", pa.array([float(number)]))
    assert computed("CAST(d AS varchar)", rows)[0].to_pylist() == [shown]


@pytest.mark.parametrize(
    ("pattern", "is_read"),
    [
        *(
            (pattern, True)
            for pattern in (
                r"^a+?b{2,3}$",
                "a|b$",
                r"[^\w-]\.",
                "(?:a(b))c",
                r"[\s,;]",
                r"é\D",
                r"\Aa\z",
                r"a\Z",
            )
        ),
        *(
            (pattern, False)
            for pattern in (
                r"a$b",
                "(a$)",
                r"a\Zb",
                r"\bword",
                r"(a)\1",
                "(a*)*",
                "a++",
                "(?i)a",
                "[a[b]]",
                "[a&&b]",
                "a{2000}",
                r"\p{L}",
            )
        ),
        *(
            (pattern, False)
            for pattern in ("(", "a)", "[b-a]", "*a", "[]", "a{3,1}", r"\x41", "[a", "\\")
        ),
    ],
)
def test_only_patterns_that_both_engines_read_alike_are_computed_on_pages(
    pattern: str, is_read: bool
) -> None:
    node = regexp("regexp_like", pattern)
    if is_read:
        assert "regexp_matches" in PagePrinter().value(node)
        return
    with pytest.raises(UnprintableError, match="which DuckDB reads differently"):
        PagePrinter().value(node)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("regexp_replace(s, 'a*', '')", "regexp_replace with a pattern that matches an empty text"),
        ("regexp_replace(s, '(a)', '$1')", "regexp_replace with groups in its replacement"),
        (
            "regexp_extract_all(s, 'x?')",
            "regexp_extract_all with a pattern that matches an empty text",
        ),
        (
            "regexp_like(s, t)",
            "regexp_like with a pattern, a group or a replacement that is no constant",
        ),
        ("regexp_extract(s, 'a$')", "the regular expression 'a$'"),
    ],
)
def test_calls_with_patterns_that_differ_in_only_one_function_are_refused_there(
    text: str, what: str
) -> None:
    tree, _ = tree_of(text)
    with pytest.raises(UnprintableError) as caught:
        PagePrinter().value(tree)
    assert what in str(caught.value)


def test_the_clock_of_a_statement_shows_one_moment_everywhere() -> None:
    tree, _ = tree_of(
        "CAST(current_timestamp(6) AS timestamp(6)) = localtimestamp(6) AND now() = current_timestamp AND a < current_date"
    )
    assert (
        computed("CAST(current_timestamp(6) AS timestamp(6)) = localtimestamp(6)")[0].to_pylist()
        == [True] * 8
    )
    assert all(
        isinstance(part, Constant) or part.name != "function"
        for part in walk(tree)
        if isinstance(part, Apply | Constant)
    )


@pytest.mark.parametrize(
    ("text", "code", "message"),
    [
        ("10 / (j - j)", "DIVISION_BY_ZERO", "Division by zero"),
        ("i % (j - j)", "DIVISION_BY_ZERO", "Division by zero"),
        ("n / (m - m)", "DIVISION_BY_ZERO", "Division by zero"),
        ("mod(j, j - j)", "DIVISION_BY_ZERO", "Division by zero"),
        ("2147483647 + j", "NUMERIC_VALUE_OUT_OF_RANGE", "integer addition overflow: 2 + 2147483647"),
        ("j + 2147483647", "NUMERIC_VALUE_OUT_OF_RANGE", "integer addition overflow: 2 + 2147483647"),
        ("CAST(-9 AS bigint) - 9223372036854775807", "NUMERIC_VALUE_OUT_OF_RANGE", "bigint subtraction overflow: -9 - 9223372036854775807"),
        ("l * 9007199254740993", "NUMERIC_VALUE_OUT_OF_RANGE", "bigint multiplication overflow: 9007199254740993 * 9007199254740993"),
        ("-i", "NUMERIC_VALUE_OUT_OF_RANGE", "integer negation overflow: -2147483648"),
        ("abs(i)", "NUMERIC_VALUE_OUT_OF_RANGE", "Value -2147483648 is out of range for abs(integer)"),
        ("i / -1", "NUMERIC_VALUE_OUT_OF_RANGE", "integer division overflow: -2147483648 / -1"),
        ("CAST(l AS integer)", "NUMERIC_VALUE_OUT_OF_RANGE", "Out of range for integer: 9007199254740993"),
        ("CAST(n AS tinyint)", "NUMERIC_VALUE_OUT_OF_RANGE", "Cannot cast '1234568' to TINYINT"),
        ("CAST(n AS decimal(3,1))", "NUMERIC_VALUE_OUT_OF_RANGE", "Cannot cast DECIMAL(9, 2) '1234567.89' to DECIMAL(3, 1)"),
        ("CAST(j AS decimal(1,1))", "NUMERIC_VALUE_OUT_OF_RANGE", "Cannot cast INTEGER '2' to DECIMAL(1, 1)"),
        ("CAST(d AS integer)", "INVALID_CAST_ARGUMENT", "Cannot cast double NaN to integer"),
        ("CAST(1e10 AS integer)", "NUMERIC_VALUE_OUT_OF_RANGE", "Out of range for integer: 1.0E10"),
        ("CAST(-1.25e300 AS decimal(5,2))", "NUMERIC_VALUE_OUT_OF_RANGE", "Cannot cast DOUBLE '-1.25E300' to DECIMAL(5, 2)"),
        ("CAST(REAL '3.4028235e38' AS decimal(5,2))", "NUMERIC_VALUE_OUT_OF_RANGE", "Cannot cast REAL '3.4028235E38' to DECIMAL(5, 2)"),
        ("CAST(d AS decimal(5,2))", "INVALID_CAST_ARGUMENT", "Cannot cast DOUBLE 'NaN' to DECIMAL(5, 2)"),
        ("CAST(123456.5e0 AS decimal(5,2))", "NUMERIC_VALUE_OUT_OF_RANGE", "Cannot cast DOUBLE '123456.5' to DECIMAL(5, 2)"),
        ("CAST(c AS integer)", "INVALID_CAST_ARGUMENT", "Cannot cast 'abc' to INT"),
        ("lpad(s, j, '-')", "INVALID_FUNCTION_ARGUMENT", "Target length must be in the range [0..2147483647]"),
        ("rpad(s, 5, '')", "INVALID_FUNCTION_ARGUMENT", "Padding string must not be empty"),
        ("s LIKE 'a#b' ESCAPE '#'", "INVALID_FUNCTION_ARGUMENT", "Escape character must be followed by '%', '_' or the escape character itself"),
        ("s LIKE 'a#b' ESCAPE '##'", "INVALID_FUNCTION_ARGUMENT", "Escape string must be a single character"),
        ("a + INTERVAL '1' HOUR", "INVALID_FUNCTION_ARGUMENT", "Cannot add hour, minutes or seconds to a date"),
        ("CAST(n AS decimal(38,2)) * DECIMAL '1000000000000000000000000000000000'", "NUMERIC_VALUE_OUT_OF_RANGE", "Decimal overflow"),
        ("CAST(s AS date)", "INVALID_CAST_ARGUMENT", "Value cannot be cast to date: Aéb"),
        ("CAST(s AS timestamp(3))", "INVALID_CAST_ARGUMENT", "Value cannot be cast to timestamp: Aéb"),
        ("CAST(s AS double)", "INVALID_CAST_ARGUMENT", "Cannot cast 'Aéb' to DOUBLE"),
        ("CAST(s AS boolean)", "INVALID_CAST_ARGUMENT", "Cannot cast 'Aéb' to BOOLEAN"),
        ("CAST(s AS uuid)", "INVALID_CAST_ARGUMENT", "Cannot cast value to UUID: Aéb"),
        ("CAST(reverse('5a4') AS uuid)", "INVALID_CAST_ARGUMENT", "Cannot cast value to UUID: 4a5"),
        ("CAST(reverse('0-0-0-0-0') AS uuid)", "INVALID_CAST_ARGUMENT", "Invalid UUID string length: 9"),
        ("CAST(s AS decimal(5,2))", "INVALID_CAST_ARGUMENT", "Cannot cast VARCHAR 'Aéb' to DECIMAL(5, 2). Value is not a number."),
        ("CAST(reverse('4321') AS decimal(5,2))", "INVALID_CAST_ARGUMENT", "Cannot cast VARCHAR '1234' to DECIMAL(5, 2). Value too large."),
        ("CAST(d AS varchar(3))", "INVALID_CAST_ARGUMENT", "Value 1.5 (1.5E0) cannot be represented as varchar(3)"),
        ("ARRAY[i][abs(j)]", "INVALID_FUNCTION_ARGUMENT", "Array subscript must be less than or equal to array length: 2 > 1"),
        ("ARRAY[i][0]", "INVALID_FUNCTION_ARGUMENT", "SQL array indices start at 1"),
        ("ARRAY[i][-abs(j)]", "INVALID_FUNCTION_ARGUMENT", "Array subscript is negative: -2"),
        ("split(s, t || '')", "INVALID_FUNCTION_ARGUMENT", "The delimiter may not be the empty string"),
        ("chr(l)", "INVALID_FUNCTION_ARGUMENT", "Not a valid Unicode code point: "),
        ("date_trunc('decade', w)", "INVALID_FUNCTION_ARGUMENT", "'decade' is not a valid TIMESTAMP field"),
        ("w + INTERVAL '300000' YEAR", "NUMERIC_VALUE_OUT_OF_RANGE", "Timestamp out of range"),
        (
            *("CAST(w AS varchar(5))", "GENERIC_INTERNAL_ERROR"),
            "Character count exceeds length limit 5: base64:MjAyNC0wMS0zMSAyMzo1OTo1OS45OTk5OTk=",
        ),
        ("TRY_CAST(w AS varchar(5))", "GENERIC_INTERNAL_ERROR", "Character count exceeds length limit 5: base64:"),
        ("CAST(j AS varchar(1))", "INVALID_CAST_ARGUMENT", "Value -2 cannot be represented as varchar(1)"),
    ],
)  # fmt: skip
def test_a_failure_on_a_page_has_trinos_code_and_words(text: str, code: str, message: str) -> None:
    with pytest.raises(RowMergeError) as caught:
        computed(text)
    assert caught.value.code == code
    assert caught.value.message.startswith(message)
    assert (caught.value.line, caught.value.column, caught.value.length) == (1, 1, len(text))
    assert caught.value.hint == "It happened in a test."


@pytest.mark.parametrize(
    "text",
    [
        "b AND 10 / (j - j) > 1 AND b IS NULL AND false",
        "CASE WHEN j = 0 THEN 0 WHEN 10 / j > 0 THEN 1 END",
        "coalesce(j, 10 / (j - j), 1)",
        "if(j <> 0, 10 % j)",
        "j = 0 OR j IS NULL OR 10 / j > 100",
    ],
)
def test_guarded_expressions_are_not_computed(text: str) -> None:
    rows = (
        table().filter(pa.compute.is_in(table().column("b"), pa.array([False])))
        if text.startswith("b")
        else table()
    )
    assert len(computed(text, rows)[0]) == rows.num_rows


def test_terms_of_and_are_evaluated_in_order_while_all_earlier_ones_are_true() -> None:
    tree, symbols = tree_of("j <> 0 AND (i = 3 OR b) AND 10 / j > 2")
    page = table().combine_chunks().to_batches()[0].rename_columns(symbols)
    where = PageExpression(
        PagePrinter().condition(tree), Span(0, 1, 1, 1), "in a test", reads=references(tree)
    )
    evaluator = PageEvaluator(PageProgram(where))
    assert evaluator.filter(page).column(0).to_pylist() == [1, 2147483647, 3]
    evaluator.close()


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("CAST(CAST(d AS real) AS varchar)", "a cast from real to varchar"),
        ("CAST(s AS time(3))", "a cast from varchar to time(3)"),
        (
            "CAST(s AS timestamp(3) with time zone) IS NULL",
            "a cast from varchar to timestamp(3) with time zone",
        ),
        ("TRY_CAST(ARRAY[s] AS array(date))", "a cast from array(varchar) to array(date)"),
        ("contains(ARRAY[d], e)", "the function contains(array(double), double)"),
        ("contains(ARRAY[ARRAY[i]], ARRAY[j])", "contains of array(integer)"),
        ("ARRAY[i] = ARRAY[j]", "= of array(integer)"),
        ("format_datetime(w AT TIME ZONE 'Asia/Kolkata', 'HH')", "timestamp(6) with time zone"),
        ("array_join(ARRAY[s], t)", "array_join with an argument 2 that is empty or no constant"),
        ("from_utf8(to_utf8(s))", "the function from_utf8(varbinary)"),
        ("random()", "the function random()"),
        ("w AT TIME ZONE 'Asia/Kolkata' > TIMESTAMP '2024-01-01 00:00:00 UTC'", "timestamp"),
        ("power(d, 2)", "the function power(double, double)"),
        ("CAST(n AS decimal(38,2)) / 3", "the quotient of decimal(38,2) and decimal(10,0)"),
    ],
)
def test_expressions_without_a_proven_equivalent_are_refused(text: str, what: str) -> None:
    tree, _ = tree_of(text)
    with pytest.raises(UnprintableError) as caught:
        PagePrinter().value(tree)
    assert what in str(caught.value)


def test_the_failed_column_of_several_is_named() -> None:
    first, symbols = tree_of("i + 1")
    second, _ = tree_of("10 / j")
    page = table().slice(1, 3).combine_chunks().to_batches()[0].rename_columns(symbols)
    spans = (Span(0, 5, 1, 1), Span(9, 15, 1, 10))
    columns = tuple(
        AssignedColumn(
            name,
            pa.int32(),
            PageExpression(PagePrinter().value(tree), span, f"in '{name}'", reads=references(tree)),
        )
        for name, tree, span in zip("xy", (second, first), reversed(spans), strict=True)
    )
    evaluator = PageEvaluator(PageProgram(assigned=columns))
    with pytest.raises(RowMergeError) as caught:
        evaluator.project(page.slice(2, 1))
    assert caught.value.message == "integer addition overflow: 2147483647 + 1"
    assert (caught.value.column, caught.value.hint) == (1, "It happened in 'y'.")


@pytest.mark.parametrize("text", ["j <> 0", "j IS NULL", "true", "false"])
@pytest.mark.parametrize("several", [1, 3, 1000])
def test_rows_of_many_pages_are_filtered_at_once_and_stay_in_their_pages(
    text: str, several: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rowmerge_nb.engine.tasks.page_program.FILTERED_ROWS", several)
    tree, symbols = tree_of(text)
    whole = table().combine_chunks().to_batches()[0].rename_columns(symbols)
    where = PageExpression(
        PagePrinter().condition(tree), Span(0, 1, 1, 1), "in a test", reads=references(tree)
    )
    pages = [whole.slice(start, 2) for start in range(0, whole.num_rows, 2)]
    evaluator = PageEvaluator(PageProgram(where))
    wanted = [evaluator.filter(page).to_pydict() for page in pages]
    found = list(evaluator.filtered([pages[0].slice(0, 0), *pages]))
    assert str([page.to_pydict() for page in found]) == str(wanted)  # NaN is not equal to itself
    assert list(evaluator.filtered([])) == []


def test_the_first_row_whose_condition_cannot_be_computed_is_reported_among_many_pages() -> None:
    tree, symbols = tree_of("10 / (j - 1) > 2")
    whole = table().combine_chunks().to_batches()[0].rename_columns(symbols)
    names = dict.fromkeys(references(tree), "j")
    where = PageExpression(
        PagePrinter().condition(tree),
        Span(0, 1, 1, 1),
        "in a test",
        reads=references(tree),
        names=names,
    )
    with pytest.raises(RowMergeError, match="DIVISION_BY_ZERO") as caught:
        list(
            PageEvaluator(PageProgram(where)).filtered(
                whole.slice(row, 1) for row in range(whole.num_rows)
            )
        )
    assert caught.value.row == "The first such row has j = 1."


@pytest.mark.parametrize(
    ("values", "kept"),
    [([1, 3], [1, 3]), ([1, None], [1]), ([], []), ([None], [])],
)
def test_a_list_of_values_is_looked_up_with_three_valued_logic(
    values: list[int | None], kept: list[int]
) -> None:
    page = pa.RecordBatch.from_pydict({"i": pa.array([1, 2, 3, None], pa.int32())})
    answers = [pa.array(values, pa.int32())]
    queries = (PageQuery("$q0", "in", pa.int32()),)

    def filtered(text: str) -> list[Any]:
        evaluator = PageEvaluator(
            PageProgram(
                PageExpression(text, Span(0, 1, 1, 1), "", reads=frozenset({"i"})), (), queries
            ),
            answers,
        )
        found: list[Any] = evaluator.filter(page).column(0).to_pylist()
        evaluator.close()
        return found

    assert filtered('("i" IN (SELECT v FROM "$q0"))') == kept
    outside = (
        []
        if None in values
        else [i for i in (1, 2, 3) if i not in values] + ([] if values else [None])
    )
    assert filtered('(NOT ("i" IN (SELECT v FROM "$q0")))') == outside


@pytest.mark.parametrize("null", ["", ", NULL"])
@pytest.mark.parametrize("negated", ["", "NOT "])
@pytest.mark.parametrize(
    ("value", "items"),
    [
        ("i", "1, 12, 2147483647"),
        ("l", "10, 9007199254740993"),
        ("n", "1.25, -2.5, 7"),
        ("d", "0E0, 3E0, DOUBLE 'NaN', 2E0"),
        ("s", "'abcabc', '', 'ßtraße'"),
        ("a", "DATE '2024-02-29', DATE '1969-12-31'"),
        ("w", "TIMESTAMP '2024-02-29 00:00:00', TIMESTAMP '1960-07-01 12:00:00.000001'"),
        ("10 / nullif(j, 0)", "5, -5, 9"),
        ("CAST(nullif(c, 'abc') AS varchar)", "'12', ' 7 '"),
    ],
)
def test_a_long_list_is_looked_up_with_the_result_of_comparing_a_short_one(
    value: str, items: str, negated: str, null: str
) -> None:
    text = f"{value} {negated}IN ({items}{null})"
    compared = computed(text)[0].to_pylist()
    with patch.object(in_lists, "_SHORT", 0):
        tree, _ = tree_of(text)
        assert any(isinstance(part, Apply) and part.name == "in set" for part in walk(tree))
        assert computed(text)[0].to_pylist() == compared


def test_a_value_that_may_fail_is_looked_up_by_a_join_and_fails_only_for_rows_that_reach_it() -> (
    None
):
    with patch.object(in_lists, "_SHORT", 0):
        tree, _ = tree_of("10 / (j - 1) IN (5, 10)")
        assert "list_contains" not in PagePrinter().value(tree)
        with pytest.raises(RowMergeError) as caught:
            computed("10 / (j - 1) IN (5, 10)")
        assert caught.value.code == "DIVISION_BY_ZERO"
        guarded = "CASE WHEN j <> 1 THEN 10 / (j - 1) IN (5, 10) END"
        listed = computed(guarded)[0].to_pylist()
    assert listed == computed(guarded)[0].to_pylist()
    assert True in listed


def test_two_lists_in_two_expressions_are_not_confused() -> None:
    tree, symbols = tree_of("i = 1")
    page = table().combine_chunks().to_batches()[0].rename_columns(symbols)
    columns = []
    for name, numbers in (("x", "1, 3"), ("y", "12, 0")):
        with patch.object(in_lists, "_SHORT", 0):
            tree, _ = tree_of(f"i IN ({numbers})")
        printer = PagePrinter()
        printed = printer.value(tree)
        expression = PageExpression(
            printed, None, "", reads=references(tree), lists=dict(printer.lists)
        )
        columns.append(AssignedColumn(name, pa.bool_(), expression))
    found = PageEvaluator(PageProgram(assigned=tuple(columns))).project(page)
    assert [array.to_pylist() for array in found] == [
        [True, False, False, False, False, None, False, True],
        [False, False, True, False, False, None, True, False],
    ]


def test_a_page_without_rows_is_neither_filtered_nor_projected() -> None:
    page = pa.RecordBatch.from_pydict({"i": pa.array([], pa.int32())})
    evaluator = PageEvaluator(
        PageProgram(PageExpression("no SQL", Span(0, 1, 1, 1), "", reads=frozenset()))
    )
    assert evaluator.filter(page) is page


def test_an_unknown_error_names_the_other_flow() -> None:
    error = translated("INTERNAL Error: something else")
    assert error.code == "GENERIC_INTERNAL_ERROR"
    assert "flow='merge'" in (error.hint or "")


def test_a_missing_duckdb_is_reported_with_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "duckdb", None)
    with pytest.raises(
        SetupError, match="DuckDB, which computes conditions and values on pages, is not installed"
    ) as caught:
        require_duckdb()
    assert caught.value.hint == "Run: pip install 'duckdb>=1.4'"


def test_an_old_duckdb_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("duckdb.__version__", "1.3.2")
    with pytest.raises(SetupError, match=r"DuckDB 1.3.2 is too old"):
        require_duckdb()


def test_columns_may_have_the_names_that_pages_use_themselves() -> None:
    page = pa.RecordBatch.from_pydict({"$row": [1, 0, 2], "page": [7, 8, 9], "v0": [4, 5, 6]})
    columns = [
        AssignedColumn(
            name, pa.int64(), PageExpression(text, Span(0, 1, 1, 1), "", reads=frozenset(reads))
        )
        for name, text, reads in (
            ("a", '("$row" + 10)', {"$row"}),
            ("b", '("v0" + "page")', {"v0", "page"}),
        )
    ]
    where = PageExpression('("$row" >= 1)', Span(0, 1, 1, 1), "", reads=frozenset({"$row"}))
    evaluator = PageEvaluator(PageProgram(where, tuple(columns)))
    kept = evaluator.filter(page)
    assert kept.column(0).to_pylist() == [1, 2]
    assert [array.to_pylist() for array in evaluator.project(kept)] == [[11, 12], [11, 15]]


def test_a_parameter_for_a_long_text_does_not_capture_a_column() -> None:
    import duckdb

    text = once(lambda x: f'CASE WHEN {x} = 60 THEN "v1_0" ELSE {x} END', "+".join(['"v1_0"'] * 60))
    assert duckdb.sql(f'SELECT {text} FROM (SELECT 1 AS "v1_0")').fetchall() == [(1,)]


def test_a_process_that_another_thread_starts_lives_on_after_a_page_was_computed() -> None:
    # With preexec_fn, as PySpark starts Java, Python runs in the child before the program.
    computed("i % 5 + j")
    with ThreadPoolExecutor(1) as another:
        started = another.submit(
            subprocess.run, [sys.executable, "-c", ""], preexec_fn=int, check=False
        )
    assert started.result().returncode == 0
