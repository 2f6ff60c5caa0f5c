from __future__ import annotations

import datetime as dt
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from rowmerge_nb.base.errors import RowMergeError
from rowmerge_nb.notebook.template import render, sql_text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (7, "7"),
        (-0.5, "-0.5E0"),
        (1e-7, "1E-07"),
        (True, "true"),
        (None, "NULL"),
        (Decimal("1.50"), "DECIMAL '1.50'"),
        (dt.date(2024, 2, 29), "DATE '2024-02-29'"),
        (dt.time(1, 2, 3), "TIME '01:02:03'"),
        (dt.datetime.fromisoformat("2024-02-29T01:02:03.000400"), "TIMESTAMP '2024-02-29 01:02:03.000400'"),
        (dt.datetime(2024, 2, 29, tzinfo=dt.timezone(dt.timedelta(hours=-3, minutes=-30))), "TIMESTAMP '2024-02-29 00:00:00 -03:30'"),
        (b"\x00\xff", "X'00ff'"),
        ("accounts", "accounts"),
        (["a'b", 1, None], "'a''b', 1, NULL"),
        (np.int64(3), "3"),
        (np.float64(2.0), "2.0E0"),
        (pd.Timestamp("2024-01-01"), "TIMESTAMP '2024-01-01 00:00:00'"),
    ],
)  # fmt: skip
def test_values_become_sql(value, text):
    assert sql_text(value) == text


def test_quotes_are_doubled_inside_of_quotes_of_either_kind():
    namespace = {"name": """O'Hara "x" """.strip()}
    assert (
        render("""'{{ name }}' "{{ name }}" """, namespace).text
        == """'O''Hara "x"' "O'Hara ""x\""" """
    )


def test_doubled_quotes_do_not_end_a_text():
    assert render("'it''s {{ a }}' {{ a }}", {"a": "b'c"}).text == "'it''s b''c' b'c"


def test_comments_are_not_changed():
    source = "-- {{ nothing }} it's\nSELECT {{ a }} /* {{ nothing }} \n ' */ + {{ a }}"
    assert (
        render(source, {"a": 1}).text
        == "-- {{ nothing }} it's\nSELECT 1 /* {{ nothing }} \n ' */ + 1"
    )


def test_an_expression_may_have_braces_and_quotes_of_its_own():
    assert render("{{ {'a': {'b': 1}}['a']['b'] }}", {}).text == "1"
    assert render("{{ '}}' }}", {}).text == "}}"
    assert render("'{{ \"{{\" }}'", {}).text == "'{{'"


def test_names_inside_of_comprehensions_are_found():
    assert render("{{ [x + y for x in [1, 2]] }}", {"y": 1}).text == "2, 3"


@pytest.mark.parametrize(
    ("source", "message", "line", "column", "length"),
    [
        ("SELECT {{ a", "no closing braces", 1, 8, 2),
        ("a\n b {{ }}", "no expression between the braces", 2, 4, 5),
        ("a\n b {{ 1 + }}", "is not a Python expression", 2, 4, 9),
        ("{{ missing }}", "NameError: name 'missing' is not defined", 1, 1, 13),
    ],
)
def test_a_wrong_expression_has_a_position(source, message, line, column, length):
    with pytest.raises(RowMergeError, match=message) as caught:
        render(source, {})
    assert (caught.value.line, caught.value.column, caught.value.length) == (line, column, length)
    assert caught.value.statement == source


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        (
            "frame",
            (
                "DataFrames are not inserted with braces: name the frame in the statement"
                " without braces"
            ),
        ),
        ("{'a': 1}", "A value of type dict cannot be written as SQL"),
        ("[]", "An empty list has no values to insert"),
        ("len", "A value of type builtin_function_or_method cannot be written as SQL"),
    ],
)
def test_a_value_without_a_sql_form_is_refused_at_its_braces(expression, message):
    with pytest.raises(RowMergeError, match=message) as caught:
        render(f"SELECT\n {{{{ {expression} }}}}", {"frame": pd.DataFrame({"a": [1]})})
    assert caught.value.code == "INVALID_ARGUMENTS"
    assert (caught.value.line, caught.value.column, caught.value.length) == (
        2,
        2,
        len(expression) + 6,
    )


def test_rows_arrays_and_missing_values_are_inserted():
    namespace = {
        "rows": [(1, "it's"), (2, None)],
        "array": np.array([1, 2]),
        "series": pd.Series(["a", pd.NA]),
    }
    assert render("VALUES {{ rows }}", namespace).text == "VALUES (1, 'it''s'), (2, NULL)"
    assert render("{{ array }} {{ series }}", namespace).text == "1, 2 'a', NULL"


def test_the_lines_of_a_cell_of_many_statements_are_looked_up_and_not_counted():
    rendered = render("SELECT\n{{ 1 }};\n" * 3000, {})
    lines = [
        rendered.source_line(place) for place in range(0, len(rendered.text), len("SELECT\n1;\n"))
    ]
    assert lines == list(range(1, 6001, 2))


def test_places_between_values_that_touch_belong_to_the_value_that_follows():
    rendered = render("{{ a }}{{ b }}\n{{ c }}x", {"a": "", "b": "SELECT\n1", "c": ""})
    assert rendered.text == "SELECT\n1\nx"
    assert [rendered.source_line(place) for place in range(len(rendered.text))] == [1] * 9 + [2]
    assert rendered.inserted(0, 8)
    assert not rendered.inserted(0, 9)


def test_an_expression_that_never_ends_is_not_compiled_for_every_brace_that_follows(monkeypatch):
    compiled = []
    monkeypatch.setattr(
        "builtins.compile",
        lambda text, *_: compiled.append(text) or (_ for _ in ()).throw(SyntaxError),
    )
    with pytest.raises(RowMergeError, match="is not a Python expression"):
        render("{{ ( }} " + "SELECT {{ 1 }};\n" * 5000, {})
    assert len(compiled) == 100


@pytest.mark.parametrize(
    ("source", "hint"),
    [
        ("{{ limt }}", "Did you mean 'limit'?"),
        ("{{ day }}", "Set day in a cell above."),
        (
            "{{ config(unique_key='id') }}",
            "Remove it, or write its value; the functions of dbt do not exist in a cell.",
        ),
        ("{{ ref('accounts') }}", "Write the table's name"),
        ("{{ 1 / 0 }}", ""),
    ],
)
def test_a_missing_value_is_answered_with_the_next_step(source, hint):
    with pytest.raises(RowMergeError) as caught:
        render(source, {"limit": 1})
    assert (caught.value.hint or "").startswith(hint)
    assert bool(caught.value.hint) == bool(hint)
