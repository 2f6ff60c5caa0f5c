"""Features of Delta tables enabled by other engines: supported, or refused by name before anything is written."""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyroaring import BitMap64

from rowmerge_nb import DeltaConnector, Engine, RowMergeError

pytestmark = [pytest.mark.spark, pytest.mark.stand_in]

ROWS = pa.table({"id": list(range(5)), "p": ["ü/%"] * 5})
STATEMENTS = {
    "INSERT": "INSERT INTO lake.default.t VALUES (9, 'x')",
    "DELETE": "DELETE FROM lake.default.t WHERE id = 1",
    "REPLACE": "CREATE OR REPLACE TABLE lake.default.t (x int)",
}
_B85, _Z85 = (
    "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~",
    "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#",
)


@pytest.fixture
def engine(spark: Any, tmp_path: Path) -> Iterator[Engine]:
    with Engine(spark=spark) as engine:
        engine.add_catalog("lake", DeltaConnector(tmp_path))
        yield engine


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "default" / "t"


def amend(folder: Path, change: Any) -> None:
    """Change the actions of a table's first commit to those of another engine."""
    log = folder / "_delta_log" / f"{0:020}.json"
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    for action in actions:
        change(action)
    log.write_text("".join(f"{json.dumps(action)}\n" for action in actions))


def add_vector(folder: Path, positions: Sequence[int]) -> None:
    """Commit a deletion vector of a table's file as Spark writes it."""
    bitmap = struct.pack("<I", 1681511377) + BitMap64(positions).serialize()
    text = base64.b85encode(bitmap + b"\0" * (-len(bitmap) % 4)).decode()
    lines = (folder / "_delta_log" / f"{0:020}.json").read_text().splitlines()
    add = next(action["add"] for action in map(json.loads, lines) if "add" in action)
    removal = {
        "path": add["path"],
        "dataChange": True,
        "deletionTimestamp": add["modificationTime"],
        "extendedFileMetadata": True,
        "partitionValues": add["partitionValues"],
        "size": add["size"],
    }
    vector = {
        "storageType": "i",
        "pathOrInlineDv": text.translate(str.maketrans(_B85, _Z85)),
        "sizeInBytes": len(bitmap),
        "cardinality": len(positions),
    }
    commit = folder / "_delta_log" / f"{1:020}.json"
    commit.write_text(
        f"{json.dumps({'remove': removal})}\n{json.dumps({'add': {**add, 'deletionVector': vector}})}\n"
    )


def ids(engine: Engine) -> list[int]:
    table = engine.run("SELECT id FROM lake.default.t ORDER BY id").table
    assert table is not None
    return [int(key) for key in table.column("id").to_pylist()]


def outcomes(engine: Engine, feature: str) -> set[str]:
    """Return the statements refused because of a feature, by its name; others succeed."""
    refusals = {}
    for word, sql in STATEMENTS.items():
        try:
            engine.run(sql)
        except RowMergeError as error:
            refusals[word] = str(error)
    assert all(f"it uses the feature {feature}," in text for text in refusals.values()), refusals
    return set(refusals)


@pytest.mark.parametrize("partitioned", [[], ["p"]])
def test_deletion_vectors_are_read_and_no_row_change_loses_them(
    engine: Engine, folder: Path, partitioned: list[str]
) -> None:
    configuration = {"delta.enableDeletionVectors": "true"}
    write_deltalake(folder, ROWS, configuration=configuration, partition_by=partitioned)
    add_vector(folder, [1, 3])
    assert ids(engine) == [0, 2, 4]
    counted = engine.run("SELECT count(*) AS n FROM lake.default.t").table
    assert counted is not None
    assert counted.column("n").to_pylist() == [3]
    files = sorted(folder.rglob("*.parquet"))
    assert outcomes(engine, "deletionVectors") == {"DELETE", "REPLACE"}
    assert len(sorted(folder.rglob("*.parquet"))) == len(files) + 1
    assert ids(engine) == [0, 2, 4, 9]


def test_a_table_with_the_deletion_vector_feature_but_without_vectors_is_changed(
    engine: Engine, folder: Path
) -> None:
    write_deltalake(folder, ROWS, configuration={"delta.enableDeletionVectors": "true"})
    engine.run(STATEMENTS["DELETE"])
    assert ids(engine) == [0, 2, 3, 4]


@pytest.mark.parametrize(
    ("configuration", "feature", "refused"),
    [
        ({"delta.appendOnly": "true"}, "appendOnly", {"DELETE", "REPLACE"}),
        ({"delta.enableChangeDataFeed": "true"}, "changeDataFeed", {"DELETE", "REPLACE"}),
    ],
)
def test_features_of_the_configuration(
    engine: Engine, folder: Path, configuration: dict[str, str], feature: str, refused: set[str]
) -> None:
    write_deltalake(folder, ROWS, configuration=configuration)
    assert outcomes(engine, feature) == refused
    assert ids(engine) == [0, 1, 2, 3, 4, 9]


def test_constraints_are_refused(engine: Engine, folder: Path) -> None:
    write_deltalake(folder, ROWS)
    DeltaTable(folder).alter.add_constraint({"small": "id < 100"})
    assert outcomes(engine, "checkConstraints") == set(STATEMENTS)
    assert ids(engine) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("metadata", "feature"),
    [
        ({"delta.identity.start": 1, "delta.identity.step": 1}, "identityColumns"),
        ({"delta.generationExpression": "1 + 1"}, "generatedColumns"),
        (
            {"delta.invariants": json.dumps({"expression": {"expression": "id > 3"}})},
            "invariants",
        ),
    ],
)
def test_features_of_columns_are_read_and_refused_for_writing(
    engine: Engine, folder: Path, metadata: dict[str, Any], feature: str
) -> None:
    write_deltalake(folder, ROWS)

    def mark(action: dict[str, Any]) -> None:
        if "metaData" in action:
            schema = json.loads(action["metaData"]["schemaString"])
            schema["fields"][0]["metadata"] = metadata
            action["metaData"]["schemaString"] = json.dumps(schema)

    amend(folder, mark)
    assert outcomes(engine, feature) == set(STATEMENTS)
    assert ids(engine) == [0, 1, 2, 3, 4]


def test_row_tracking_is_read_and_refused_for_writing(engine: Engine, folder: Path) -> None:
    write_deltalake(folder, ROWS)

    def mark(action: dict[str, Any]) -> None:
        if "protocol" in action:
            action["protocol"] = {
                "minReaderVersion": 1,
                "minWriterVersion": 7,
                "writerFeatures": ["rowTracking", "domainMetadata"],
            }

    amend(folder, mark)
    assert ids(engine) == [0, 1, 2, 3, 4]
    with pytest.raises(RowMergeError, match="it uses the feature domainMetadata"):
        engine.run(STATEMENTS["DELETE"])


def test_column_mapping_is_refused_before_anything_is_read(engine: Engine, folder: Path) -> None:
    write_deltalake(folder, ROWS, configuration={"delta.columnMapping.mode": "name"})
    with pytest.raises(RowMergeError, match="cannot be read: it uses the feature columnMapping"):
        engine.run("SELECT * FROM lake.default.t")
