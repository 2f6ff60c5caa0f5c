"""What serves the version of the SPI that the running Java has loaded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rowmerge_nb.connectors.trino.host.block_building import BlockBuilder
from rowmerge_nb.connectors.trino.host.block_reading import BlockReader
from rowmerge_nb.connectors.trino.host.older_blocks import OlderBlockBuilder, OlderBlockReader
from rowmerge_nb.connectors.trino.host.older_spi import OlderSpi
from rowmerge_nb.connectors.trino.host.versions import SpiVersion, has_class

if TYPE_CHECKING:
    from collections.abc import Sequence


def spi_version(engine_folder: str) -> SpiVersion:
    is_older = has_class("io.trino.spi.connector.UpdatablePageSource")
    versions: Sequence[type[SpiVersion]] = (SpiVersion, OlderSpi)
    return versions[is_older].detect(engine_folder)


def block_builder(version: SpiVersion) -> BlockBuilder:
    return OlderBlockBuilder(version) if version.has_older_flow else BlockBuilder(version)


def block_reader(version: SpiVersion) -> BlockReader:
    return OlderBlockReader(version) if version.has_older_flow else BlockReader(version)
