"""Answers of the engine that differ from Trino, and the page about them: one data file has both."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.goldens_on_spark.support import recorded_cases
from tests.plan.recorded import DIFFERENCES, STATEMENTS

FILE = Path(__file__).parent / "departures.json"
PAGE = Path(__file__).parents[2] / "docs" / "trino-differences.md"

CONTENT: Mapping[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
KEPT: frozenset[str] = frozenset(CONTENT["kept"])
"""Odd answers of Trino's duplicate rule that the engine reproduces under ``duplicates="trino"``."""
DEPARTURES: Mapping[str, Mapping[str, Any]] = {
    entry["id"]: entry for entry in CONTENT["departures"]
}
"""The answers of the engine and their reasons, by case."""

_INTRODUCTION = """\
# Where the answers differ from Trino's

{total} statements were run on Trino 483, and what it answered was recorded: rows, update count, or the error with its code, message and
place. The tests run every one of them on Spark (`tests/goldens_on_spark`) and compare all of that. This page lists what differs; a
test keeps it equal to what is tested.

{departures} of the statements get another answer here: {odd} where Trino's own answer is an internal error or contradicts the SQL standard,
and {others} others.

## What holds for every statement

- **Run-time errors have a place.** Trino reports a division by zero, an overflow or a failed cast without a position. Here the error points at the expression if it is known; code and message are Trino's.
- **Other places.** Some errors of the analysis have no place in Trino, and one here: a column of `*` that is not in GROUP BY, an unknown column in `grouping(x)`.
  A syntax error in a subquery within brackets of UPDATE's SET is reported at the wrong word here. Trino may report the bracket before it.
- **Hints.** Many errors are followed by a sentence that says what to do next. It is not part of the message.
- **Nothing is written by a statement that fails**, on Trino and here alike; the tests look at the target after every error.
- **CHECK constraints** are asked of the rows that a clause of a MERGE takes, once the CASE has made them. Trino asks them below the CASE, clause after clause, of every joined row with that clause's values, whether the clause takes the row
  or not. What is wrong with a constraint has a place here, that of the table.
- **Read and refused.** These statements and clauses are NOT_SUPPORTED at their place, after a syntax error in them: GRANT, REVOKE, DENY, CREATE, DROP and SET ROLE, SHOW ROLES, SHOW GRANTS and their like,
  SET AUTHORIZATION, AUTHORIZATION in CREATE SCHEMA, SHOW STATS, TABLESAMPLE. So are statements about materialized views, SHOW SESSION and WITH SESSION. SET and RESET SESSION take the properties `time_zone_id` and
  `max_recursion_depth`, and refuse others. The catalog `system` and the tables of `information_schema` about roles and privileges are NOT_SUPPORTED too.
- **Schemas** have no properties.
- **ANALYZE, `ALTER SCHEMA ... RENAME TO`** and CREATE FUNCTION are NOT_SUPPORTED, once what they name is found and, but for functions, their text is read. `ALTER TABLE ... EXECUTE` is of [Iceberg](stores-iceberg-upkeep.md#procedures-of-tables) and [Delta Lake](stores-delta.md), and fields of rows in ALTER TABLE are of
  Iceberg alone; what differs there is on those pages.
- **Views** have no properties; `SECURITY` is read and has no effect, since there is no login. Connectors may store views; the engine keeps those of connectors that do not, for as long as it lives.
  A view may read a DataFrame of the notebook, which is looked up by its name whenever the view is read.
- **`FOR VERSION AS OF` and `FOR TIMESTAMP AS OF`** behind a view or a query of WITH are NOT_SUPPORTED; Trino reads these as they are now, without a word. What a connector says of a version has a place here,
  that of the table. `current_timestamp` is never in the past, however its digits are rounded.
- **What reads the left side of its join** (UNNEST of its columns, LATERAL) uses no `random()`: NOT_SUPPORTED, since Spark has no such join.
- **`WITH RECURSIVE`** takes ten steps at most, or as many as `SET SESSION max_recursion_depth = 20` says. As on Trino all steps are planned and run whether they have rows or not: 3 s for numbers, 8 s for a join with a small table, on
  two cores with other work beside it.
- **`WITH FUNCTION`** takes functions of one expression, `WITH FUNCTION f(x integer) RETURNS integer RETURN x + 1 SELECT ...`, in front of queries and behind INSERT INTO and CREATE TABLE AS. Functions of
  statements (`BEGIN ... END`) and CREATE FUNCTION are NOT_SUPPORTED. An aggregate in a function is an error with a place (EXPRESSION_NOT_SCALAR), and an internal one in Trino. A call is replaced by what it
  computes, up to 1,000 parts: an argument that the function does not need is not computed, and does not fail, as it does in Trino.
- **Maps** in PARTITION BY and INTERSECT ALL are distinguished as everywhere; Trino ends with an internal error there.
- **Correlated subqueries**, and queries behind LATERAL, that Trino cannot take apart into joins ("Given correlated subquery is not supported") are answered where Spark can.
  Those behind LATERAL with several rows of VALUES, a set operation or OFFSET are refused as on Trino.
- **A grand total of no rows** (`GROUP BY ROLLUP (a)`, `CUBE` or a set `()`) is a row, as on Trino, but for correlated subqueries, where it is none.
- **Codes.** `mod(7, 0)` is DIVISION_BY_ZERO and `round(2147483647, -1)` NUMERIC_VALUE_OUT_OF_RANGE here; Trino reports the internal errors "/ by zero" and "integer overflow".
  `date_add` of a date beyond its range and `DATE + INTERVAL` are INVALID_FUNCTION_ARGUMENT and NUMERIC_VALUE_OUT_OF_RANGE here, internal errors in Trino.
  A timestamp, or a text within JSON, that has no room in `varchar(n)` fails with Trino's internal error where it is cast, also under `TRY_CAST`; in Trino where it is stored or sent.
- **Words of FUNCTION_NOT_FOUND.** The list of what a function takes is Trino's. Code and place are Trino's. A part of a JSON value that cannot
  be cast to its type (`CAST(JSON '["x"]' AS array(bigint))`) is named without the whole value around it, which Trino adds.
- **Functions and values** that were asked of a Trino 476 beside this engine, more than fifty thousand, and answered otherwise. Patterns of regular expressions that are no constants may not have classes of POSIX outside of brackets (NOT_SUPPORTED), and are read
  as Java's where classes of characters hold more than characters. `date_add` beyond the range of its type says "integer overflow", Trino also which calculation it was.
  Numbers in hexadecimal
  (`CAST('0x1p3' AS double)`, which Java reads) are refused. `CAST('2024-03-31 02:30:00 Europe/Berlin' AS timestamp)`, a moment that there was not, stays 02:30. `CET` and its like before 1977 go by Java 17's tables; Trino's Java takes them for cities. `width_bucket`
  takes NULL among its bins for 0, Trino also for what stood there before. `max_by` of equal keys may give another row.
  `IS DISTINCT FROM` and groups take NaN as the key of two maps for the same. Grouped or distinct values have the entries of their maps in the order of their keys. A map's key -0.0 is 0.0 in what aggregates and `map_from_entries` make. Two decimals are
  compared in a type of 38 digits, and fail where that does not hold both; beside a literal they are not, on Trino also beside other constants. Of 0.0 and -0.0 `GROUP BY`, `DISTINCT`, `UNION`, `INTERSECT`
  and `EXCEPT` give 0.0, Trino the first of them. `approx_percentile` of more than 1260 values is exact ([functions](functions.md#aggregates)).
  `ORDER BY`, `min` and `max` put arrays and rows in order that have NULL inside, which Trino refuses where it meets one. `SELECT DISTINCT x, abs(x) ... ORDER BY abs(x)` is answered, and refused by Trino. `EXISTS` over `UNNEST` of a column of the query around it is answered, and refused by Trino. `max_by` and
  `min_by` with a number give all values, of which Trino 476 loses some beside NULL. `sequence` from a date to a timestamp has
  microseconds; by months back from the end of February it may stop one step earlier. `slice` to a length near 2^63 gives all elements, Trino none. `TRY_CAST` of a UUID to `varchar(5)` is refused, and NULL in Trino. `avg` of decimals of 38 digits may overflow. `cbrt`, `exp`, `ln`, `log`, `log2`, `log10`, `power`, `tanh` and what is computed with them may differ in the last digit.
- **`SHOW FUNCTIONS`** lists the functions that are here, without descriptions. It lacks Trino's functions of sketches, probability and colors, which [functions](functions.md) refuses by name.
  It also lacks `spooky_hash_v2_32`, `spooky_hash_v2_64`, `numeric_histogram`, `approx_most_frequent`, `word_stem` and `parse_data_size`. Nor has it `from_iso8601_timestamp_nanos`, `from_unixtime_nanos`, `variant_is_null` and `table_changes`.
  It also lists `index`, `char2hexint` and
  `great_circle_distance`, which are Trino's with its plugins for Teradata and geography. **`SET TIME ZONE`** holds for all clocks that
  have no zone of their own. Values of columns that are timestamps with time zone are shown in UTC, whatever the session's zone is; Trino's memory connector keeps the zone of each. **`SHOW CREATE VIEW`** writes the query anew, as Trino does; one with ROLLUP,
  CUBE or GROUPING SETS stays as it was written, and so do calls of JSON functions and `listagg`; LIMIT ALL is omitted.
- **`DESCRIBE OUTPUT`** of SHOW and DESCRIBE names no catalog, schema and table, where Trino names those of `information_schema`; texts of EXPLAIN and SHOW are `varchar` without a length.
  **`DESCRIBE INPUT`** gives `unknown` for some parameters beside `||`, of CALL, and of statements that make views. Errors of a prepared statement have their positions in its text, which Trino rewrites.
- **LIMIT and OFFSET** beyond 2,147,483,647, up to which Spark counts rows, are taken as all rows and as none left.
- **Several candidates.** Trino's error about operands for which it has several functions (`substr(NULL, 1)`) goes on with a list of them; here it ends with its first sentence.
- **A type that there is not** in front of a text (`nosuch 'x'`) is called an unknown type; Trino's sentence begins with the name of a Java class.
- **CREATE TABLE AS** keeps lengths and precisions in memory, as in Trino, up to six digits of a second. Elsewhere it makes columns of `varchar`, `timestamp(6)` and `time(6)`, as Trino's Iceberg connector does.
- **`(a, b) IN (SELECT x, y ...)`** is NULL where the rows are equal but for a NULL. Trino takes two NULLs within rows for equal in the SELECT list and in the condition of DELETE, and not in the WHERE of a query.
- **`GROUP BY ROLLUP (a) ... ORDER BY grouping(a)`** is sorted also where the SELECT list has a column `a`, which Trino refuses (INVALID_ARGUMENTS). A number in place of a `?` in GROUP BY or ORDER BY is one of a column, and to Trino a constant.
- **Not here**, and NOT_SUPPORTED: maps whose keys hold maps, and subqueries that read a map of the query around them. So is `normalize` of columns of both sides in the ON of a join or MERGE, and in comparisons with queries: Spark does not know that its result is the same each time.
"""

_KEPT_INTRODUCTION = """\
Under `duplicates="trino"`, the default, the check for rows matched twice is exactly Trino's, with its oddities. It looks at the pair of
target row and fired clause, and "no clause fired" counts as one of those. The option `duplicates="standard"` does the sensible thing instead.
"""

_PLANS = f"""\
## Plans

`EXPLAIN (TYPE LOGICAL)` under `era="current"` was compared with what Trino printed for {len(STATEMENTS)} statements: the names of the nodes, their order, and the
output columns from the writer down to the join (`tests/plan/test_recorded_plans.py`). Both are brought into one form before:

- The exchanges of Trino's cluster are omitted, except for the one that brings rows to the writers of their partitions. Where a MERGE has one, Spark's shuffles are named at the node that needs them.
- Operators that Trino prints as one (`ScanFilterProject`) are taken apart; a join that Trino turns round by statistics is turned back.
- Columns of scans and joins are not compared: Trino drops unused ones, here Spark does so when it plans.
- Symbols: `field` is `row_id` here, a number behind `case_number` is dropped.
- The text of expressions is the statement's own here (`t.val + s.v` for Trino's `$operator$add(val, v)`).

`EXPLAIN (TYPE DISTRIBUTED)`, the default, was compared fragment by fragment for 14 statements: how each is spread, how its rows travel on, and its nodes with their exchanges
(`tests/plan/test_explained.py`). The fragments are Trino's. A line below a node begins with "Here" if this engine does without one of their exchanges, or sends rows otherwise.

EXPLAIN of a query, and of the source of a statement, shows the query as it runs here: Trino's names for the nodes, in the order of the text, and a line that names the engine.

- No optimizer has reordered the nodes. `FROM a, b WHERE a.id = b.id` is a `Filter` above a `CrossJoin`. For a query that DuckDB answers, conditions are where DuckDB computes them. Spark may still rewrite what it executes.
- A query is one fragment. DuckDB needs no exchanges, and Spark's own are not shown. There are no partial aggregates, estimates, dynamic filters or distributions of a query's joins.
- `TableScan`, `Filter` and `Project` are nodes of their own, for which Trino prints `ScanFilterProject`. Columns have no ids (`id := id:integer` for Trino's `id := 1:id:integer`).
- A subquery is a `SemiJoin` (IN), an `EnforceSingleRow` below a `CrossJoin`, or an `Apply` (EXISTS). One that reads columns of the query around it is an `Apply` or a `CorrelatedJoin`; Trino's optimizer turns these into joins and aggregations. Subqueries of UPDATE, DELETE and the clauses of MERGE stay in their expressions.
- `FETCH FIRST n ROWS WITH TIES` is a `Window` with ranks and numbers, a `Filter` and a `Sort`. Trino makes one `TopNRanking` of them.
- `WITH RECURSIVE` is a `Union` of its steps. A step reads the rows of the step before from a `RecursionStep`, a node that Trino does not have.

Other differences:

- A MERGE whose tasks each have all of the source is printed as `RightJoin[..., distribution = REPLICATED]`, which Trino never does; where every task has all of the target, it is a `LeftJoin` as in Trino.
- Iceberg: deleted rows are sent by the file of their row id; Trino has no such layout without transforms, and prints `update = IcebergPartitioningHandle[update=true, partitionFunctions=...]` with them.
- INSERT's writers are not scaled: `ROUND_ROBIN`, or the table's partitioning.
- `(FORMAT JSON)` and `(FORMAT GRAPHVIZ)` have the same nodes; `estimates` are empty. `(TYPE IO)` is NOT_SUPPORTED. Of statements that have no plan the text is empty.

These plans differ all the same:
"""


def page() -> str:
    """Write the page."""
    cases = {case["id"]: case for case in recorded_cases()}
    odd = [entry for entry in DEPARTURES.values() if cases[entry["id"]].get("oddity")]
    others = [entry for entry in DEPARTURES.values() if not cases[entry["id"]].get("oddity")]
    counts = {
        "total": len(cases),
        "departures": len(DEPARTURES),
        "odd": len(odd),
        "others": len(others),
    }
    parts = [
        _INTRODUCTION.format(**counts),
        "## Where Trino's answer is an internal error, or odd\n",
        _table(cases, odd),
        "## Other departures\n",
        _table(cases, others),
        "## Odd answers that are kept\n",
        _KEPT_INTRODUCTION,
        "| case | statement | Trino and here | sensible |\n| --- | --- | --- | --- |\n"
        + "".join(
            f"| {name} | {_code(cases[name]['sql'])} | {_answer(cases[name]['expect'])} | {_cell(cases[name]['sensible'])} |\n"
            for name in cases
            if name in KEPT
        ),
    ]
    parts += [
        _PLANS,
        "| statement | why |\n| --- | --- |\n"
        + "".join(_plan_line(name, why) for name, why in DIFFERENCES.items()),
    ]
    return "\n".join(parts)


def _plan_line(name: str, why: str) -> str:
    return f"| {_code(STATEMENTS[name]['sql'])} | {_cell(why)} |\n"


def _table(cases: Mapping[str, Any], entries: list[Mapping[str, Any]]) -> str:
    lines = ["| case | statement | Trino 483 | here | because |\n| --- | --- | --- | --- | --- |\n"]
    for entry in entries:
        case = cases[entry["id"]]
        answers = f"{_answer(case['expect'])} | {_answer(entry['expect'])}"
        lines.append(
            f"| {case['id']} | {_code(case['sql'])} | {answers} | {_cell(entry['because'])} |\n"
        )
    return "".join(lines)


def _answer(expect: Mapping[str, Any]) -> str:
    error = expect.get("error")
    if error is None:
        rows = "; ".join(json.dumps(row, ensure_ascii=False) for row in expect["rows"])
        return f"count {expect['count']}, rows {_code(rows) if rows else 'none'}"
    place = f" at {error['line']}:{error['column']}" if "line" in error else ""
    return f"{error['code']}{place}: {_cell(error['message'])}"


def _code(text: str) -> str:
    return f"`{_cell(text)}`"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
