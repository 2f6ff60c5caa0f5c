"""Builds of a Java plugin: rebuilt jars, two builds in one statement, and refused values."""

from __future__ import annotations

import pytest

import rowmerge_nb as rm
from rowmerge_nb.base.errors import RowMergeError
from rowmerge_nb.connectors.trino.plugin_hosts import REBUILT
from tests.connectors.trino.shelf_catalog import AFTER, BEFORE, ShelfCatalog
from tests.connectors.trino.shelf_plugin import Patch, ShelfBuild

pytestmark = pytest.mark.spark

_ROW_ID = 'RowType.rowType(RowType.field("file", VARCHAR), RowType.field("position", BIGINT))'
_LAST_PAGE = "        pages.add(builder.build());\n        return pages;"
_INT_BLOCK = "new io.trino.spi.block.IntArrayBlock(count, Optional.empty(), new int[count])"
ROW_OF_ROWS = (
    Patch("ShelfColumnHandle.java", _ROW_ID, f'RowType.rowType(RowType.field("row", {_ROW_ID}))'),
    Patch(
        "ShelfPageSourceProvider.java",
        "((RowBlockBuilder) block).buildEntry(fields -> {",
        "((RowBlockBuilder) block).buildEntry("
        "row -> ((RowBlockBuilder) row.get(0)).buildEntry(fields -> {",
    ),
    Patch("ShelfPageSourceProvider.java", "position);\n        });", "position);\n        }));"),
    Patch(
        "ShelfMergeSink.java",
        "RowBlock.getRowFieldsFromBlock(page.getBlock(columnCount + 2))",
        "RowBlock.getRowFieldsFromBlock("
        "RowBlock.getRowFieldsFromBlock(page.getBlock(columnCount + 2)).get(0))",
    ),
)


@pytest.fixture(scope="module")
def build(trino_home, java_home, tmp_path_factory):
    return ShelfBuild(trino_home / "lib", java_home, tmp_path_factory.mktemp("build"))


@pytest.fixture(scope="module")
def shelf(spark, build, trino_home, java_home, tmp_path_factory):
    folder = tmp_path_factory.mktemp("shelf")
    catalog = ShelfCatalog(rm.Engine(spark=spark), build, folder, trino_home / "lib", java_home)
    yield catalog
    catalog.connector.close()


@pytest.mark.parametrize("era", ["documents", "current"])
@pytest.mark.parametrize(
    "properties",
    ["", " WITH (buckets = 3)", " WITH (paradigm = 'CHANGE_ONLY_UPDATED_COLUMNS', buckets = 2)"],
)
def test_a_merge_changes_the_rows_in_both_paradigms_with_and_without_buckets(
    shelf, properties, era
):
    shelf.plant()
    shelf.fill(properties)
    result = shelf.merge(era=era, check=True)
    assert result.counts == {"INSERT": 1, "UPDATE": 1, "DELETE": 1, "none": 0}
    assert "Read back: the store holds the expected 4 rows." in str(result)
    assert shelf.rows() == AFTER


def test_a_rebuilt_jar_is_used_by_the_next_statement_and_reported(shelf):
    shelf.plant()
    shelf.fill()
    shelf.plant(
        Patch(
            "ShelfMergeSink.java",
            "case INSERT_OPERATION_NUMBER, UPDATE_INSERT_OPERATION_NUMBER ->",
            "case INSERT_OPERATION_NUMBER -> {}\n                case UPDATE_INSERT_OPERATION_NUMBER ->",
        )
    )
    result = shelf.merge()
    assert REBUILT in [notice.message for notice in result.trace.notices]
    # In the era of the documents, an update's new row is an INSERT too.
    assert shelf.rows() == BEFORE[2:]
    shelf.fill()
    assert REBUILT not in [notice.message for notice in shelf.merge().trace.notices]


def test_two_builds_of_a_plugin_serve_one_statement(shelf, build, trino_home, java_home, tmp_path):
    shelf.plant()
    shelf.fill()
    build.jar(tmp_path / "plugin", Patch("ShelfConnectorFactory.java", '"shelf"', '"drawer"'))
    drawer = rm.TrinoConnector(
        "drawer",
        plugin=[tmp_path / "plugin", *build.needed_jars],
        trino=trino_home / "lib",
        java=java_home,
        properties={"shelf.folder": tmp_path / "data"},
        java_options=["-Xmx64m"],
    )
    engine = shelf.engine
    engine.add_catalog("drawer", drawer)
    try:
        engine.run("CREATE SCHEMA drawer.shop")
        engine.run("CREATE TABLE drawer.shop.changes (id bigint, name varchar)")
        engine.run("INSERT INTO drawer.shop.changes VALUES (1, 'new name'), (9, 'new')")
        engine.run(
            """MERGE INTO shelf.shop.accounts t USING drawer.shop.changes s ON t.id = s.id
            WHEN MATCHED THEN UPDATE SET name = s.name
            WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.name, 'city')"""
        )
        pids = {host.pid for each in (drawer, shelf.connector) for host in each.hosts.running}
        assert len(pids) == 4
    finally:
        drawer.close()
    assert shelf.rows() == sorted({*AFTER, BEFORE[1]})


def test_a_row_id_that_is_a_row_of_rows(shelf):
    shelf.plant(*ROW_OF_ROWS)
    shelf.fill()
    shelf.merge()
    assert shelf.rows() == AFTER


@pytest.mark.parametrize(
    ("file", "before", "code", "message"),
    [
        (
            "ShelfMetadata.java",
            "        return RowChangeParadigm.valueOf(",
            "        if (table != null) {\n            return null;\n        }\n",
            "shelf.ShelfMetadata.getRowChangeParadigm returned null",
        ),
        (
            "ShelfPageSinkProvider.java",
            "        ShelfMergeHandle merge =",
            "        if (handle != null) {\n            return null;\n        }\n",
            "shelf.ShelfPageSinkProvider.createMergeSink returned null",
        ),
        (
            "ShelfMergeSink.java",
            "        Optional<String> file =",
            (
                "        if (columnCount > 0) {\n"
                "            return CompletableFuture.completedFuture(null);\n        }\n"
            ),
            "shelf.ShelfMergeSink.finish returned a future of null",
        ),
        (
            "ShelfPageSourceProvider.java",
            _LAST_PAGE,
            (
                "        if (requested.size() > 1) {\n"
                "            return List.of(builder.build().getColumns(0));\n        }\n"
            ),
            "A page of the plugin has 1 block, and",
        ),
        (
            "ShelfPageSourceProvider.java",
            _LAST_PAGE,
            (
                "        if (builder.getPositionCount() > 0 && requested.size() > 1) {\n"
                "            Page page = builder.build();\n"
                "            int count = page.getPositionCount();\n"
                "            io.trino.spi.block.Block[] blocks =\n                    new io.trino.spi.block.Block[page.getChannelCount()];\n"
                "            for (int i = 0; i < blocks.length; i++) {\n"
                f"                blocks[i] = {_INT_BLOCK};\n"
                "            }\n"
                "            return List.of(new Page(blocks));\n        }\n"
            ),
            "A page of the plugin has IntArrayBlock for a column of",
        ),
    ],
)
def test_a_violation_of_the_spi_is_an_error_that_names_it(shelf, file, before, code, message):
    shelf.plant()
    shelf.fill()
    shelf.plant(Patch(file, before, code + before))
    with pytest.raises(RowMergeError) as caught:
        shelf.merge()
    assert message in caught.value.message
    assert caught.value.hint
    shelf.plant()
    assert shelf.rows() == BEFORE
