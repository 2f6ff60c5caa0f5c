"""Messages of hosts, and the work of the host before Java runs."""

from __future__ import annotations

import socket
import struct
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest

from rowmerge_nb.base.errors import ConnectorError
from rowmerge_nb.connectors.trino.host.block_building import _fixed12, children_of
from rowmerge_nb.connectors.trino.host.plugin_loading import implementing_classes, plugin_paths
from rowmerge_nb.connectors.trino.host.versions import pack_words, unpack_words
from rowmerge_nb.connectors.trino.host_channel import (
    ChannelClosedError,
    HostChannel,
    pack_batch,
    unpack_batch,
    unpack_fragments,
)

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def ends() -> Iterator[tuple[HostChannel, socket.socket]]:
    here, there = socket.socketpair()
    yield HostChannel(here), there
    here.close()
    there.close()


def test_a_message_is_a_length_a_header_and_bytes(
    ends: tuple[HostChannel, socket.socket],
) -> None:
    channel, raw = ends
    channel.send({"call": "ärger"}, b"xyz")
    (length,) = struct.unpack(">I", raw.recv(4))
    assert raw.recv(length).decode() == '{"call": "ärger", "bytes": 3}'
    assert raw.recv(10) == b"xyz"


def test_a_closed_channel_is_an_error_of_its_own(
    ends: tuple[HostChannel, socket.socket],
) -> None:
    channel, raw = ends
    raw.sendall(b"\x00\x00")
    raw.close()
    with pytest.raises(ChannelClosedError):
        channel.receive()
    with pytest.raises(ChannelClosedError):
        channel.send({}, b"x" * 10**6)


def test_invalid_messages_are_refused(ends: tuple[HostChannel, socket.socket]) -> None:
    channel, raw = ends
    raw.sendall(b"HTTP/1.1 200 OK")
    with pytest.raises(ValueError, match="longer than"):
        channel.receive()


def test_batches_of_any_shape_pass() -> None:
    batch = pa.record_batch({"a": pa.array([1, None]), "b": [[1], None]}).slice(1)
    assert unpack_batch(pack_batch(batch)).to_pylist() == [{"a": None, "b": None}]
    empty = pa.record_batch({"a": pa.array([], pa.string())})
    assert unpack_batch(pack_batch(empty)).num_rows == 0


def test_lengths_must_fit_the_fragments() -> None:
    with pytest.raises(ValueError, match="Fragments of 4 bytes"):
        unpack_fragments([2, 2], b"abc")


@pytest.mark.parametrize("count", [1, 7, 8, 63, 64, 65, 200])
@pytest.mark.parametrize("offset", [0, 1, 8, 13])
def test_validity_survives_the_words_of_trino(count: int, offset: int) -> None:
    flags = np.arange(offset + count) % 3 != 0
    words = pack_words(np.packbits(flags, bitorder="little"), offset + count)
    back = np.unpackbits(unpack_words(words, offset, count), bitorder="little", count=count)
    assert back.astype(bool).tolist() == flags[offset:].tolist()


def test_twelve_bytes_have_the_long_first() -> None:
    assert _fixed12(np.array([-1]), np.array([999])).tolist() == [[-1, -1, 999]]


def test_children_are_those_of_the_slice() -> None:
    lists = pa.array([[1], [2, 3], None, [4]])
    offsets, (child,) = children_of(lists.slice(1), [lists.values])
    assert (offsets.tolist(), child.to_pylist()) == ([0, 2, 2, 3], [2, 3, 4])


def test_classes_of_plugins_are_found_in_jars_and_folders(tmp_path: Path) -> None:
    mention = b"\x01\x00\x13io/trino/spi/Plugin\x07"
    (tmp_path / "org" / "acme").mkdir(parents=True)
    (tmp_path / "org" / "acme" / "AcmePlugin.class").write_bytes(mention)
    (tmp_path / "org" / "acme" / "Other.class").write_bytes(b"io/trino/spi/PluginX")
    assert list(implementing_classes(tmp_path)) == ["org.acme.AcmePlugin"]
    with zipfile.ZipFile(tmp_path / "acme.jar", "w") as jar:
        jar.writestr("org/acme/AcmePlugin.class", mention)
        jar.writestr("README", mention)
    assert list(implementing_classes(tmp_path / "acme.jar")) == ["org.acme.AcmePlugin"]
    assert plugin_paths(str(tmp_path)) == [tmp_path / "acme.jar"]
    assert plugin_paths([str(tmp_path / "org")]) == [tmp_path / "org"]
    (tmp_path / "acme.jar").write_text("no archive", encoding="utf-8")
    with pytest.raises(ConnectorError, match=r"acme.jar is unreadable.* Build or download"):
        list(implementing_classes(tmp_path / "acme.jar"))


def test_a_folder_without_a_plugin_is_an_error_with_the_next_step(tmp_path: Path) -> None:
    with pytest.raises(ConnectorError) as error:
        plugin_paths(str(tmp_path))
    assert "plugin/iceberg" in str(error.value.hint)
