"""Long runs of one operator are lists: read, typed and printed without recursion per term, up to a bound."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rowmerge_nb.base.errors import ParseError
from rowmerge_nb.sql.analyzer.analysis import DeleteAnalysis, QueryAnalysis, UpdateAnalysis
from rowmerge_nb.sql.duckdb.duckdb_text import UnprintableError
from rowmerge_nb.sql.duckdb.printer import PagePrinter
from rowmerge_nb.sql.parser import expression_reader as grammar
from rowmerge_nb.sql.parser.statement_reader import parse
from rowmerge_nb.sql.tree import depth, syntax
from rowmerge_nb.sql.tree.depth import LONGEST_CHAIN, NESTED_CHAIN
from rowmerge_nb.sql.tree.statements import Delete, Update
from rowmerge_nb.sql.typed import expressions as e
from tests.sql.support import meaning, refusal, spark_text

if TYPE_CHECKING:
    from collections.abc import Callable

CHAINS: dict[str, Callable[[int], str]] = {
    "AND": lambda n: f"DELETE FROM numbers WHERE {' AND '.join(f'i <> {k} + l' for k in range(n))}",
    "OR": lambda n: f"DELETE FROM numbers WHERE {' OR '.join(f'i = {k} + l' for k in range(n))}",
    "OR of equal columns": lambda n: (
        f"DELETE FROM numbers WHERE {' OR '.join(f'i = {k}' for k in range(n))}"
    ),
    "+": lambda n: f"UPDATE numbers SET l = {' + '.join(['l'] * n)}",
    "- of decimals": lambda n: f"UPDATE numbers SET n = {' - '.join(['n'] * n)}",
    "*": lambda n: f"UPDATE numbers SET d = {' * '.join(['d'] * n)}",
    "||": lambda n: f"UPDATE numbers SET s = {' || '.join(['s'] * n)}",
    "|| of an array": lambda n: (
        f"UPDATE parts SET tags = tags || {' || '.join(['code'] * (n - 1))}"
    ),
}


@pytest.mark.not_quick
@pytest.mark.only("OR", "OR of equal columns", "- of decimals", "|| of an array")
@pytest.mark.parametrize("form", CHAINS)
def test_a_chain_of_the_greatest_length_needs_no_room_on_the_stack(
    form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(depth, "RECURSION", 0)
    assert isinstance(meaning(CHAINS[form](LONGEST_CHAIN)), DeleteAnalysis | UpdateAnalysis)


@pytest.mark.not_quick
@pytest.mark.only("AND", "+", "*", "||")
@pytest.mark.parametrize("form", CHAINS)
def test_a_chain_with_one_term_more_is_refused(form: str) -> None:
    with pytest.raises(ParseError, match="nested too deeply"):
        parse(CHAINS[form](LONGEST_CHAIN + 1))


def test_a_chain_is_nested_up_to_a_length_and_a_list_beyond_it() -> None:
    def value(operators: int) -> syntax.Expression:
        statement = parse("UPDATE numbers SET l = l" + " + 1" * operators)
        assert isinstance(statement, Update)
        return statement.values[0]

    nested, listed = value(NESTED_CHAIN), value(NESTED_CHAIN + 1)
    assert isinstance(nested, syntax.Binary)
    assert isinstance(listed, syntax.Chain)
    last = listed.steps[-1]
    assert (last.operator, last.error_span, last.span.start) == (
        "+",
        last.operator_span,
        listed.span.start,
    )


def test_a_list_means_the_same_as_nesting(monkeypatch: pytest.MonkeyPatch) -> None:
    sql = "SELECT i" + "".join(
        f" {sign} {term}"
        for sign, term in [("+", "l"), ("-", "n"), ("+", "i"), ("-", "2"), ("+", "d")] * 30
    )

    def kind() -> e.Typed:
        analysis = meaning(f"{sql} FROM numbers")
        assert isinstance(analysis, QueryAnalysis)
        return analysis.fields[0].type

    listed = kind()
    monkeypatch.setattr(grammar, "NESTED_CHAIN", LONGEST_CHAIN)
    assert listed == kind()


def test_null_turns_all_earlier_terms_into_null_also_in_a_list() -> None:
    analysis = meaning(f"SELECT {'i + ' * 200}NULL FROM numbers")
    assert isinstance(analysis, QueryAnalysis)
    assert "CAST(NULL AS INT)" in spark_text(analysis)
    assert "$so_far" not in spark_text(analysis)


def test_an_operand_that_does_not_fit_is_reported_at_its_operator() -> None:
    error = refusal("SELECT i" + " + 1" * 150 + " - b FROM numbers")
    assert (error.code, error.line, error.column) == ("TYPE_MISMATCH", 1, 10 + 150 * 4)
    assert error.message == "Cannot apply operator: integer - boolean"


def test_a_missing_end_of_a_long_chain_is_reported_there() -> None:
    error = refusal("SELECT i" + " || 'x'" * 150 + " || FROM numbers")
    assert (error.code, error.line, error.column) == ("SYNTAX_ERROR", 1, 9 + 150 * 7 + 4)


@pytest.mark.parametrize(("grouped", "code"), [("i", None), ("l", "EXPRESSION_NOT_AGGREGATE")])
def test_a_long_chain_over_groups_reads_what_is_grouped(grouped: str, code: str | None) -> None:
    sql = f"SELECT sum(l){' + i' * 150} FROM numbers GROUP BY {grouped}"
    if code is None:
        meaning(sql)
    else:
        assert refusal(sql).code == code


def test_a_long_chain_of_subqueries_is_refused_if_it_cannot_be_written_out() -> None:
    assert "nested too deeply" in refusal(f"SELECT i{' + (SELECT 1)' * 801} FROM numbers").message


@pytest.mark.parametrize("word", ["AND", "OR"])
def test_terms_that_may_fail_make_no_depth_on_pages_either(word: str) -> None:
    statement = meaning(
        f"DELETE FROM numbers WHERE NOT ({f' {word} '.join(f'i / {k} = l' for k in range(3000))})"
    )
    assert isinstance(statement, DeleteAnalysis)
    assert statement.where is not None
    text = PagePrinter().condition(statement.where.tree)
    depths = [0]
    for sign in text:
        if sign in "()":
            depths.append(depths[-1] + (1 if sign == "(" else -1))
    assert max(depths) < 20


def test_pages_take_a_short_list_of_operators_and_refuse_a_long_one() -> None:
    def printed(operators: int) -> str:
        statement = meaning("UPDATE numbers SET l = l" + " + 1" * operators)
        assert isinstance(statement, UpdateAnalysis)
        value = statement.clauses[0].values[1]
        assert value is not None
        return PagePrinter().value(value.tree)

    assert printed(200).count("+") == 200
    with pytest.raises(UnprintableError, match="a run of 251 operators, of which it takes 250"):
        printed(251)


def test_a_delete_with_a_long_condition_keeps_it_as_one_list() -> None:
    statement = parse(CHAINS["OR"](5000))
    assert isinstance(statement, Delete)
    assert isinstance(statement.where, syntax.Logical)
    assert len(statement.where.terms) == 5000
