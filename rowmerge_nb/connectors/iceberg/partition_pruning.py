"""Pruning by partitions: pyiceberg's planner, without partition fields whose values are not in the
order of their column.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from pyiceberg.conversions import to_bytes
from pyiceberg.expressions.visitors import _InclusiveMetricsEvaluator, inclusive_projection
from pyiceberg.manifest import DataFile, ManifestEntry
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.table import ManifestGroupPlanner
from pyiceberg.transforms import IdentityTransform, TruncateTransform
from pyiceberg.typedef import KeyDefaultDict
from pyiceberg.types import IntegerType, LongType, UUIDType

if TYPE_CHECKING:
    from pyiceberg.expressions import BooleanExpression


class PartitionPlanner(ManifestGroupPlanner):
    """Plans the manifest entries that a filter needs.

    Engines wrap the truncation of a type's smallest values around, so a partition field whose
    filter can match them is ignored. UUIDs are ignored too: pyiceberg compares them with their
    bytes. File bounds still apply.
    """

    def matching(self, entries: Iterable[ManifestEntry]) -> Iterator[ManifestEntry]:
        partitions = KeyDefaultDict(self._build_partition_evaluator)
        metrics = self._build_metrics_evaluator()
        for entry in entries:
            file = entry.data_file
            if partitions[file.spec_id](file) and metrics(file):
                yield entry

    def _build_partition_projection(self, spec_id: int) -> BooleanExpression:
        spec, schema = self.table_metadata.specs()[spec_id], self.table_metadata.schema()
        ordered = PartitionSpec(
            *(field for field in spec.fields if self._is_ordered(field)), spec_id=spec.spec_id
        )
        return inclusive_projection(schema, ordered, self.case_sensitive)(self.row_filter)

    def _is_ordered(self, field: PartitionField) -> bool:
        source = self.table_metadata.schema()._lazy_id_to_field.get(field.source_id)  # noqa: SLF001 - find_field raises
        if source is None:
            return True
        if isinstance(field.transform, IdentityTransform):
            return not isinstance(source.field_type, UUIDType)
        if not isinstance(field.transform, TruncateTransform) or not isinstance(
            source.field_type, IntegerType | LongType
        ):
            return True
        return not any(
            self._may_match(source.field_id, low, high)
            for low, high in _wrapping(source.field_type, field.transform)
        )

    def _may_match(self, field_id: int, low: int, high: int) -> bool:
        schema = self.table_metadata.schema()
        column_type: Any = schema.find_type(field_id)
        file = DataFile.from_args(
            record_count=1,
            value_counts={field_id: 1},
            null_value_counts={field_id: 0},
            nan_value_counts={},
            lower_bounds={field_id: to_bytes(column_type, low)},
            upper_bounds={field_id: to_bytes(column_type, high)},
        )
        return bool(
            _InclusiveMetricsEvaluator(schema, self.row_filter, self.case_sensitive).eval(file)
        )


def _wrapping(
    column_type: IntegerType | LongType, transform: TruncateTransform[int]
) -> Iterator[tuple[int, int]]:
    """Yield the ranges that truncation wraps around; a bigint column may have been an integer."""
    for bits in (32, 64) if isinstance(column_type, LongType) else (32,):
        least = -(2 ** (bits - 1))
        least_multiple = -(-least // transform.width) * transform.width
        if least < least_multiple:
            yield least, least_multiple - 1
