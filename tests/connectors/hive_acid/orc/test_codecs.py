"""Files of every codec, for rows, delete events and compactions, are read back; their tails are those that Hive needs."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

import pyorc
import pytest

from rowmerge_nb import HiveAcidConnector
from rowmerge_nb.base.errors import ConnectorError
from rowmerge_nb.connectors.hive_acid.orc.tail import read_tail
from tests.connectors.hive_acid.kit import contents, inserted, make_table, merge, row_ids

if TYPE_CHECKING:
    from pathlib import Path

COLUMNS = [("id", "bigint"), ("at", "timestamp(6)"), ("name", "varchar(200)")]
LATE = dt.datetime.fromisoformat("2024-02-29 01:02:03.000004")
EARLY = dt.datetime.fromisoformat("1969-12-31 23:59:58.999999")


@pytest.mark.parametrize("early", [False, True], ids=["arrow", "exact"])
@pytest.mark.parametrize(
    ("codec", "kind"),
    [
        ("GZIP", pyorc.CompressionKind.ZLIB),
        ("zstd", pyorc.CompressionKind.ZSTD),
        ("Snappy", pyorc.CompressionKind.SNAPPY),
        ("NONE", pyorc.CompressionKind.NONE),
    ],
)
def test_written_values_are_read_back_with_every_codec(
    tmp_path: Path, codec: str, kind: Any, early: bool
) -> None:
    store = make_table(HiveAcidConnector(tmp_path, compression_codec=codec), COLUMNS)
    rows = [(number, LATE, "a" * 150) for number in range(500)]
    rows[7] = (7, EARLY if early else LATE, "b")
    merge(store, inserted(*rows))
    merge(store, [(2, row_ids(store)[5], None, None, None), (1, None, 900, LATE, "c")])
    wanted = [*rows[:5], *rows[6:], (900, LATE, "c")]
    assert sorted(contents(store)) == wanted
    none = pyorc.CompressionKind.NONE

    def files() -> list[Path]:
        return sorted((store.warehouse / "t").rglob("bucket_*"))

    for major in (False, True):
        assert len(files()) >= (3 if not major else 2)
        for path in files():
            with path.open("rb") as file:
                found = pyorc.Reader(file)
                assert found.compression is (kind if len(found) > 1 else none)
                assert found.user_metadata["hive.acid.key.index"].endswith(b";")
            tail = read_tail(path)
            assert tail is not None
            assert sum(stripe.rows for stripe in tail.stripes) == len(found)
        store.compact("default", "t", major=major)
        store.remove_obsolete("default", "t")
        assert sorted(contents(store)) == wanted
    (path,) = files()
    with path.open("rb") as file:
        assert pyorc.Reader(file).compression is kind


@pytest.mark.parametrize(
    ("codec", "hint"),
    [("LZ4", "Omit it"), ("ZTSD", "ZSTD"), (None, "Omit it"), (1, "Omit it")],
)
def test_an_unknown_codec_is_refused_before_anything_is_created(
    tmp_path: Path, codec: Any, hint: str
) -> None:
    with pytest.raises(ConnectorError, match="is none of NONE, SNAPPY, ZSTD, GZIP") as caught:
        HiveAcidConnector(tmp_path / "lake", compression_codec=codec)
    assert caught.value.code == "INVALID_ARGUMENTS"
    assert hint in (caught.value.hint or "")
    assert not (tmp_path / "lake").exists()
