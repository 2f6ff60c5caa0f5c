"""What differs between versions of Trino's SPI, found by looking at its classes.

A build of a connector developer has a snapshot's number, so the classes decide, not the number.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final

import numpy as np

from rowmerge_nb.connectors.trino.host.jpype_library import jpype
from rowmerge_nb.connectors.trino.host.jvm import call_plugin, java_class, java_list, optional
from rowmerge_nb.connectors.trino.jar_names import spi_number

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from rowmerge_nb.connectors.trino.host.jvm import JavaObject

SPI: Final = "io.trino.spi.connector."
_WORD_BITS: Final = 64


@dataclass(frozen=True)
class SpiVersion:
    """The version of an SPI and its features.

    Args:
        has_validity_bitmaps: NULLs are packed bits of valid values in ``long[]``; otherwise
            ``boolean[]`` with true for NULL.
        has_filter_snapshots: split sources receive the dynamic filter with each batch; otherwise
            ``getSplits`` receives it.
    """

    has_older_flow: ClassVar[bool] = False
    """Whether page sources change rows, as before the machinery of MERGE."""
    number: str
    has_validity_bitmaps: bool
    has_credentials: bool
    has_filter_snapshots: bool
    has_memory_contexts: bool
    has_column_positions: bool
    object_value_takes_session: bool

    @classmethod
    def detect(cls, engine_folder: str) -> SpiVersion:
        splits = _parameters(f"{SPI}ConnectorSplitManager", "getSplits")
        sources = _parameters(f"{SPI}ConnectorPageSourceProvider", "createPageSource")
        added = _parameters(f"{SPI}ConnectorMetadata", "addColumn")
        return cls(
            number=spi_number_of(engine_folder),
            has_validity_bitmaps=bool(
                _parameters("io.trino.spi.block.ValueBlock", "getValidityBitmap")
            ),
            has_credentials=bool(_parameters(f"{SPI}ConnectorMetadata", "getTableCredentials")),
            has_filter_snapshots=not any(
                f"{SPI}DynamicFilter" in parameters for parameters in splits
            ),
            has_memory_contexts=any(f"{SPI}MemoryContext" in parameters for parameters in sources),
            has_column_positions=any(f"{SPI}ColumnPosition" in parameters for parameters in added),
            object_value_takes_session=any(
                len(parameters) > 2  # besides block and position
                for parameters in _parameters("io.trino.spi.type.Type", "getObjectValue")
            ),
        )

    @property
    def features(self) -> dict[str, bool]:
        return {name: value for name, value in asdict(self).items() if name != "number"}

    # Blocks

    def null_argument(self, valid: NDArray[np.uint8] | None, count: int) -> JavaObject:
        """Return the Optional that a block's constructor takes for its NULLs."""
        if valid is None:
            return java_class("java.util.Optional").empty()
        if self.has_validity_bitmaps:
            words = pack_words(valid, count)
            return optional(jpype.JArray(jpype.JLong)(words))
        nulls = np.unpackbits(valid, bitorder="little", count=count) == 0
        return optional(jpype.JArray(jpype.JBoolean)(nulls))

    def read_validity(self, block: JavaObject, count: int) -> NDArray[np.uint8] | None:
        if not block.mayHaveNull():
            return None
        if self.has_validity_bitmaps:
            bitmap = block.getValidityBitmap()
            if not bitmap.isPresent():
                return None
            raw = bitmap.get()
            return unpack_words(np.array(raw.getRawWords()), int(raw.getRawBitOffset()), count)
        nulls = block.getNulls()
        if not nulls.isPresent():
            return None
        values = nulls.get()
        offset = int(package_private(values, "getRawValuesOffset"))
        raw_nulls = np.array(package_private(values, "getRawValues"))
        is_null = raw_nulls[offset : offset + count]
        return np.packbits(is_null == 0, bitorder="little")

    # Calls

    def catalog_properties(self, properties: Mapping[str, str]) -> dict[str, str]:
        return dict(properties)

    def table_handle(
        self,
        metadata: JavaObject,
        session: JavaObject,
        name: JavaObject,
        version: Callable[[], JavaObject],
    ) -> JavaObject | None:
        """Return a table; ``version`` builds the Optional of its end version."""
        return metadata.getTableHandle(session, name, optional(None), version())

    def create_table(
        self, metadata: JavaObject, session: JavaObject, table: JavaObject, mode: str
    ) -> None:
        save_mode = java_class(f"{SPI}SaveMode").valueOf(mode)
        metadata.createTable(session, table, save_mode)

    def begin_create_table(
        self,
        metadata: JavaObject,
        session: JavaObject,
        table: JavaObject,
        layout: JavaObject,
        *,
        replace: bool,
    ) -> JavaObject:
        return metadata.beginCreateTable(session, table, layout, no_retries(), replace)

    def finish_insert(
        self,
        metadata: JavaObject,
        session: JavaObject,
        handle: JavaObject,
        sources: JavaObject,
        fragments: JavaObject,
    ) -> None:
        metadata.finishInsert(session, handle, sources, fragments, java_list([]))

    def drop_schema(
        self, metadata: JavaObject, session: JavaObject, schema: JavaObject, *, cascade: bool
    ) -> None:
        metadata.dropSchema(session, schema, cascade)

    def has_several_writers(self, layout: JavaObject) -> bool:
        return bool(layout.supportsMultipleWritersPerPartition())

    def next_page(self, source: JavaObject) -> JavaObject | None:
        return source.getNextSourcePage()

    def sink_arguments(
        self, credentials: JavaObject | None, identifier: int
    ) -> tuple[JavaObject, ...]:
        sink_id = jpype.JProxy(
            f"{SPI}ConnectorPageSinkId", dict={"getId": lambda: jpype.JLong(identifier)}
        )
        return *self.credential_arguments(credentials), sink_id

    def bucket_count(self, provider: JavaObject, *arguments: JavaObject) -> int | None:
        """Return the number of buckets of a partitioning; None if the engine chooses it."""
        mapping = call_plugin(provider, "getBucketNodeMapping", *arguments)
        node_map = mapping.orElse(None)
        return None if node_map is None else int(node_map.getBucketCount())

    def property_manager(self, catalog: JavaObject, properties: JavaObject) -> JavaObject:
        return java_class("io.trino.metadata.SessionPropertyManager")(
            # Without Trino's own properties, a session does not even know its time zone.
            java_class("java.util.Set").of(java_class("io.trino.SystemSessionProperties")()),
            java_class("io.trino.connector.CatalogServiceProvider").singleton(catalog, properties),
        )

    def credential_arguments(self, credentials: JavaObject | None) -> tuple[JavaObject, ...]:
        return (optional(credentials),) if self.has_credentials else ()

    def get_splits(
        self,
        manager: JavaObject,
        transaction: JavaObject,
        session: JavaObject,
        table: JavaObject,
        constraint: JavaObject,
    ) -> list[JavaObject]:
        middle = (
            java_class("java.util.Set").of()
            if self.has_filter_snapshots
            else java_class(f"{SPI}DynamicFilter").EMPTY
        )
        return self.all_splits(
            call_plugin(manager, "getSplits", transaction, session, table, middle, constraint)
        )

    def all_splits(self, source: JavaObject) -> list[JavaObject]:
        batch = (
            (1000, java_class(f"{SPI}DynamicFilterSnapshot").EMPTY)
            if self.has_filter_snapshots
            else (1000,)
        )
        splits: list[JavaObject] = []
        try:
            while not source.isFinished():
                result = source.getNextBatch(*batch).get()
                splits.extend(result if self.has_filter_snapshots else result.getSplits())
        finally:
            source.close()
        return splits

    def create_page_source(
        self,
        connector: JavaObject,
        transaction: JavaObject,
        session: JavaObject,
        split: JavaObject,
        table: JavaObject,
        credentials: JavaObject | None,
        columns: JavaObject,
    ) -> JavaObject:
        tail = (java_class(f"{SPI}MemoryContext").NO_LIMIT,) if self.has_memory_contexts else ()
        return call_plugin(
            page_source_provider(connector),
            "createPageSource",
            transaction,
            session,
            split,
            table,
            *self.credential_arguments(credentials),
            columns,
            java_class(f"{SPI}DynamicFilter").EMPTY,
            *tail,
        )


def page_source_provider(connector: JavaObject) -> JavaObject:
    """Return what reads splits; Trino makes pages of a connector that has records only."""
    unsupported = java_class("java.lang.UnsupportedOperationException")
    try:
        return connector.getPageSourceProviderFactory().createPageSourceProvider()
    except (unsupported, AttributeError):
        pass
    try:
        return call_plugin(connector, "getPageSourceProvider")
    except unsupported:
        records = connector.getRecordSetProvider()
        return java_class("io.trino.split.RecordPageSourceProvider")(records)


def optional_text(value: JavaObject | None) -> str | None:
    """Return a text that newer versions wrap in an Optional, or None."""
    if isinstance(value, java_class("java.util.Optional")):
        value = value.orElse(None)
    return None if value is None else str(value)


def completed_bytes(sink: JavaObject) -> int:
    return int(sink.getCompletedBytes()) if hasattr(sink, "getCompletedBytes") else 0


def bucket_numbers(function: JavaObject, page: JavaObject, count: int) -> NDArray[np.int32]:
    """Return the bucket of each position of a page.

    Older bucket functions take one position at a time. Java calls them for all positions: a call
    from Python costs a microsecond.
    """
    if hasattr(function, "getBuckets"):
        result = jpype.JArray(jpype.JInt)(count)
        function.getBuckets(page, 0, count, result)
        return np.array(result)
    invoke = "java.lang.invoke."
    integer = java_class("java.lang.Integer").TYPE
    signature = java_class(f"{invoke}MethodType").methodType(
        integer, java_class("io.trino.spi.Page").class_, integer
    )
    methods = java_class(f"{invoke}MethodHandles")
    method = methods.publicLookup().findVirtual(
        java_class(f"{SPI}BucketFunction").class_, jpype.JString("getBucket"), signature
    )
    operator = java_class(f"{invoke}MethodHandleProxies").asInterfaceInstance(
        java_class("java.util.function.IntUnaryOperator").class_,
        methods.insertArguments(method, 0, function, page),
    )
    return np.array(
        java_class("java.util.stream.IntStream").range(0, count).map(operator).toArray()
    )


def catalog_handle(catalog: str) -> JavaObject:
    """Return a CatalogHandle, whose package moved between versions."""
    text = jpype.JString(f"{catalog}:normal:1")
    for package in ("io.trino.connector", "io.trino.spi.connector"):
        try:
            return java_class(f"{package}.CatalogHandle").fromId(text)
        except TypeError:
            continue
    return java_class("io.trino.connector.CatalogName")(jpype.JString(catalog))


def object_mapper(serializers: JavaObject, deserializers: JavaObject) -> JavaObject:
    provider = java_class("io.airlift.json.ObjectMapperProvider")()
    if hasattr(provider, "withJsonSerializers"):
        provider = provider.withJsonSerializers(serializers).withJsonDeserializers(deserializers)
    else:
        provider.setJsonSerializers(serializers)
        provider.setJsonDeserializers(deserializers)
    return provider.get()


def no_retries() -> JavaObject:
    return java_class(f"{SPI}RetryMode").NO_RETRIES


def spi_number_of(engine_folder: str) -> str:
    """Return the version that the jar of trino-spi declares, or else the one in its name."""
    declared = java_class(f"{SPI}Connector").class_.getPackage().getImplementationVersion()
    if declared is not None:
        return str(declared)
    return spi_number(jar.name for jar in Path(engine_folder).glob("*trino-spi-*.jar"))


def pack_words(valid: NDArray[np.uint8], count: int) -> NDArray[np.int64]:
    """Pad Arrow's validity bits to Trino's 64-bit words, with zeros after the last position."""
    words = np.zeros((count + _WORD_BITS - 1) // _WORD_BITS * 8, np.uint8)
    length = (count + 7) // 8
    words[:length] = valid[:length]
    if count % 8:
        words[length - 1] &= (1 << count % 8) - 1
    return words.view("<i8")


def unpack_words(words: NDArray[np.int64], offset: int, count: int) -> NDArray[np.uint8]:
    """Cut Arrow's validity bits out of Trino's words."""
    data = words.view(np.uint8)
    first = offset // 8
    if offset % 8 == 0:
        return data[first : first + (count + 7) // 8].copy()
    bits = np.unpackbits(data[first:], bitorder="little", count=offset % 8 + count)
    return np.packbits(bits[offset % 8 :], bitorder="little")


def has_class(name: str) -> bool:
    try:
        java_class(name)
    except TypeError:
        return False
    return True


def _parameters(class_name: str, method: str) -> list[Sequence[str]]:
    return [
        [str(parameter.getName()) for parameter in each.getParameterTypes()]
        for each in java_class(class_name).class_.getMethods()
        if each.getName() == method
    ]


def package_private(target: JavaObject, *names: str) -> JavaObject:
    """Call a method without arguments that older versions name otherwise or do not make public, or
    have as a field only.
    """
    for name in names:
        method = getattr(target, name, None)
        if method is not None:
            return method()
    for name in names:
        method = _method(str(target.getClass().getName()), name)
        if method is not None:
            return method.invoke(target)
        field = _field(str(target.getClass().getName()), name)
        if field is not None:
            return field.get(target)
    raise AttributeError(f"{target.getClass().getName()} has no {' or '.join(names)}")


@cache
def _method(class_name: str, name: str) -> JavaObject | None:
    try:
        method = java_class(class_name).class_.getDeclaredMethod(name)
    except java_class("java.lang.NoSuchMethodException"):
        return None
    method.setAccessible(True)
    return method


@cache
def _field(class_name: str, name: str) -> JavaObject | None:
    try:
        field = java_class(class_name).class_.getDeclaredField(name)
    except java_class("java.lang.NoSuchFieldException"):
        return None
    field.setAccessible(True)
    return field


def block_encodings(types: JavaObject) -> JavaObject:
    internal = java_class("io.trino.metadata.InternalBlockEncodingSerde")
    testing = getattr(internal, "TESTING_BLOCK_ENCODING_SERDE", None)
    if testing is not None:
        return testing
    return internal(java_class("io.trino.metadata.BlockEncodingManager")(), types)
