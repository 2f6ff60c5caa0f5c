from __future__ import annotations

import pytest

from rowmerge_nb.base.errors import RowMergeError
from rowmerge_nb.sql.analyzer.analysis import QueryAnalysis
from tests.sql.support import meaning, place, refusal, spark_text, told, unmarked


def _type(value: str, relation: str = "numbers") -> str:
    found = meaning(f"SELECT {value} FROM {relation}")
    assert isinstance(found, QueryAnalysis)
    return str(found.fields[0].type)


def _spark(value: str, relation: str = "numbers") -> str:
    found = meaning(f"SELECT {value} AS v FROM {relation}")
    assert isinstance(found, QueryAnalysis)
    return unmarked(spark_text(found)).removeprefix("SELECT ").split(" AS `v`")[0]


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ("1", "integer"),
        ("3000000000", "bigint"),
        ("0.125", "decimal(3,3)"),
        ("1E0", "double"),
        ("'abc'", "varchar(3)"),
        ("X'00'", "varbinary"),
        ("NULL", "unknown"),
        ("DECIMAL '12.50'", "decimal(4,2)"),
        ("TIME '12:00:00'", "time(0)"),
        ("TIMESTAMP '2024-01-01 00:00:00.123 UTC'", "timestamp(3) with time zone"),
        ("INTERVAL '1' DAY", "interval day to second"),
        ("ARRAY[1, 2.5]", "array(decimal(11,1))"),
        ("ROW(1, 'a')", "row(integer, varchar(1))"),
        ("CASE WHEN b THEN 1 ELSE 2.5 END", "decimal(11,1)"),
        ("i + n", "decimal(13,2)"),
        ("round(n)", "decimal(9,0)"),
        ("coalesce(i, l)", "bigint"),
        ("greatest(i, d)", "double"),
        ("length(s)", "bigint"),
        ("DATE '2024-01-01' + INTERVAL '1' MONTH", "date"),
        ("transform(ARRAY[1], x -> x * 2.0)", "array(decimal(12,1))"),
        ("sum(n)", "decimal(38,2)"),
        ("avg(n)", "decimal(10,2)"),
    ],
)
def test_types_are_those_of_trino(value, kind):
    assert _type(value) == kind


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ("i / 2", "CAST(`i` div 2 AS INT)"),
        ("n + 1", "CAST(`n` + CAST(1 AS DECIMAL(10,0)) AS DECIMAL(13,2))"),
        ("i IS NOT DISTINCT FROM 3", "(`i` <=> 3)"),
        ("s LIKE 'a\\_%'", "(`s` LIKE 'a\\\\\\\\_%')"),
        ("s || 'x'", "concat(`s`, 'x')"),
        ("i NOT BETWEEN 1 AND 2", "(NOT ((`i` >= 1) AND (`i` <= 2)))"),
        ("TRY(i / 0)", "CAST(`i` div nullif(0, 0) AS INT)"),
    ],
)
def test_spark_text_keeps_the_meaning(value, written):
    assert _spark(value) == written


@pytest.mark.parametrize(
    ("value", "code", "column", "message"),
    [
        ("s + 1", "TYPE_MISMATCH", 10, "Cannot apply operator: varchar + integer"),
        ("s > i", "TYPE_MISMATCH", 10, "Cannot apply operator: varchar < integer"),
        ("frobnicate(i)", "FUNCTION_NOT_FOUND", 8, "Function 'frobnicate' not registered"),
        ("CAST(i AS digits)", "TYPE_MISMATCH", 8, "Unknown type: digits"),
        ("DATE '2024-02-30'", "INVALID_LITERAL", 8, "'2024-02-30' is not a valid DATE literal"),
        (
            "row_number()",
            "MISSING_OVER",
            8,
            "Window function system.builtin.row_number requires an OVER clause",
        ),
        (
            "sum(sum(i))",
            "NESTED_AGGREGATION",
            8,
            "Cannot nest aggregations inside aggregation 'sum': [sum(i)]",
        ),
        ("nope", "COLUMN_NOT_FOUND", 8, "Column 'nope' cannot be resolved"),
        (
            "i < ALL (SELECT s FROM numbers)",
            "TYPE_MISMATCH",
            10,
            'Value expression and result of subquery must be of the same type: row(integer) vs row("s" varchar)',
        ),
        ("x -> x", "TYPE_MISMATCH", 8, "Lambda expression should always be used inside a function"),
        (
            "ROW(1, 2)[i]",
            "EXPRESSION_NOT_CONSTANT",
            18,
            "Subscript expression on ROW requires a constant index",
        ),
        (
            "ROW(1, 2)[3000000000]",
            "TYPE_MISMATCH",
            18,
            "Subscript expression on ROW requires integer index, found bigint",
        ),
        (
            "ROW(1, 2)[0]",
            "INVALID_FUNCTION_ARGUMENT",
            18,
            "Invalid subscript index: 0. ROW indices start at 1",
        ),
        (
            "ROW(1, 2)[3]",
            "INVALID_FUNCTION_ARGUMENT",
            18,
            "Subscript index out of bounds: 3, max value is 2",
        ),
        ("U&'\\zz'", "SYNTAX_ERROR", 8, "Invalid hexadecimal digit: z"),
        ("U&'\\12'", "SYNTAX_ERROR", 8, "Incomplete escape sequence: 12"),
        ("U&'\\+12'", "SYNTAX_ERROR", 8, "Incomplete escape sequence: 12"),
        ("U&'\\+ffffff'", "SYNTAX_ERROR", 8, "Invalid escaped character: ffffff"),
        (
            "U&'\\d83d'",
            "SYNTAX_ERROR",
            8,
            "Invalid escaped character: d83d. Escaped character is a surrogate. Use '\\+123456' instead.",
        ),
    ],
)
def test_errors_have_the_words_and_the_position_of_trino(value, code, column, message):
    error = refusal(f"SELECT {value} FROM numbers")
    assert place(error) == (code, 1, column)
    assert error.message == message


def test_a_long_run_of_equalities_of_a_column_is_looked_up_in_a_list():
    values = ", ".join(map(str, range(10)))
    terms = [f"i = {n}" for n in range(10)]
    assert _spark(" OR ".join(terms)) == f"(`i` IN ({values}))"
    assert (
        _spark(" OR ".join(["s = 'a'", *terms, "i = 1 + 1"]))
        == f"((`s` = 'a') OR (`i` IN ({values})) OR {_spark('i = 1 + 1')})"
    )
    assert _spark(" AND ".join(f"{n} <> i" for n in range(10))) == f"(`i` NOT IN ({values}))"
    assert " IN " not in _spark(" OR ".join(terms[:9]))
    assert " IN " not in _spark(" OR ".join(f"d = {n}E0" for n in range(10)))
    assert " IN " not in _spark(" OR ".join(f"i <> {n}" for n in range(10)))


def test_an_unknown_function_is_reported_with_the_nearest_name():
    assert refusal("SELECT uper(s) FROM numbers").hint == "Did you mean 'upper'?"


def test_try_around_a_form_that_would_swallow_the_failure_is_refused():
    assert refusal("SELECT TRY(coalesce(1 / i, 5)) FROM numbers").code == "NOT_SUPPORTED"
    assert _spark("TRY(coalesce(i, 5))") == "coalesce(`i`, 5)"


def test_nan_is_compared_as_in_ieee_754():
    assert _spark("d = 1E0") == "IF(isnan(`d`) AND 1.0D IS NOT NULL, false, (`d` = 1.0D))"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            "stddev(true)",
            "Unexpected parameters (boolean) for function stddev. Expected: stddev(bigint), stddev(double)",
        ),
        (
            "regexp_count(1, 'a')",
            "Unexpected parameters (integer, varchar(1)) for function regexp_count. Expected: regexp_count(varchar(x), joniregexp)",
        ),
        (
            "trim(1)",
            "Unexpected parameters (integer) for function trim. Expected: trim(char(x)), trim(char(x), codepoints), trim(varchar(x)), trim(varchar(x), codepoints)",
        ),
        (
            "cardinality(1)",
            "Unexpected parameters (integer) for function cardinality. Expected: cardinality(array(E)) E, cardinality(hyperloglog), cardinality(map(K,V)) K, V, cardinality(setdigest)",
        ),
        (
            "array_join(1, 'a')",
            "Unexpected parameters (integer, varchar(1)) for function array_join. Expected: array_join(array(E), varchar) E, array_join(array(E), varchar, varchar) E",
        ),
        (
            "flatten(1)",
            "Unexpected parameters (integer) for function flatten. Expected: flatten(array(array(E))) E",
        ),
        (
            "json_array_get(1, 1)",
            "Unexpected parameters (integer, integer) for function json_array_get. Expected: json_array_get(json, bigint), json_array_get(varchar(x), bigint)",
        ),
        (
            "merge(1)",
            "Unexpected parameters (integer) for function merge. Expected: merge(hyperloglog), merge(qdigest(V)) V, merge(tdigest)",
        ),
        (
            "checksum()",
            "Unexpected parameters () for function checksum. Expected: checksum(T) T:comparable",
        ),
        (
            "mod('a', 1)",
            "Unexpected parameters (varchar(1), integer) for function mod. Expected: mod(bigint, bigint), mod(decimal(a_precision,a_scale), decimal(b_precision,b_scale)), mod(double, double), mod(integer, integer), mod(real, real), mod(smallint, smallint), mod(tinyint, tinyint)",
        ),
        (
            "element_at(1, 1)",
            "Unexpected parameters (integer, integer) for function element_at. Expected: element_at(array(E), bigint) E, element_at(map(K,V), K) K, V",
        ),
    ],
)
def test_the_arguments_of_a_function_are_listed_as_in_trino(call, message):
    with pytest.raises(RowMergeError) as raised:
        meaning(f"SELECT {call}")
    assert (raised.value.code, raised.value.column, raised.value.message) == (
        "FUNCTION_NOT_FOUND",
        8,
        message,
    )


@pytest.mark.parametrize(
    ("statement", "code", "column"),
    [
        ("SELECT numeric_histogram(3, i), nope FROM numbers", "COLUMN_NOT_FOUND", 33),
        ("SELECT spooky_hash_v2_32(X'00') || 1", "FUNCTION_NOT_FOUND", 33),
        ("SELECT value_at_quantile(tdigest_agg(i), 0.5), nope FROM numbers", "NOT_SUPPORTED", 26),
        ("SELECT i, checksum(i) FROM numbers", "EXPRESSION_NOT_AGGREGATE", 8),
        ("SELECT i, checksum(ARRAY[i]) FROM numbers GROUP BY i", "NOT_SUPPORTED", 11),
        ("SELECT cardinality(approx_set(i)), nope FROM numbers", "NOT_SUPPORTED", 20),
        ("VALUES inverse_beta_cdf(1, 1, 1)", "NOT_SUPPORTED", 8),
        ("SELECT * FROM TABLE(exclude_columns(1))", "INVALID_FUNCTION_ARGUMENT", 37),
    ],
)
def test_errors_of_trino_precede_refused_functions(statement, code, column):
    with pytest.raises(RowMergeError) as raised:
        meaning(statement)
    assert (raised.value.code, raised.value.column) == (code, column)


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (
            "greatest(DISTINCT i, 1)",
            "FUNCTION_NOT_AGGREGATE: line 1:8: DISTINCT is not supported for non-aggregation functions",
        ),
        (
            "least(i, 1) FILTER (WHERE b)",
            "FUNCTION_NOT_AGGREGATE: line 1:8: Filter is only valid for aggregation functions",
        ),
        ("concat(s, 'x') OVER ()", "FUNCTION_NOT_WINDOW: line 1:1: Not a window function: concat"),
        ("row_number(nosuch)", "COLUMN_NOT_FOUND: line 1:19: Column 'nosuch' cannot be resolved"),
        (
            "row_number()",
            "MISSING_OVER: line 1:8: Window function system.builtin.row_number requires an OVER clause",
        ),
        (
            "max(sum(i))",
            "NESTED_AGGREGATION: line 1:8: Cannot nest aggregations inside aggregation 'max': [sum(i)]",
        ),
        (
            "max_by(sum(i), nosuch)",
            "COLUMN_NOT_FOUND: line 1:23: Column 'nosuch' cannot be resolved",
        ),
    ],
)
def test_errors_of_types_and_names_within_a_call_precede_refused_functions(
    call: str, error: str
) -> None:
    assert told(refusal(f"SELECT {call} FROM numbers")) == error
