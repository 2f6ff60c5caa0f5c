"""The output of EXPLAIN: queries as nodes, fragments with their exchanges, forms; compared with Trino's recorded output."""

from __future__ import annotations

import json
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from rowmerge_nb import Engine, IcebergConnector, RowMergeError
from rowmerge_nb.trace.node_records import QueryFacts
from tests.plan.recorded import STATEMENTS, recorded_engine

QUERIES: Any = json.loads(
    (Path(__file__).parent / "recorded_queries.json").read_text(encoding="utf-8")
)


@pytest.fixture(scope="module")
def engine() -> Engine:
    engine = Engine()
    engine.register("t", pa.table({"id": [1], "v": ["a"], "x": [1.0]}))
    engine.register("s", pa.table({"id": [1], "w": ["a"]}), not_null=["id"])
    engine.register("p", pa.table({"id": [1], "region": ["a"]}), partitioned_by=["region"])
    engine.register(
        "b", pa.table({"id": [1], "region": ["a"]}), partitioned_by=["region", "bucket(id, 4)"]
    )
    return engine


@pytest.fixture(scope="module")
def recorded() -> Engine:
    return recorded_engine()


def lines(engine: Engine, sql: str, kind: str = "LOGICAL") -> list[str]:
    """Return a plan without layouts and column names of scans, its branches as blanks."""
    text = str(engine.explain(sql, kind=kind))
    kept = (
        line
        for line in text.split("\n")
        if "Layout: " not in line and not re.search(r" (\w+) := \w+:", line)
    )
    return [re.sub("[│├└─]", " ", line).rstrip() for line in kept if line]


def nodes(engine: Engine, sql: str) -> list[str]:
    """Return the nodes of a logical plan without its root, each with its brackets."""
    return [line.strip() for line in lines(engine, sql)[1:] if "[" in line and " := " not in line]


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT id FROM t", ["TableScan[table = memory.default.t]"]),
        ("SELECT id + 1 FROM t", ["Project[]", "TableScan[table = memory.default.t]"]),
        (
            "SELECT * FROM t WHERE id > 1",
            ["Filter[filterPredicate = (id > bigint '1')]", "TableScan[table = memory.default.t]"],
        ),
        (
            "SELECT v, sum(id) FROM t GROUP BY v",
            ["Aggregate[keys = [v]]", "TableScan[table = memory.default.t]"],
        ),
        ("SELECT count(*) FROM t", ["Aggregate[]", "TableScan[table = memory.default.t]"]),
        (
            "SELECT v FROM t GROUP BY v HAVING count(*) > 1",
            [
                "Filter[filterPredicate = (count > bigint '1')]",
                "Aggregate[keys = [v]]",
                "TableScan[table = memory.default.t]",
            ],
        ),
        (
            "SELECT DISTINCT v FROM t",
            ["Aggregate[keys = [v]]", "TableScan[table = memory.default.t]"],
        ),
        (
            "SELECT id FROM t ORDER BY x DESC LIMIT 2",
            [
                "TopN[count = 2, orderBy = [x DESC NULLS LAST]]",
                "TableScan[table = memory.default.t]",
            ],
        ),
        (
            "SELECT id FROM t ORDER BY x FETCH FIRST 2 ROWS WITH TIES",
            [
                "Sort[orderBy = [row_number ASC NULLS LAST]]",
                "Filter[filterPredicate = (rank_num <= bigint '2')]",
                "Window[orderBy = [x ASC NULLS LAST]]",
                "TableScan[table = memory.default.t]",
            ],
        ),
        (
            "SELECT id FROM t ORDER BY id",
            ["Sort[orderBy = [id ASC NULLS LAST]]", "TableScan[table = memory.default.t]"],
        ),
        ("SELECT id FROM t LIMIT 2", ["Limit[count = 2]", "TableScan[table = memory.default.t]"]),
        ("SELECT id FROM t OFFSET 3", ["Offset[count = 3]", "TableScan[table = memory.default.t]"]),
        (
            "SELECT rank() OVER (PARTITION BY v ORDER BY id) FROM t",
            [
                "Window[partitionBy = [v], orderBy = [id ASC NULLS LAST]]",
                "TableScan[table = memory.default.t]",
            ],
        ),
        (
            "SELECT v, w FROM t, s WHERE t.id = s.id AND w = 'a'",
            [
                "Filter[filterPredicate = ((id = id_0) AND (w = varchar 'a'))]",
                "CrossJoin[]",
                "TableScan[table = memory.default.t]",
                "TableScan[table = memory.default.s]",
            ],
        ),
        (
            "SELECT v, w FROM t JOIN s ON t.id = s.id",
            [
                "InnerJoin[criteria = (id = id_0)]",
                "TableScan[table = memory.default.t]",
                "TableScan[table = memory.default.s]",
            ],
        ),
        (
            "SELECT v FROM t LEFT JOIN s ON t.id < s.id",
            [
                "LeftJoin[filter = (id < id_0)]",
                "TableScan[table = memory.default.t]",
                "TableScan[table = memory.default.s]",
            ],
        ),
        (
            "SELECT id FROM t FULL JOIN s USING (id)",
            [
                "Project[]",
                "FullJoin[criteria = (id = id_0)]",
                "TableScan[table = memory.default.t]",
                "TableScan[table = memory.default.s]",
            ],
        ),
        (
            "SELECT v FROM t CROSS JOIN s",
            [
                "CrossJoin[]",
                "TableScan[table = memory.default.t]",
                "TableScan[table = memory.default.s]",
            ],
        ),
        (
            "SELECT v FROM t WHERE id IN (SELECT id FROM s)",
            [
                "Filter[filterPredicate = expr]",
                "SemiJoin[criteria = id = id_0]",
                "TableScan[table = memory.default.t]",
                "TableScan[table = memory.default.s]",
            ],
        ),
        (
            "SELECT v, (SELECT w FROM s) FROM t",
            [
                "CrossJoin[]",
                "TableScan[table = memory.default.t]",
                "EnforceSingleRow[]",
                "TableScan[table = memory.default.s]",
            ],
        ),
        (
            "SELECT v FROM t WHERE EXISTS (SELECT 1 FROM s WHERE s.id = t.id)",
            [
                "Filter[filterPredicate = expr_0]",
                "Apply[correlation = [id]]",
                "TableScan[table = memory.default.t]",
                "Filter[filterPredicate = (id_0 = id)]",
                "TableScan[table = memory.default.s]",
            ],
        ),
        (
            "SELECT id FROM t UNION ALL SELECT id FROM s UNION ALL SELECT 1",
            [
                "Union[]",
                "TableScan[table = memory.default.t]",
                "TableScan[table = memory.default.s]",
                "Project[]",
                "Project[]",
                "Values[]",
            ],
        ),
        (
            "SELECT id FROM t EXCEPT SELECT id FROM s",
            [
                "Except[]",
                "TableScan[table = memory.default.t]",
                "TableScan[table = memory.default.s]",
            ],
        ),
        (
            "SELECT v, sum(id) FROM t GROUP BY ROLLUP (v)",
            [
                "Aggregate[keys = [v$gid, groupid]]",
                "GroupId[symbols = [[v$gid], []]]",
                "TableScan[table = memory.default.t]",
            ],
        ),
        (
            "SELECT id, n FROM t CROSS JOIN UNNEST(ARRAY[1, 2]) u(n)",
            [
                "CrossJoin Unnest[replicate = [id:bigint], unnest = [expr:array(integer)]]",
                "Project[]",
                "TableScan[table = memory.default.t]",
            ],
        ),
        ("SELECT * FROM TABLE(sequence(1, 3))", ["TableFunctionProcessor[name = sequence]"]),
        (
            "SELECT max(m) FROM t a, LATERAL (SELECT max(w) m FROM s WHERE s.id = a.id) q",
            [
                "Aggregate[]",
                "CorrelatedJoin[correlation = [id]]",
                "TableScan[table = memory.default.t]",
                "Aggregate[]",
                "Filter[filterPredicate = (id_0 = id)]",
                "TableScan[table = memory.default.s]",
            ],
        ),
        (
            "SELECT v FROM t WHERE id > ALL (SELECT id FROM s)",
            [
                "Filter[filterPredicate = (($facts.0 = bigint '0') OR ((id > $facts.3) AND (($facts.1 = $facts.0) OR null::boolean)))]",
                "CrossJoin[]",
                "TableScan[table = memory.default.t]",
                "Project[]",
                "Aggregate[]",
                "TableScan[table = memory.default.s]",
            ],
        ),
        (
            "SELECT v FROM t WHERE id IN (SELECT id FROM s WHERE w = v)",
            [
                "Filter[filterPredicate = expr]",
                "Apply[correlation = [v]]",
                "TableScan[table = memory.default.t]",
                "Filter[filterPredicate = (w = v)]",
                "TableScan[table = memory.default.s]",
            ],
        ),
        ("SELECT 1", ["Project[]", "Values[]"]),
        (
            "SELECT 'x' FROM t HAVING true",
            [
                "Project[]",
                "Filter[filterPredicate = boolean 'true']",
                "Aggregate[]",
                "TableScan[table = memory.default.t]",
            ],
        ),
        (
            "SELECT n FROM (SELECT id + 1 AS n, x FROM t) WHERE x > 1e0",
            [
                "Filter[filterPredicate = (x > double '1e0')]",
                "Project[]",
                "TableScan[table = memory.default.t]",
            ],
        ),
    ],
)
def test_a_query_is_shown_by_its_nodes(engine: Engine, sql: str, expected: list[str]) -> None:
    assert nodes(engine, sql) == expected


def test_columns_are_called_as_in_the_result(engine: Engine) -> None:
    text = str(
        engine.explain("SELECT count(*), v AS nm, id + 1 FROM t GROUP BY v, id", kind="LOGICAL")
    )
    assert text.split("\n", maxsplit=1)[0] == "Output[columnNames = [_col0, nm, _col2]]"
    assert [line.strip("│ ") for line in text.split("\n")[2:5]] == [
        "_col0 := count",
        "nm := v",
        "_col2 := expr_0",
    ]


def test_few_rows_of_values_are_shown(engine: Engine) -> None:
    few = str(engine.explain("VALUES (1, NULL), (2, 'x')", kind="LOGICAL"))
    assert "(integer '1', null::varchar(1))" in few
    assert "(integer '2', varchar 'x')" in few
    many = str(engine.explain("VALUES " + ", ".join(map(str, range(1000))), kind="LOGICAL"))
    assert "1000 rows" in many
    assert "integer '7'" not in many


def test_a_windows_frame_and_a_filter_of_an_aggregate_are_shown(engine: Engine) -> None:
    frame = "ROWS BETWEEN 1 PRECEDING AND CURRENT ROW"
    assert "sum := sum(id) ROWS PRECEDING integer '1' CURRENT_ROW" in str(
        engine.explain(f"SELECT sum(id) OVER (ORDER BY x {frame}) FROM t")
    )
    assert "count := count(*) (mask = expr_0)" in str(
        engine.explain("SELECT count(*) FILTER (WHERE x > 1) FROM t", kind="LOGICAL")
    )


def test_a_view_is_shown_by_the_nodes_of_its_query(engine: Engine) -> None:
    engine.run("CREATE OR REPLACE VIEW w AS SELECT v, count(*) AS n FROM t GROUP BY v")
    assert nodes(engine, "SELECT n FROM w") == [
        "Aggregate[keys = [v]]",
        "TableScan[table = memory.default.t]",
    ]


def test_insert_and_create_table_as_show_the_nodes_of_their_query(engine: Engine) -> None:
    assert nodes(engine, "INSERT INTO p (id) SELECT max(id) FROM s") == [
        "TableCommit[target = p]",
        "TableWriter[table = p]",
        "Exchange[partitioning = HASH, arguments = [region]]",
        "Project[]",
        "Aggregate[]",
        "TableScan[table = memory.default.s]",
    ]
    assert nodes(engine, "CREATE TABLE made AS SELECT id FROM s") == [
        "TableCommit[target = made]",
        "TableWriter[table = made]",
        "TableScan[table = memory.default.s]",
    ]


def test_the_source_of_a_merge_is_shown_by_its_nodes(engine: Engine) -> None:
    sql = "MERGE INTO t USING (SELECT id, max(w) AS w FROM s GROUP BY id) q ON t.id = q.id WHEN MATCHED THEN UPDATE SET v = q.w"
    found = nodes(engine, sql)
    assert "Aggregate[keys = [id_0]]" in found
    assert found[-1] == "TableScan[table = memory.default.s]"
    assert not any(node.startswith("Source[") for node in found)


def test_each_step_of_a_recursion_reads_the_step_before(engine: Engine) -> None:
    engine.run("SET SESSION max_recursion_depth = 2")
    recursion = "WITH RECURSIVE r (n) AS (SELECT id FROM t UNION ALL SELECT n + 1 FROM r WHERE n < 3) SELECT n FROM r"
    found = nodes(engine, recursion)
    engine.run("RESET SESSION max_recursion_depth")
    assert found[:8] == [
        "Union[]",
        "TableScan[table = memory.default.t]",
        "Project[]",
        "Filter[filterPredicate = (id < bigint '3')]",
        "TableScan[table = memory.default.t]",
        "Project[]",
        "Filter[filterPredicate = (expr < bigint '3')]",
        "RecursionStep[level = 1]",
    ]
    assert found[8].startswith(
        "Filter[filterPredicate = fail(NOT_SUPPORTED, varchar 'Recursion depth limit exceeded (2)"
    )
    assert found[-1] == "RecursionStep[level = 2]"


def test_a_condition_is_computed_where_duckdb_computes_it(engine: Engine) -> None:
    engine.run("CREATE OR REPLACE VIEW w AS SELECT v, count(*) AS n FROM t GROUP BY v")
    text = [
        line.strip()
        for line in lines(engine, "SELECT n FROM w WHERE v = 'a' AND n > 1", "DISTRIBUTED")
    ]
    shown = [
        line for line in text if line.startswith(("Filter", "Aggregate", "TableScan", "Constraint"))
    ]
    assert shown == [
        "Filter[filterPredicate = (count > bigint '1')]",
        "Aggregate[keys = [v]]",
        "Filter[filterPredicate = (v = varchar 'a')]",
        "TableScan[table = memory.default.t]",
        "Constraint, which the connector may use: v in ('a')",
    ]


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        (
            "(SELECT id FROM s CROSS JOIN UNNEST(ARRAY[1]) AS u (n))",
            "Here Spark executes the query",
        ),
        (
            "(SELECT id FROM s GROUP BY id)",
            "Here DuckDB executes the query, on the pages that this process reads, before the tasks begin",
        ),
        (
            "(SELECT id FROM s WHERE w > 'a')",
            "Here tasks execute the query, on the pages of its one table",
        ),
    ],
)
def test_the_last_node_of_a_source_names_what_executes_it(
    engine: Engine, source: str, sentence: str
) -> None:
    merge = f"MERGE INTO t USING {source} q (k) ON t.id = q.k WHEN MATCHED THEN DELETE"
    assert [
        line.strip() for line in lines(engine, merge, "DISTRIBUTED") if "the query" in line
    ] == [sentence]
    assert "the query" not in str(engine.explain(merge, kind="LOGICAL"))


# -- as printed by Trino


def names(node: dict[str, Any]) -> list[str]:
    """Return the names of a plan's nodes without exchanges. Operators that Trino prints as one are taken apart."""
    own = [] if "Exchange" in node["name"] else split([node["name"]])
    return [*own, *(name for child in node["children"] for name in names(child))]


@pytest.mark.parametrize(
    ("number", "ours"),
    [
        (0, ["Project", "CrossJoin Unnest", "Project", "Unnest", "Project", "Values"]),
        (1, ["Filter", "TableScan"]),
    ],
)
def test_a_query_has_the_nodes_that_trino_printed(number: int, ours: list[str]) -> None:
    engine = Engine()
    kind = pa.decimal128(12, 0)
    rows = {"customer": ["a"], "purchases": pa.array([Decimal(1)], kind), "address": ["a"]}
    engine.register("monthly_accounts_update", pa.table(rows))
    expected = QUERIES["plans"][number]
    found = json.loads(str(engine.run(f"EXPLAIN (TYPE LOGICAL, FORMAT JSON) {expected['sql']}")))
    assert names(found["children"][0]) == ours
    # Trino computes constants when it plans, and a Project drops the columns that are not read.
    assert [name for name in names(expected["plan"]) if name != "Project"] == [
        name for name in ours if name != "Project"
    ]
    if "filterPredicate" in expected["plan"]["descriptor"]:
        predicate = expected["plan"]["descriptor"]["filterPredicate"].replace(
            "purchases_1", "purchases"
        )
        assert found["children"][0]["descriptor"]["filterPredicate"] == predicate


EXPRESSIONS = {
    "expr_3": "customer",
    "expr_4": "purchases",
    "expr_5": "address",
    "field_0": "field",
    "field_2": "field_0",
}


def test_expressions_are_printed_as_trino_prints_them() -> None:
    expected = QUERIES["plans"][0]
    ours = json.loads(str(Engine().run(f"EXPLAIN (TYPE LOGICAL, FORMAT JSON) {expected['sql']}")))[
        "children"
    ][0]
    recorded = [
        re.sub(r"\b(expr_\d|field_\d)\b", lambda match: EXPRESSIONS[match[0]], detail)
        for detail in expected["plan"]["details"]
    ]
    assert ours["details"][2] == recorded[2]
    # Trino reorders sums of constants, and counts in bigint: sequence(0, 19) is array(bigint) there and here.
    assert ours["details"][1] == recorded[1]


def fragments(printed: str) -> list[tuple[str, str, list[str]]]:
    """Return for each fragment its distribution, its outgoing partitioning, and its nodes."""
    found = []
    for part in printed.split("\n\n"):
        head, _, output, *rest = part.split("\n")
        named = [
            re.sub("[│├└─ ]*", "", line, count=1)
            for line in rest
            if re.match(r"[│├└─ ]*[A-Za-z ]+\[", line) and "Layout:" not in line
        ]
        names = [
            line.split("[")[0]
            for line in named
            if " := " not in line and ": " not in line.split("[")[0]
        ]
        found.append((head.split(" ", 2)[2][1:-1], output.split(": ")[1], split(names)))
    return found


def split(names: list[str]) -> list[str]:
    """Take apart operators that are printed as one; a join passes a dynamic filter to its scan at run time."""
    parts = {
        "ScanProject": ["Project", "TableScan"],
        "ScanFilterProject": ["Project", "Filter", "TableScan"],
        "ScanFilter": ["TableScan"],
    }
    return [part for name in names for part in parts.get(name, [name])]


def _of_inserts(partitioning: str) -> str:
    """Omit Iceberg's layout of changed rows: the tables in memory here have none."""
    found = re.sub(r", update = iceberg:.*partitionStructFields=\[[^\]]*\]\]", "", partitioning)
    return found if found == partitioning else found.replace(", field]", "]")


def recorded_fragments(statement: str) -> list[tuple[str, str, list[str]]]:
    found: list[tuple[str, str, list[str]]] = []
    for line in STATEMENTS[statement]["distributed"]:
        if "fragment" in line:
            output = line["info"][1].split(": ")[1]
            found.append((_of_inserts(line["kind"]), _of_inserts(output), []))
            continue
        found[-1][2].extend(split([line["name"]]))
    return found


@pytest.mark.parametrize(
    "statement",
    [
        "merge-delete-update-insert",
        "merge-insert-only",
        "merge-update-insert",
        "merge-update-only",
        "merge-delete-only",
        "merge-self",
        "merge-not-null-column",
        "merge-partitioned",
        "merge-partitioned-two",
        "update-all",
        "update-where",
        "update-partition-column",
        "delete-where",
    ],
)
def test_a_distributed_plan_has_the_fragments_that_trino_printed(
    recorded: Engine, statement: str
) -> None:
    assert compared(recorded, statement, ()) == recorded_fragments(statement)


@pytest.mark.parametrize(
    "statement",
    ["merge-partitioned-delete-only"],
)
def test_a_join_of_two_large_tables_has_the_fragments_that_trino_printed(
    recorded: Engine, statement: str
) -> None:
    off = ("replicate_small_target", "change_in_task", "prune_target")
    assert compared(recorded, statement, off) == recorded_fragments(statement)


def compared(
    recorded: Engine, statement: str, rules_off: tuple[str, ...]
) -> list[tuple[str, str, list[str]]]:
    """Return our fragments, the keys of a join's exchanges under Trino's symbols."""
    return fragments(str(recorded.explain(STATEMENTS[statement]["sql"], rules_off=rules_off)))


# -- distributed


def test_a_query_of_duckdb_is_one_fragment(engine: Engine) -> None:
    found = fragments(
        str(engine.explain("SELECT v, count(*) FROM t GROUP BY v ORDER BY 2 LIMIT 3"))
    )
    assert found == [
        ("COORDINATOR_ONLY", "SINGLE []", ["Output", "TopN", "Aggregate", "TableScan"])
    ]


def test_a_query_of_spark_is_a_fragment_without_exchanges_of_its_own(engine: Engine) -> None:
    found = fragments(
        str(engine.explain("SELECT v, stddev(t.id) FROM t JOIN s ON t.id = s.id GROUP BY v"))
    )
    assert found == [
        ("COORDINATOR_ONLY", "SINGLE []", ["Output", "RemoteSource"]),
        ("SOURCE", "SINGLE []", ["Aggregate", "InnerJoin", "TableScan", "TableScan"]),
    ]


@pytest.mark.parametrize(
    ("target", "insert", "arguments"),
    [
        ("p", "HASH", "operation::tinyint, region::varchar"),
        (
            "b",
            "memory:PartitioningHandle[partitionFunctions=[IDENTITY(region), BUCKET[4](id)]]",
            "operation::tinyint, id::bigint, region::varchar",
        ),
    ],
)
def test_the_partitioning_of_a_target_is_named_transform_by_transform(
    engine: Engine, target: str, insert: str, arguments: str
) -> None:
    text = str(
        engine.explain(
            f"MERGE INTO {target} t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET region = w"
        )
    )
    assert (
        f"LocalExchange[partitioning = MERGE [insert = {insert}], arguments = [{arguments}]]"
        in text
    )
    inserted = str(engine.explain(f"INSERT INTO {target} SELECT * FROM s"))
    assert f"LocalExchange[partitioning = {insert}, arguments" in inserted
    assert "Here the tasks that make rows also store them" in inserted


def test_an_unpartitioned_targets_writers_take_rows_in_turn(engine: Engine) -> None:
    text = str(engine.explain("MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN DELETE"))
    assert "Fragment 1 [ROUND_ROBIN]" in text
    assert "MERGE [" not in text


def test_the_replicated_side_is_the_right_one_and_is_named(engine: Engine) -> None:
    text = str(engine.explain("MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN DELETE"))
    assert "LeftJoin[criteria = (t.id = s.id), distribution = REPLICATED]" in text
    assert "Distribution: REPLICATED: every task gets all of the target" in text
    logical = str(
        engine.explain(
            "MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN DELETE", kind="LOGICAL"
        )
    )
    assert "RightJoin[criteria = (t.id = s.id)]" in logical
    assert "REPLICATED" not in logical


# -- forms


def test_json_has_a_plan_or_the_fragments_by_their_numbers(engine: Engine) -> None:
    logical = json.loads(
        str(engine.run("EXPLAIN (TYPE LOGICAL, FORMAT JSON) SELECT count(*) FROM t"))
    )
    assert (logical["name"], logical["descriptor"]) == ("Output", {"columnNames": "[_col0]"})
    assert logical["children"][0]["children"][0]["descriptor"] == {"table": "memory.default.t"}
    distributed = json.loads(str(engine.run("EXPLAIN (FORMAT JSON) SELECT count(*) FROM t")))
    assert [distributed[number]["name"] for number in distributed] == ["Output"]
    of_spark = json.loads(
        str(engine.run("EXPLAIN (FORMAT JSON) SELECT stddev(t.id) FROM t JOIN s ON t.id = s.id"))
    )
    assert [of_spark[number]["name"] for number in of_spark] == ["Output", "Aggregate"]


def test_graphviz_has_a_cluster_per_fragment_and_edges_between_them(engine: Engine) -> None:
    text = str(
        engine.run("EXPLAIN (FORMAT GRAPHVIZ) SELECT stddev(t.id) FROM t JOIN s ON t.id = s.id")
    )
    assert text.startswith("digraph distributed_plan {")
    assert text.count("subgraph") == 2
    assert text.count(" -> ") == text.count("[label=") - 1, "its nodes are one tree"


def test_validate_accepts_a_valid_statement_and_io_is_refused(engine: Engine) -> None:
    assert str(engine.run("EXPLAIN (TYPE VALIDATE) SELECT 1")) == "true"
    with pytest.raises(RowMergeError) as refused:
        engine.run("EXPLAIN (TYPE IO, FORMAT JSON) SELECT 1")
    assert (refused.value.code, refused.value.line, refused.value.column) == ("NOT_SUPPORTED", 1, 1)
    assert "EXPLAIN (TYPE IO)" in refused.value.message
    with pytest.raises(RowMergeError) as wrong:
        engine.run("EXPLAIN (TYPE IO) SELECT nosuch")
    assert wrong.value.code == "COLUMN_NOT_FOUND", "what Trino finds wrong comes first"
    with pytest.raises(RowMergeError) as unknown:
        engine.run("EXPLAIN (FORMAT XML) SELECT 1")
    assert unknown.value.code == "SYNTAX_ERROR"


def test_partitions_of_iceberg_are_named_as_trino_names_them(tmp_path: Path) -> None:
    engine = Engine()
    engine.add_catalog("ice", IcebergConnector(tmp_path))
    engine.run("CREATE SCHEMA ice.d")
    engine.run(
        "CREATE TABLE ice.d.b (id integer, region varchar) WITH (partitioning = ARRAY['region', 'bucket(id, 4)'])"
    )
    engine.run("CREATE TABLE ice.d.plain (id integer, region varchar)")
    merge = "MERGE INTO ice.d.{} t USING ice.d.plain s ON t.id = s.id WHEN MATCHED THEN DELETE"
    bucketed = str(engine.explain(merge.format("b")))
    trino = next(
        line["args"]
        for line in STATEMENTS["merge-bucketed"]["distributed"]
        if "BUCKET" in line.get("args", "")
    )
    function = re.search(r"IcebergPartitionFunction\[transform=BUCKET.*?\]\]", trino)
    assert function is not None
    assert function[0] in bucketed
    assert "IcebergPartitionFunction[transform=IDENTITY, dataPath=[1], type=varchar]" in bucketed
    plain = str(engine.explain(merge.format("plain")))
    assert "Fragment 1 [ROUND_ROBIN]" in plain
    assert "MERGE [" not in plain


@pytest.mark.parametrize(
    ("source", "nodes"),
    [
        ("s", None),
        ("(VALUES (1, 'a'), (2, 'b'))", None),
        (
            "(SELECT id, w FROM s WHERE w > 'a')",
            [("Filter", "(w > varchar 'a')", 1), ("TableScan", "s", 0)],
        ),
        (
            "(SELECT s.id, max(t.v) FROM s JOIN t ON s.id = t.id GROUP BY s.id)",
            [
                ("Aggregate", "[id_0], max := max(v_0)", 1),
                ("InnerJoin", "(id_0 = id_1)", 2),
                ("TableScan", "s", 0),
                ("TableScan", "t", 0),
            ],
        ),
        (
            "(SELECT id, min(w) FROM s WHERE id > 0 GROUP BY id)",
            [
                ("Aggregate", "[id_0], min := min(w)", 1),
                ("Filter", "(id_0 > bigint '0')", 1),
                ("TableScan", "s", 0),
            ],
        ),
    ],
)
def test_a_plan_has_the_nodes_of_its_source_query(engine: Engine, source: str, nodes: Any) -> None:
    result = engine.run(
        f"MERGE INTO t USING {source} AS u(a, b) ON t.id = u.a WHEN MATCHED THEN UPDATE SET v = u.b",
        dry_run=True,
    )
    facts = [record.facts for record in result.trace.plan if isinstance(record.facts, QueryFacts)]
    found = [
        [(node.name, node.arguments, len(node.sources)) for node in query.nodes] for query in facts
    ]
    assert found == ([] if nodes is None else [nodes])


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT nix FROM t",
        "SELECT",
        "SELECT v,\n nix FROM t",
        "UPDATE t SET nix = 1",
        "INSERT INTO t VALUES (1)",
        "SELECT 1; SELECT 2",
    ],
)
def test_errors_are_placed_in_the_text_that_is_to_be_explained(engine: Engine, sql: str) -> None:
    told = []
    for ask in (engine.explain, engine.run):
        with pytest.raises(RowMergeError) as caught:
            ask(sql)
        told.append((str(caught.value), caught.value.shown, caught.value.excerpt()))
    assert told[0] == told[1]
    with pytest.raises(RowMergeError) as caught:
        engine.explain(sql)
    assert caught.value.statement == sql


def test_an_empty_text_to_explain_is_wrong_at_its_end(engine: Engine) -> None:
    with pytest.raises(
        RowMergeError, match=r"^SYNTAX_ERROR: line 2:3: mismatched input '<EOF>'"
    ) as caught:
        engine.explain("\n  ")
    assert caught.value.excerpt()
