"""ORC files written by pyorc, for timestamps before 1970 with a fraction, which Arrow writes
wrongly.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from rowmerge_nb.base.errors import ExecutionError
from rowmerge_nb.base.extras import install_command
from rowmerge_nb.connectors.hive_acid.orc_values import lowered, with_numbers
from rowmerge_nb.spi import ColumnMetadata, Type
from rowmerge_nb.spi.types import BIGINT, INTEGER, row_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import pyarrow as pa

    from rowmerge_nb.connectors.hive_acid.orc.codecs import OrcCodec

_SECOND: Final = 1_000_000
_BATCH: Final = 10_000


class ExactWriter:
    """Writes events into a file; NOT_SUPPORTED if pyorc is not installed."""

    def __init__(
        self, path: Path, columns: Sequence[ColumnMetadata], stripe_bytes: int, codec: OrcCodec
    ) -> None:
        try:
            import pyorc
        except ImportError:
            raise ExecutionError(
                "A timestamp before 1970 with a fraction of a second needs the package pyorc to be"
                " written, which is not installed",
                code="NOT_SUPPORTED",
                step="append_page",
                hint=f"Run: {install_command('hive')}",
            ) from None
        names = ("operation", "originalTransaction", "bucket", "rowId", "currentTransaction")
        numbers = dict(zip(names, (INTEGER, BIGINT, INTEGER, BIGINT, BIGINT), strict=True))
        row = row_of([(column.name.lower(), lowered(column.type)) for column in columns])
        self._event_type = row_of([*numbers.items(), ("row", row)])
        moments: Any = _Moments
        self._file = path.open("wb")
        self._writer = pyorc.Writer(
            self._file,
            _schema(self._event_type, pyorc),
            batch_size=_BATCH,
            stripe_size=stripe_bytes,
            compression=codec.pyorc,
            struct_repr=pyorc.StructRepr.DICT,
            converters={pyorc.TypeKind.TIMESTAMP: moments},
        )

    def write(self, events: pa.Table) -> None:
        """Write events: the six columns of a transactional table's file."""
        for start in range(0, events.num_rows, _BATCH):
            part = events.slice(start, _BATCH).combine_chunks().to_struct_array()
            array = part.combine_chunks() if hasattr(part, "combine_chunks") else part
            self._writer.writerows(
                with_numbers(array, self._event_type).to_pylist(maps_as_pydicts="strict")
            )

    def close(self) -> None:
        self._writer.close()
        self._file.close()


class _Moments:
    @staticmethod
    def to_orc(value: int, _zone: Any) -> tuple[int, int]:
        seconds, rest = divmod(value, _SECOND)
        return seconds, rest * 1000

    @staticmethod
    def from_orc(seconds: int, nanoseconds: int, _zone: Any) -> int:
        return seconds * _SECOND + nanoseconds // 1000


def _schema(sql_type: Type, pyorc: Any) -> Any:
    if sql_type.base == "row":
        pairs = zip(sql_type.fields, sql_type.parameters, strict=True)
        return pyorc.Struct(**{str(name): _schema(inner, pyorc) for name, inner in pairs})
    if sql_type.base == "array":
        return pyorc.Array(_schema(sql_type.parameters[0], pyorc))
    if sql_type.base == "map":
        return pyorc.Map(*(_schema(inner, pyorc) for inner in sql_type.parameters))
    if sql_type.base == "decimal":
        return pyorc.Decimal(*sql_type.parameters)
    if sql_type.base in {"varchar", "char"} and sql_type.parameters:
        return {"varchar": pyorc.VarChar, "char": pyorc.Char}[sql_type.base](sql_type.parameters[0])
    return {
        "boolean": pyorc.Boolean,
        "tinyint": pyorc.TinyInt,
        "smallint": pyorc.SmallInt,
        "integer": pyorc.Int,
        "bigint": pyorc.BigInt,
        "real": pyorc.Float,
        "double": pyorc.Double,
        "varchar": pyorc.String,
        "varbinary": pyorc.Binary,
        "date": pyorc.Date,
        "timestamp": pyorc.Timestamp,
    }[sql_type.base]()
