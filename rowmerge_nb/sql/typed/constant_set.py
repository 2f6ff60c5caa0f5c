"""A long list of constants, in which a value is looked up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rowmerge_nb.spi.types import Type
from rowmerge_nb.sql.typed.expressions import NOTHING, Reads

if TYPE_CHECKING:
    import pyarrow as pa


__all__ = ["ConstantSet"]


@dataclass(frozen=True)
class ConstantSet:
    """The values of a long list.

    An `Apply` named ``"in set"`` has one of them as its detail, together with whether it is NOT IN; its argument is what is looked for.

    Args:
        type: the type of the values.
        values: the values, each once, without NULL.
        has_null: NULL is in the list: what is not found may be in it or not.
        query: the values as a query in Spark SQL, of one column ``v``.
        reads: what the query reads.
    """

    type: Type
    values: pa.Array
    has_null: bool
    query: str
    reads: Reads = NOTHING

    @property
    def _key(self) -> tuple[Any, ...]:
        return self.type, len(self.values), self.has_null

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ConstantSet) and self._key == other._key and bool(self.values.equals(other.values))

    def __hash__(self) -> int:
        return hash(self._key)
