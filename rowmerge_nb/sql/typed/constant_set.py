"""A long list of constants, as of IN."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from rowmerge_nb.spi.types import Type

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class ConstantSet:
    """The values of a long list: the detail of an `Apply` named ``"in set"``, together with whether
    it is NOT IN.
    """

    type: Type
    values: pa.Array
    has_null: bool

    @property
    def whole(self) -> pa.Array:
        """The values, and NULL if it is in the list."""
        import pyarrow as pa

        return (
            pa.concat_arrays([self.values, pa.nulls(1, self.values.type)])
            if self.has_null
            else self.values
        )

    @cached_property
    def name(self) -> str:
        """A name that only equal lists have."""
        import pyarrow as pa

        batch = pa.record_batch([self.whole], names=["v"])
        return f"$list_{hashlib.sha256(batch.schema.serialize().to_pybytes() + batch.serialize().to_pybytes()).hexdigest()}"

    @property
    def _key(self) -> tuple[Any, ...]:
        return self.type, len(self.values), self.has_null

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, ConstantSet)
            and self._key == other._key
            and bool(self.values.equals(other.values))
        )

    def __hash__(self) -> int:
        return hash(self._key)
