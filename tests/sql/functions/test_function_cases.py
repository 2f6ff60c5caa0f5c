"""Expressions and Trino's results, in data files: ``expression => type | value`` or ``expression !! CODE message``."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from rowmerge_nb.base.errors import RowMergeError
from rowmerge_nb.sql.analyzer.analysis import QueryAnalysis
from tests.case_lines import sample
from tests.sql.support import meaning, spark_text, with_rows

FOLDER = Path(__file__).parent / "function_cases"


def _cases():
    for path in sorted(FOLDER.glob("*.txt")):
        for line in path.read_text(encoding="utf-8").splitlines():
            expression, kind, expected = re.split(r" (=>|!!) ", line, maxsplit=1)
            yield path.stem, expression, kind, expected.strip()


CASES = list(_cases())
SUBJECTS = sorted({subject for subject, *_ in CASES})
TOGETHER = 20_000
"""The maximum length of Spark SQL in one query: Spark visits all of a query's expressions as often as the deepest one requires."""


def shown(value):
    """A value in the form of the data files."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        doubled = value.replace("'", "''")
        return f"'{doubled}'"
    if isinstance(value, bytes | bytearray):
        return f"X'{bytes(value).hex().upper()}'"
    if isinstance(value, float):
        return repr(value).replace("inf", "Infinity").replace("nan", "NaN")
    if isinstance(value, dict):
        return "{" + ", ".join(f"{shown(k)}={shown(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return f"[{', '.join(map(shown, value))}]"
    if isinstance(value, tuple):
        return f"({', '.join(map(shown, value))})"
    return str(value)


def _analyzed(spark, expression):
    found = with_rows(spark, meaning(f"SELECT {expression} AS answer"))
    assert isinstance(found, QueryAnalysis)
    return str(found.fields[0].type), spark_text(found).removeprefix("SELECT ").removesuffix(
        " AS `answer`"
    )


def _values(spark, texts):
    """Evaluate many expressions in few jobs; halve them if they are too long together, and to find a failure."""
    if len(texts) == 1 or sum(map(len, texts)) <= TOGETHER:
        try:
            columns = ", ".join(f"{text} AS v{place}" for place, text in enumerate(texts))
            return list(spark.sql(f"SELECT {columns} FROM VALUES (1)").collect()[0])
        except Exception as error:  # noqa: BLE001 - whatever Spark raises is the answer of the one expression that raised it
            if len(texts) == 1:
                return [error]
    middle = len(texts) // 2
    return _values(spark, texts[:middle]) + _values(spark, texts[middle:])


@pytest.fixture(scope="module")
def answers(spark, request):
    chosen = {
        item.callspec.params.get("expression")
        for item in request.session.items
        if item.path == request.path and hasattr(item, "callspec")
    }
    found = {}
    for subject in SUBJECTS:
        texts = [e for s, e, kind, _ in CASES if s == subject and kind == "=>" and e in chosen]
        if not texts:
            continue
        analyzed = [_analyzed(spark, text) for text in texts]
        values = _values(spark, [sql for _, sql in analyzed])
        for text, (kind, _), value in zip(texts, analyzed, values, strict=True):
            found[text] = (
                f"{type(value).__name__}: {value}"
                if isinstance(value, Exception)
                else f"{kind} | {shown(value)}"
            )
    return found


@pytest.mark.parametrize(
    ("expression", "expected"),
    sample((e, x) for _, e, kind, x in CASES if kind == "=>"),
    ids=lambda text: text[:60],
)
@pytest.mark.each_case
def test_expression_has_trinos_type_and_value(answers, expression, expected):
    assert answers[expression] == expected


@pytest.mark.parametrize(
    ("expression", "expected"),
    sample((e, x) for _, e, kind, x in CASES if kind == "!!"),
    ids=lambda text: text[:60],
)
@pytest.mark.each_case
def test_expression_fails_with_the_code_and_the_words_that_trino_has(spark, expression, expected):
    from rowmerge_nb.engine.spark.errors.translate import translate

    with pytest.raises(RowMergeError) as caught:
        _, sql = _analyzed(spark, expression)
        try:
            # A local relation is evaluated while Spark plans: no job.
            spark.sql(f"SELECT {sql} FROM VALUES (1)").collect()
        except Exception as error:
            raise translate(error, "run") from error
    assert f"{caught.value.code} {caught.value.message}".strip().replace("\n", "\\n") == expected
