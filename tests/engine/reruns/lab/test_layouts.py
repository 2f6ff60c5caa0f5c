"""Layouts from evidence: the predicted files are those that statements touch and read in real copies."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from rowmerge_nb import DeltaConnector, Engine, IcebergConnector, RowMergeError
from rowmerge_nb.engine.catalog.table_files import SplitRecorder, files_of_table
from rowmerge_nb.spi.handles import SchemaTableName
from rowmerge_nb.trace.saved.traces import save_trace

pytestmark = [pytest.mark.spark, pytest.mark.stand_in]

ROWS = 600
MERGE = (
    "MERGE INTO {t} t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = s.v"
    " WHEN NOT MATCHED THEN INSERT VALUES (s.id, 'r1', DATE '2026-01-05', s.v)"
)
STATEMENTS = (
    MERGE,
    "UPDATE {t} SET v = 0 WHERE region = 'r1' AND id < 40",
    "DELETE FROM {t} WHERE day BETWEEN DATE '2026-01-20' AND DATE '2026-02-10' AND region = 'r2'",
    "DELETE FROM {t} WHERE id IN (3, 598)",
)
SOURCE = pa.table({"id": [1, 6, 111, 700], "v": [1, 1, 1, 1]})
COLUMNS = "id bigint, region varchar, day date, v bigint"
REWRITING = (
    "extra_properties = MAP(ARRAY['write.merge.mode', 'write.update.mode', 'write.delete.mode'],"
    " ARRAY['copy-on-write', 'copy-on-write', 'copy-on-write'])"
)


def rows() -> pa.Table:
    ids = np.random.default_rng(1).permutation(ROWS)
    days = [dt.date(2026, 1, 1) + dt.timedelta(days=int(i) // 5) for i in ids]
    regions = [None if i % 50 == 0 else f"r{i % 4}" for i in ids]
    return pa.table({"id": ids, "region": regions, "day": days, "v": ids * 2})


@pytest.fixture
def engine(spark: Any, tmp_path: Path) -> Engine:
    engine = Engine(spark=spark)
    engine.add_catalog("lake", DeltaConnector(tmp_path / "delta"))
    engine.add_catalog("ice", IcebergConnector(tmp_path / "iceberg"))
    for name in ("lake.default.t", "ice.default.t"):
        load(engine, name, "" if name.startswith("lake") else REWRITING, rows(), 6)
    return engine


def load(engine: Engine, name: str, properties: str, table: pa.Table, loads: int) -> None:
    with_properties = f" WITH ({properties})" if properties else ""
    engine.run(f"CREATE TABLE {name} ({COLUMNS}){with_properties}")
    for part in np.array_split(np.arange(table.num_rows), loads):
        engine.run(
            f"INSERT INTO {name} SELECT * FROM part", namespace={"part": table.take(pa.array(part))}
        )


def files(engine: Engine, name: str) -> dict[str, Any]:
    catalog, schema, table = name.split(".")
    return files_of_table(engine._catalogs.connectors[catalog], SchemaTableName(schema, table))


def truth(engine: Engine, name: str) -> list[tuple[int, int]]:
    """Run each statement, count the files that it read and those removed by its commit, and undo it."""
    recorder = SplitRecorder(engine._catalogs.connectors[name.split(".", maxsplit=1)[0]])
    counts = []
    for statement in STATEMENTS:
        before = files(engine, name)
        recorder.forget()
        engine.run(statement.format(t=name), namespace={"s": SOURCE}, flow="merge")
        read = recorder.files.keys() & before.keys()
        counts.append((len(before.keys() - files(engine, name).keys()), len(read)))
        engine.undo(name)
    return counts


def predicted(cost: Any) -> list[tuple[int, int]]:
    return [(t.files, r.files) for t, r in zip(cost.touched, cost.read, strict=True)]


@pytest.mark.parametrize(
    ("name", "layout", "properties"),
    [
        ("lake.default.t", "as it is", ""),
        ("lake.default.t", "region", "partitioned_by = ARRAY['region']"),
        ("lake.default.t", "sorted by id", ""),
        ("lake.default.t", "sorted by day", ""),
        ("ice.default.t", "as it is", REWRITING),
        ("ice.default.t", "bucket(id, 4)", f"partitioning = ARRAY['bucket(id, 4)'], {REWRITING}"),
        ("ice.default.t", "month(day)", f"partitioning = ARRAY['month(day)'], {REWRITING}"),
        (
            "ice.default.t",
            "region, month(day)",
            f"partitioning = ARRAY['region', 'month(day)'], {REWRITING}",
        ),
    ],
)
def test_predictions_are_what_statements_do_in_a_copy_with_the_layout(
    engine: Engine, name: str, layout: str, properties: str
) -> None:
    before = engine.table(name)
    found = engine.layouts(
        name,
        [statement.format(t=name) for statement in STATEMENTS],
        layouts=None if layout == "as it is" else [layout],
        namespace={"s": SOURCE},
    )
    assert engine.table(name).sort_by("id").equals(before.sort_by("id"))
    costs = {cost.layout: cost for cost in (found.current, *found.layouts)}
    copy = name.replace(".t", ".copy")
    loads = 1 if properties.startswith("part") else 6
    table = rows()
    if layout.startswith("sorted by"):
        table = table.sort_by([(layout.rsplit(maxsplit=1)[-1], "ascending"), ("id", "ascending")])
    load(engine, copy, properties, table, loads)
    assert costs[layout].files == len(files(engine, copy))
    true_counts = truth(engine, copy)
    assert predicted(costs[layout]) == true_counts
    assert sum(touched for touched, _ in true_counts) > 0


def test_the_recommended_layout_saves_what_the_sentence_claims(engine: Engine) -> None:
    statements = [s.format(t="ice.default.t") for s in STATEMENTS[:2]]
    found = engine.layouts("ice.default.t", ";\n".join(statements), namespace={"s": SOURCE})
    best = found.recommended
    assert best is not None
    assert best.moved_bytes == min(cost.moved_bytes for cost in found.layouts)
    assert f"touched {best.touched_total}" in found.sentence
    assert {"bucket(id, 4)", "bucket(id, 16)", "region", "sorted by id", "sorted by v"} <= {
        cost.layout for cost in found.layouts
    }
    assert "id" not in {cost.layout for cost in found.layouts}, "it has too many partitions"
    frame = found.to_pandas()
    assert frame.layout.tolist()[0] == "as it is"
    assert frame.files_touched.tolist()[0] == sum(t.files for t in found.current.touched)
    assert found.to_arrow().num_rows == len(frame)
    ids = {i for i in range(40) if i % 4 == 1 and i % 50}
    assert [s.rows_changed for s in found.statements] == [3, len(ids)]
    assert [s.rows_shared for s in found.statements] == [1, 1]
    assert [s.rows_inserted for s in found.statements] == [1, 0]
    assert len(found.statements_to_pandas()) == 2 * len(frame)
    by_statement = engine.layouts(None, statements, namespace={"s": SOURCE})
    assert (by_statement.table, by_statement.sentence) == (found.table, found.sentence)
    for text in (str(found), found._repr_mimebundle_()["text/html"]):
        assert "bucket(id, 16)" in text
        assert "files touched" in text


def test_traces_records_and_files_are_evidence(engine: Engine, tmp_path: Path) -> None:
    name = "lake.default.t"
    delete = STATEMENTS[1].format(t=name)
    rehearsed = engine.layouts(name, delete, layouts=["region", "sorted by id"])
    text_file = tmp_path / "changes.sql"
    text_file.write_text(f"{delete};\n")
    traced = engine.run(delete, rehearse=True, trace="full")
    save_trace(traced.trace, tmp_path / "a.trace")
    recorded = engine.run(delete, record=str(tmp_path / "a.record"))
    sources = [
        *(text_file, traced, traced.trace, tmp_path / "a.trace"),
        *(recorded, recorded.record(), tmp_path / "a.record"),
    ]
    engine.undo(name)
    for source in sources:
        found = engine.layouts(name, [source], layouts=["region", "sorted by id"])
        assert found.statements[0].rows_changed == 10
        assert found.current.touched[0].files == rehearsed.current.touched[0].files
        assert {c.layout: c.touched[0].files for c in found.layouts} == {
            c.layout: c.touched[0].files for c in rehearsed.layouts
        }
        if source is not text_file:
            assert found.layouts[0].read_total is None
            assert "is unknown" in found.notices[0]
            assert "None" not in str(found)


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        ((5, "DELETE FROM lake.default.t"), "INVALID_ARGUMENTS", "table = 5"),
        (("lake.default.t", ""), "INVALID_ARGUMENTS", "There is no statement"),
        (("lake.default.t", 5), "INVALID_ARGUMENTS", "of type int"),
        (("lake.default.t", Path("missing.sql")), "INVALID_ARGUMENTS", "'missing.sql' cannot be read"),
        (("lake.default.none", "DELETE FROM lake.default.t"), "TABLE_NOT_FOUND", "does not exist"),
        (("lake.default.t", "DELETE FROM ice.default.t WHERE id = 1"), "INVALID_ARGUMENTS", "changes ice.default.t"),
        (("lake.default.t", "INSERT INTO lake.default.t SELECT * FROM lake.default.t"), "INVALID_ARGUMENTS", "but INSERT"),
        (("lake.default.t", "DELETE FROM lake.default.t WHERE nope = 1"), "COLUMN_NOT_FOUND", "nope"),
        (("lake.default.t", "DELETE FROM lake.default.t"), "INVALID_ARGUMENTS", "name no column"),
        (("memory.default.m", "DELETE FROM m WHERE id = 1"), "NOT_SUPPORTED", "has no files"),
    ],
)  # fmt: skip
def test_wrong_arguments_are_errors(
    engine: Engine, arguments: tuple[Any, Any], code: str, words: str
) -> None:
    engine.register("m", pa.table({"id": [1]}))
    with pytest.raises(RowMergeError) as error:
        engine.layouts(*arguments)
    assert error.value.code == code
    assert words in error.value.message


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"layouts": "region"}, "layouts = 'region'"),
        ({"layouts": []}, "layouts"),
        ({"layouts": ["regio"]}, "'regio'"),
        ({"layouts": ["sorted by regio"]}, "'sorted by regio'"),
        ({"layouts": ["bucket(id)"]}, "'bucket(id)'"),
        ({"layouts": ["month(region)"]}, "month(region)"),
        ({"most_files": 0}, "most_files = 0"),
        ({"record": True}, "record"),
        ({"nope": 1}, "'nope'"),
    ],
)
def test_wrong_options_are_errors(engine: Engine, options: dict[str, Any], words: str) -> None:
    with pytest.raises(RowMergeError) as error:
        engine.layouts("lake.default.t", "DELETE FROM lake.default.t WHERE id = 1", **options)
    assert error.value.code == "INVALID_ARGUMENTS"
    assert words in error.value.message
    assert error.value.hint


def test_incomplete_evidence_is_refused(engine: Engine, tmp_path: Path) -> None:
    name = "lake.default.t"
    counted = engine.run(f"DELETE FROM {name} WHERE id = 1", rehearse=True, trace="off")
    with pytest.raises(RowMergeError, match="does not have all rows"):
        engine.layouts(name, counted)
    sampled = engine.run(
        f"DELETE FROM {name} WHERE id < 9", rehearse=True, record=True, record_every=2
    )
    with pytest.raises(RowMergeError, match="lacks pages"):
        engine.layouts(name, sampled)
    (tmp_path / "bytes").write_bytes(b"\xff\xfe")
    with pytest.raises(RowMergeError, match="neither text in UTF-8"):
        engine.layouts(name, tmp_path / "bytes")


def test_a_closed_engine_compares_nothing(tmp_path: Path) -> None:
    engine = Engine()
    engine.close()
    with pytest.raises(RowMergeError, match="closed"):
        engine.layouts("t", "DELETE FROM t")
