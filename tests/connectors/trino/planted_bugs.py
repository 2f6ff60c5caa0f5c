"""Bugs of the Java plugin for tests: small changes of its sources."""

from __future__ import annotations

from tests.connectors.trino.shelf_plugin import Patch

SINK = "ShelfMergeSink.java"
_STORE = "        Block operations = page.getBlock(columnCount);\n"
_FINISH = "        Optional<String> file = writer.finish();\n"
_STORED = "        List<ShelfColumnHandle> stored)"
_JSON = "com.fasterxml.jackson.annotation.JsonProperty"
_FIELD = "    private final int columnCount;\n"

DROPPED_PAGE = (
    Patch(SINK, _FIELD, _FIELD + "    private Page next = new Page(0);\n"),
    Patch(
        SINK,
        _STORE,
        "        Page last = next;\n        next = page;\n        page = last;\n"
        "        if (page.getPositionCount() == 0) {\n            return;\n        }\n" + _STORE,
    ),
)
"""The sink stores each page when the next one arrives, and forgets the last one."""

SWAPPED_COLUMNS = (
    Patch(
        "ShelfPageSinkProvider.java",
        "merge.stored())",
        "List.of(merge.stored().get(0), merge.stored().get(2), merge.stored().get(1)))",
    ),
)
"""The sink writes the last two columns in another order."""

LOST_FRAGMENT = (
    Patch(
        SINK,
        _FINISH,
        _FINISH
        + "        if (deleted.isEmpty()) {\n"
        + "            return CompletableFuture.completedFuture(List.of());\n        }\n",
    ),
)
"""A sink that deletes no rows returns no fragment for its new ones."""

FAILED_FINISH = (
    Patch(
        SINK,
        _FINISH,
        "        if (columnCount > 0) {\n"
        '            throw new IllegalStateException("The disk is full");\n        }\n' + _FINISH,
    ),
)

_END = "(ConnectorTransactionHandle transaction) {\n"
_THROW = '        if (store != null) {\n            throw new IllegalStateException("No %s");\n        }\n'


def failed_end(call: str) -> Patch:
    """Return a patch by which ``commit`` or ``rollback`` throws."""
    line = f"    public void {call}{_END}"
    return Patch("ShelfConnector.java", line, line + _THROW % call)


EARLY_ROWS = (
    Patch(
        SINK,
        _FIELD,
        _FIELD + "    java.util.function.Consumer<Fragment> publish;\n",
    ),
    Patch(
        SINK,
        "        return CompletableFuture.completedFuture(List.of(new Fragment(file, deleted).toSlice()));",
        "        publish.accept(new Fragment(file, deleted));\n"
        "        Fragment empty = new Fragment(Optional.empty(), Map.of());\n"
        "        return CompletableFuture.completedFuture(List.of(empty.toSlice()));",
    ),
    Patch(
        "ShelfPageSinkProvider.java",
        "        return new ShelfMergeSink(writer(merge.table(), merge.transaction(), merge.stored()),"
        " merge.table().columns().size());",
        "        ShelfMergeSink sink = new ShelfMergeSink("
        "writer(merge.table(), merge.transaction(), merge.stored()), merge.table().columns().size());\n"
        "        sink.publish = fragment -> {\n"
        "            synchronized (store) {\n"
        "                TableState state = store.state(merge.table().name()).orElseThrow();\n"
        "                store.commit(state.with(List.of(fragment)));\n"
        "            }\n        };\n        return sink;",
    ),
    Patch(
        "ShelfMetadata.java",
        "        store.commit(read.with(fragments.stream().map(Fragment::of).toList()));\n",
        "",
    ),
)
"""Each sink publishes its rows at its end, so that finishMerge has no work."""

LOST_FIELD = (
    Patch(
        "ShelfMergeHandle.java",
        _STORED,
        f"        @{_JSON}(access = {_JSON}.Access.WRITE_ONLY)" + _STORED[7:],
    ),
)
"""The JSON of the merge handle has no columns."""

UNUSED_LOST_FIELD = (
    *LOST_FIELD,
    Patch("ShelfPageSinkProvider.java", "merge.stored())", "merge.table().columns())"),
)
"""The JSON of the merge handle has no columns, and no task needs them."""
