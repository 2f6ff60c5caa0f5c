"""Constraints on a Hive table, and large files read in parts, never lose a row."""

from __future__ import annotations

import datetime as dt
import itertools
import random
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyorc
import pytest
from pyarrow import orc as arrow_orc

from rowmerge_nb import HiveAcidConnector
from rowmerge_nb.base.errors import ConnectorError
from rowmerge_nb.connectors.hive_acid import reader
from rowmerge_nb.connectors.hive_acid.orc import writing as orc_writing
from rowmerge_nb.connectors.hive_acid.orc.orc_reading import DeletedRows, KeyBounds
from rowmerge_nb.connectors.hive_acid.orc.tail import read_tail
from rowmerge_nb.connectors.hive_acid.reader import read_split, splits_of
from rowmerge_nb.spi import ColumnDomain, Constraint
from tests.connectors.hive_acid.kit import Statement, contents, inserted, make_table, merge, row_ids

TYPES = {
    "id": "bigint",
    "n": "smallint",
    "s": "varchar",
    "v": "varchar(5)",
    "d": "date",
    "m": "decimal(9,2)",
    "x": "double",
    "c": "char(3)",
    "p": "varchar",
}


def read(
    store: HiveAcidConnector, constraint: Constraint | None = None, *columns: str
) -> list[tuple[Any, ...]]:
    statement = Statement(store)
    handles = [
        h
        for h in statement.metadata.get_column_handles(statement.session, statement.handle)
        if not columns or h.name in columns
    ]
    splits = splits_of(statement.handle, constraint)
    table = statement.handle.table
    rows = [
        tuple(row.values())
        for s in splits
        for page in read_split(s, table, handles)
        for row in page.to_pylist()
    ]
    statement.commit()
    return rows


def paths(store: HiveAcidConnector, **domains: ColumnDomain) -> list[str]:
    statement = Statement(store)
    found = splits_of(statement.handle, Constraint(domains))
    statement.commit()
    return sorted(
        {split.path.relative_to(statement.handle.table.location).as_posix() for split in found}
    )


def test_partitions_are_skipped_by_their_values(tmp_path: Path) -> None:
    store = make_table(tmp_path, partitioned_by=("p",))
    merge(store, inserted((1, "a", "x"), (2, "b", "y"), (3, "c", None)))
    delta = "delta_0000001_0000001_0000/bucket_00000"
    assert paths(store, p=ColumnDomain(values=("x", "z"))) == [f"p=x/{delta}"]
    assert paths(store, p=ColumnDomain(low="y")) == [f"p=y/{delta}"]
    assert paths(store, p=ColumnDomain()) == [f"p=x/{delta}", f"p=y/{delta}"]
    assert len(paths(store)) == 3


@pytest.mark.parametrize("version", [1, 2])
def test_buckets_are_skipped_if_all_bucket_columns_have_values(
    tmp_path: Path, version: int
) -> None:
    store = make_table(
        tmp_path, bucketed_by=("v", "id"), bucket_count=16, bucketing_version=version
    )
    merge(store, inserted(*((i, f"v{i}", "x") for i in range(100))))
    assert len(paths(store)) > 5
    both = {"id": ColumnDomain(values=(3, 4)), "v": ColumnDomain(values=("v3",))}
    assert 1 <= len(paths(store, **both)) <= 2
    assert (3, "v3", "x") in read(store, Constraint(both))
    assert len(paths(store, id=ColumnDomain(values=(3,)))) > 5
    assert paths(store, id=ColumnDomain(values=()), v=ColumnDomain(values=("v3",))) == []


def test_values_that_a_column_cannot_have_rule_nothing_out(tmp_path: Path) -> None:
    store = make_table(
        tmp_path,
        [("id", "smallint"), ("c", "char(3)")],
        bucketed_by=("id",),
        bucket_count=4,
        partitioned_by=("c",),
    )
    merge(store, inserted((1, "a  "), (2, "b  ")))
    assert (1, "a  ") in read(store, Constraint({"id": ColumnDomain(values=(1 << 40, 1))}))
    assert read(
        store, Constraint({"id": ColumnDomain(values=(1,)), "c": ColumnDomain(values=("a",))})
    ) == [(1, "a  ")]


def test_zero_has_two_forms_so_that_buckets_of_floating_point_are_all_read(tmp_path: Path) -> None:
    store = make_table(tmp_path, [("x", "double")], bucketed_by=("x",), bucket_count=4)
    merge(store, inserted((0.0,), (-0.0,), (1.5,)))
    assert sorted(read(store, Constraint({"x": ColumnDomain(values=(0.0,))}))) == [
        (-0.0,),
        (0.0,),
        (1.5,),
    ]


@pytest.fixture
def tiny_stripes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(orc_writing, "_STRIPE_BYTES", 4096)
    monkeypatch.setattr(reader, "SPLIT_BYTES", 20_000)


def large(tmp_path: Path, rows: int = 60_000, **properties: Any) -> HiveAcidConnector:
    """A table with a file of many stripes, some of whose rows were deleted."""
    store = make_table(tmp_path, **properties)
    merge(store, inserted(*((i, f"v{i:06d}", "x") for i in range(rows))))
    ids = row_ids(store)
    merge(store, [(2, ids[i], None, None, "x") for i in range(0, rows, 1000)])
    return store


def test_a_large_file_is_read_in_parts_and_only_those_that_matter(
    tmp_path: Path, tiny_stripes: None
) -> None:
    store = large(tmp_path)
    statement = Statement(store)
    parts = [split.stripes for split in splits_of(statement.handle)]
    assert len(parts) > 3
    assert all(
        before is not None and after is not None and before[1] == after[0]
        for before, after in itertools.pairwise(parts)
    )
    assert sorted(read(store)) == [(i, f"v{i:06d}", "x") for i in range(60_000) if i % 1000]
    for domain in (ColumnDomain(low=30_500, high=30_600), ColumnDomain(values=(30_500, 30_600))):
        few = read(store, Constraint({"id": domain}))
        assert {(30_500, "v030500", "x"), (30_600, "v030600", "x")} <= set(few)
        assert len(few) < 20_000
    assert len(read(store, Constraint({"v": ColumnDomain(low="v059999")}))) < 20_000
    assert read(store, Constraint({"id": ColumnDomain(low=60_000)})) == []


def test_a_part_of_a_file_that_has_changed_is_an_error(tmp_path: Path, tiny_stripes: None) -> None:
    store = large(tmp_path)
    statement = Statement(store)
    split = splits_of(statement.handle)[0]
    split.path.write_bytes(b"something else")
    with pytest.raises(ConnectorError, match="could be read when the statement began") as caught:
        list(read_split(split, statement.handle.table, ()))
    assert caught.value.code == "HIVE_BAD_DATA"


def test_row_ids_of_parts_are_those_of_the_whole(tmp_path: Path, tiny_stripes: None) -> None:
    store = large(tmp_path)
    ids = row_ids(store)
    assert ids[59_999] == {"originalTransaction": 1, "bucket": 536870912, "rowId": 59_999}
    merge(store, [(2, ids[59_999], None, None, "x"), (2, ids[1], None, None, "x")])
    assert {row[0] for row in read(store)} == {
        i for i in range(60_000) if i % 1000 and i not in {1, 59_999}
    }


def test_originals_are_read_in_parts_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "old"
    folder.mkdir()
    rows = pa.table({"id": range(50_000), "v": ["a"] * 50_000})
    with arrow_orc.ORCWriter(str(folder / "000000_0"), stripe_size=4096) as writer:
        writer.write(rows)
    arrow_orc.write_table(pa.table({"id": [50_000], "v": ["b"]}), str(folder / "000000_0_copy_1"))
    monkeypatch.setattr(reader, "SPLIT_BYTES", 10_000)
    store = HiveAcidConnector(tmp_path / "lake")
    store.register_table("default", "t", folder, columns={"id": "bigint", "v": "varchar"})
    ids = row_ids(store)
    assert [ids[i]["rowId"] for i in (0, 30_000, 49_999, 50_000)] == [0, 30_000, 49_999, 50_000]
    merge(store, [(2, ids[i], None, None) for i in (0, 30_000, 50_000)])
    assert {row[0] for row in read(store)} == set(range(1, 50_000)) - {30_000}
    some = read(store, Constraint({"id": ColumnDomain(values=(29_999, 30_000, 30_001))}))
    assert {29_999, 30_001} <= {row[0] for row in some}
    assert 30_000 not in {row[0] for row in some}


def test_delete_events_of_other_rows_are_not_held(tmp_path: Path, tiny_stripes: None) -> None:
    store = large(tmp_path)
    path = next((store.warehouse / "t").glob("delete_delta*/bucket_00000"))
    assert len(DeletedRows([path])._events) == 60
    assert len(DeletedRows([path], KeyBounds((1, 1), (0, 999)))._events) == 1
    assert not DeletedRows([path], KeyBounds((2, 9), (0, 60_000)))


def random_value(kind: str, draw: random.Random) -> Any:
    """One of few values, so that domains contain them; sometimes NULL."""
    if draw.random() < 0.15:
        return None
    number = draw.randint(-20, 20)
    made: dict[str, Any] = {
        "varchar": "".join(draw.choice("aäz\U0001f600") for _ in range(draw.randint(1, 3))),
        "date": dt.date(1970, 1, 1) + dt.timedelta(number),
        "decimal(9,2)": Decimal(number) / 4,
        "double": draw.choice([float(number), float("nan"), -0.0]),
        "char(3)": draw.choice(["a  ", "ab ", "abc"]),
    }
    return made.get(kind.replace("(5)", ""), number)


def satisfies(value: Any, domain: ColumnDomain) -> bool:
    if value is None or (domain.values is not None and value not in domain.values):
        return False
    return (domain.low is None or value >= domain.low) and (
        domain.high is None or value <= domain.high
    )


@pytest.mark.trial
@pytest.mark.parametrize("seed", range(12))
def test_no_row_within_a_random_constraint_is_omitted(tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)
    layouts: list[dict[str, Any]] = [{}, {"partitioned_by": ("p",)}]
    layouts += [
        dict(layout, bucketed_by=draw.choice([("id",), ("d", "s"), ("v",)]), bucket_count=3)
        for layout in layouts
    ]
    store = make_table(tmp_path, list(TYPES.items()), **layouts[seed % 4])
    for _ in range(4):
        merge(
            store,
            inserted(
                *(
                    tuple(random_value(kind, draw) for kind in TYPES.values())
                    for _ in range(draw.randint(1, 12))
                )
            ),
        )
    statement = Statement(store)
    deleted = draw.sample(statement.rows(ids=True), 5)
    statement.commit()
    merge(store, [(2, row["$row_id"], *[None] * (len(TYPES) - 1), row["p"]) for row in deleted])
    rows = read(store)
    names = [column.name for column in Statement(store).handle.table.columns]
    for _ in range(15):
        domains = {}
        for name in draw.sample(names, draw.randint(1, 3)):
            values = [
                value for _ in range(3) if (value := random_value(TYPES[name], draw)) is not None
            ]
            low, high = (draw.choice([None, *values]) for _ in range(2))
            domains[name] = ColumnDomain(tuple(values) if draw.random() < 0.5 else None, low, high)
        found = read(store, Constraint(domains))
        wanted = [
            row
            for row in rows
            if all(satisfies(row[names.index(name)], domain) for name, domain in domains.items())
        ]
        left = [
            row
            for row in found
            if all(satisfies(row[names.index(name)], domain) for name, domain in domains.items())
        ]
        assert sorted(map(repr, left)) == sorted(map(repr, wanted)), domains
        assert len(found) <= len(rows)


def test_a_row_in_the_file_of_another_bucket_is_an_error(tmp_path: Path) -> None:
    store = make_table(tmp_path, bucketed_by=("id",), bucket_count=4)
    merge(store, inserted((1, "a", "x"), (5, "b", "x")))
    folder = store.warehouse / "t" / "delta_0000001_0000001_0000"
    (folder / "bucket_00001").rename(folder / "bucket_00002")
    for columns in (("v",), ("id",)):
        with pytest.raises(
            ConnectorError, match="is for bucket 2, but contains a row for bucket 1"
        ) as caught:
            read(store, None, *columns)
        assert caught.value.code == "HIVE_INVALID_BUCKET_FILES"


def test_texts_with_a_length_are_of_their_own_types_in_the_files(tmp_path: Path) -> None:
    columns = [
        ("v", "varchar(7)"),
        ("c", "char(3)"),
        ("r", "row(a array(char(2)), b varchar)"),
        ("s", "varchar"),
    ]
    store = make_table(tmp_path, columns)
    merge(store, inserted(("abc", "x  ", {"a": ["y ", None], "b": "z"}, "free")))
    path = next((store.warehouse / "t").glob("delta*/bucket_00000"))
    with path.open("rb") as file:
        found = pyorc.Reader(file)
        assert (
            str(found.schema["row"])
            == "struct<v:varchar(7),c:char(3),r:struct<a:array<char(2)>,b:string>,s:string>"
        )
        assert found.user_metadata["hive.acid.version"] == b"2"
        assert next(found)[5] == ("abc", "x", (["y", None], "z"), "free")
    assert contents(store) == [("abc", "x  ", {"a": ["y ", None], "b": "z"}, "free")]


def test_an_unreadable_tail_is_not_an_obstacle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    for content in (b"", b"x", bytes(range(256)), b"\xff" * 300):
        path.write_bytes(content)
        assert read_tail(path) is None
    store = make_table(tmp_path / "lake")
    merge(store, inserted((1, "a", "x")))
    monkeypatch.setattr(reader, "read_tail", lambda path: None)
    assert read(store, Constraint({"id": ColumnDomain(low=7)})) == [(1, "a", "x")]
    assert read(store, Constraint({"id": ColumnDomain(values=(7,))})) == [], (
        "the rows themselves say so"
    )


@pytest.mark.parametrize(
    ("wanted", "whole"), [((8,), 1), ((5,), 0), ((1, 2), 2), ((3, 4, 5, 6, 7, *range(100, 112)), 2)]
)
def test_keys_are_read_before_the_other_columns_if_few_rows_matter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wanted: tuple[int, ...], whole: int
) -> None:
    store = make_table(tmp_path)
    merge(store, inserted((1, "t1", None), (9, "t1", None)))
    merge(store, inserted((2, "t2", None), (8, "t2", None)))
    reads: list[list[str]] = []
    read_stripe = arrow_orc.ORCFile.read_stripe

    def recorded(self: Any, number: int, columns: list[str]) -> Any:
        reads.append(columns)
        return read_stripe(self, number, columns=columns)

    monkeypatch.setattr(arrow_orc.ORCFile, "read_stripe", recorded)
    found = read(store, Constraint({"id": ColumnDomain(wanted, 1, 9)}))
    assert [columns.count("row.v") for columns in reads].count(1) == whole
    assert [columns == ["row.id"] for columns in reads].count(True) == (
        2 if len(wanted) < 17 else 0
    )
    monkeypatch.undo()
    assert [row for row in found if row[0] in wanted] == [
        row for row in contents(store) if row[0] in wanted
    ]


@pytest.mark.parametrize("seed", range(3))
def test_the_same_rows_are_omitted_for_all_requested_columns(
    tmp_path: Path, tiny_stripes: None, seed: int
) -> None:
    chance = random.Random(seed)
    store = make_table(tmp_path)
    merge(
        store, inserted(*((chance.randrange(40), chance.choice("abc"), None) for _ in range(200)))
    )
    for _ in range(10):
        domains = {"id": ColumnDomain(tuple(chance.sample(range(40), chance.randrange(1, 4))))}
        if chance.random() < 0.5:
            domains["v"] = ColumnDomain((chance.choice("abc"),))
        whole = read(store, Constraint(domains))
        assert [row[0] for row in whole] == [
            row[0] for row in read(store, Constraint(domains), "id")
        ]
        assert [row[1] for row in whole] == [
            row[0] for row in read(store, Constraint(domains), "v")
        ]
        kept = sorted(
            row
            for row in contents(store)
            if all(row[["id", "v", "p"].index(c)] in d.values for c, d in domains.items())
        )
        assert [row for row in sorted(whole) if row in kept] == kept
