"""The properties of a session that Trino's SET SESSION knows, as a table: which there are, what values they take, and what they are where nobody sets them.

Statements written for Trino may set them. Two mean something here: ``max_recursion_depth`` and ``time_zone_id``; how a statement is run otherwise
is said by options.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from rowmerge_nb.spi.types import BIGINT, BOOLEAN, DOUBLE, INTEGER, VARCHAR, Type

TIME_ZONE: Final = "time_zone_id"
"""The property that SET TIME ZONE sets, which SHOW SESSION does not list."""

RECURSION: Final = "max_recursion_depth"
"""How many steps WITH RECURSIVE takes."""

_AT_LEAST_ONE: Final = "from 1"
_POWER: Final = "power of 2"
_TYPES: Final[dict[str, Type]] = {
    "boolean": BOOLEAN,
    "integer": INTEGER,
    _AT_LEAST_ONE: INTEGER,
    _POWER: INTEGER,
    "bigint": BIGINT,
    "double": DOUBLE,
}
_MEASURE: Final = re.compile(r"\s*\d+(?:\.\d+)?\s*([a-zA-Z]+)\s*", re.ASCII)
_MEASURES: Final = {
    "size": ("data size", "Unknown unit: ", {"B", "kB", "MB", "GB", "TB", "PB"}),
    "duration": ("data duration", "Unknown time unit: ", {"ns", "us", "ms", "s", "m", "h", "d"}),
}

_RANGES: Final = {
    "join_partitioned_build_min_row_count": (0, None, "must be equal or greater than 0"),
    "min_input_rows_per_task": (0, None, "must be equal or greater than 0"),
    "max_reordered_joins": (2, None, "must be greater than or equal to 2: {0}"),
    "retry_delay_scale_factor": (1, None, "must be greater than or equal to 1.0"),
    "task_retry_attempts_per_task": (0, 126, "must be greater than or equal to 0 and not not greater than 126"),
    "dynamic_row_filtering_selectivity_threshold": (0, 1, "must be in the range [0, 1]: {0}"),
    "filter_conjunction_independence_factor": (0, 1, "must be in the range [0.00, 1.00]: {0:.2f}"),
    "join_multi_clause_independence_factor": (0, 1, "must be in the range [0.00, 1.00]: {0:.2f}"),
}
"""Between which numbers a property's value must be, and what Trino says of others."""


@dataclass(frozen=True)
class SessionProperty:
    """One property.

    Args:
        name: its name.
        kind: what values it takes: a type, ``size``, ``duration``, ``from 1``, ``power of 2``, or words with bars between them.
        default: its value where nobody sets it; ``""`` for none.
    """

    name: str
    kind: str
    default: str

    @property
    def type(self) -> Type:
        """The type of its values."""
        return _TYPES.get(self.kind, VARCHAR)

    def refusal(self, value: str) -> str | None:
        """Say, in Trino's words, why a value of the type cannot be the property's; None where it can.

        >>> PROPERTIES["join_distribution_type"].refusal("partitioned"), PROPERTIES["task_concurrency"].refusal("3")
        (None, 'task_concurrency must be a power of 2: 3')
        >>> PROPERTIES["query_max_run_time"].refusal("5x"), PROPERTIES["query_max_run_time"].refusal("soon")
        ('Unknown time unit: x', 'duration is not a valid data duration string: soon')
        >>> PROPERTIES["max_reordered_joins"].refusal("1")
        'max_reordered_joins must be greater than or equal to 2: 1'
        """
        if self.kind in _MEASURES:
            called, unknown, units = _MEASURES[self.kind]
            found = _MEASURE.fullmatch(value)
            if found is None:
                return f"{self.kind} is not a valid {called} string: {value}"
            return None if found[1] in units else f"{unknown}{found[1]}"
        if self.kind == _AT_LEAST_ONE and int(value) < 1:
            return f"{self.name} must be equal or greater than 1"
        if self.kind == _POWER and (int(value) < 1 or int(value) & (int(value) - 1)):
            return f"{self.name} must be a power of 2: {value}"
        low, high, said = _RANGES.get(self.name, (None, None, ""))
        number = None if low is None else float(value) if self.kind == "double" else int(value)
        if number is not None and low is not None and (number < low or (high is not None and number > high)):
            return f"{self.name} {said.format(number)}"
        words = self.kind.split("|")
        if len(words) > 1 and value.upper() not in words:
            return f"Invalid value [{value}]. Valid values: [{', '.join(words)}]"
        return None


_ROWS: Final = """
adaptive_partial_aggregation_enabled | boolean | true
adaptive_partial_aggregation_unique_rows_ratio_threshold | double | 0.8
aggregation_operator_unspill_memory_limit | size | 4MB
collect_plan_statistics_for_all_queries | boolean | false
colocated_join | boolean | true
columnar_filter_evaluation_enabled | boolean | true
default_filter_factor_enabled | boolean | false
determine_partition_count_for_write_enabled | boolean | false
dictionary_aggregation | boolean | false
distinct_aggregations_strategy | SINGLE_STEP|MARK_DISTINCT|PRE_AGGREGATE|SPLIT_TO_SUBQUERIES|AUTOMATIC |
distributed_sort | boolean | true
dynamic_row_filtering_selectivity_threshold | double | 0.7
enable_dynamic_filtering | boolean | true
enable_dynamic_row_filtering | boolean | true
enable_intermediate_aggregations | boolean | false
enable_large_dynamic_filters | boolean | true
enable_stats_calculator | boolean | true
exchange_compression_codec | NONE|LZ4|ZSTD | NONE
execution_policy | varchar | phased
fault_tolerant_execution_adaptive_join_reordering_enabled | boolean | true
fault_tolerant_execution_adaptive_query_planning_enabled | boolean | true
filter_and_project_min_output_page_row_count | integer | 256
filter_and_project_min_output_page_size | size | 500kB
filter_conjunction_independence_factor | double | 0.75
force_spilling_join | boolean | false
hide_inaccessible_columns | boolean | false
ignore_downstream_preferences | boolean | false
ignore_stats_calculator_failures | boolean | true
incremental_hash_array_load_factor_enabled | boolean | true
initial_splits_per_node | integer | 4
iterative_optimizer_timeout | duration | 3.00m
join_distribution_type | BROADCAST|PARTITIONED|AUTOMATIC | AUTOMATIC
join_max_broadcast_table_size | size | 100MB
join_multi_clause_independence_factor | double | 0.25
join_partitioned_build_min_row_count | bigint | 1000000
join_reordering_strategy | NONE|ELIMINATE_CROSS_JOINS|AUTOMATIC | AUTOMATIC
mark_distinct_strategy | NONE|ALWAYS|AUTOMATIC |
max_drivers_per_task | from 1 |
max_hash_partition_count | from 1 | 100
max_partial_top_n_memory | size | 16MB
max_recursion_depth | from 1 | 10
max_reordered_joins | integer | 8
max_tasks_waiting_for_execution_per_query | integer | 10
max_tasks_waiting_for_node_per_query | integer | 50
max_unacknowledged_splits_per_task | from 1 | 2000
max_writer_task_count | from 1 | 100
merge_project_with_values | boolean | true
min_hash_partition_count | from 1 | 4
min_hash_partition_count_for_write | from 1 | 50
min_input_rows_per_task | bigint | 10000000
min_input_size_per_task | size | 5GB
non_estimatable_predicate_approximation_enabled | boolean | true
omit_datetime_type_precision | boolean | false
optimize_duplicate_insensitive_joins | boolean | true
optimize_metadata_queries | boolean | false
optimize_top_n_ranking | boolean | true
pre_aggregate_case_aggregations_enabled | boolean | true
predicate_pushdown_use_table_properties | boolean | true
prefer_partial_aggregation | boolean | true
prefer_streaming_operators | boolean | false
push_aggregation_through_outer_join | boolean | true
push_filter_into_values_max_row_count | integer | 100
push_partial_aggregation_through_join | boolean | true
push_table_write_through_union | boolean | true
query_max_cpu_time | duration | 1000000000.00d
query_max_execution_time | duration | 100.00d
query_max_planning_time | duration | 10.00m
query_max_run_time | duration | 100.00d
query_max_scan_physical_bytes | size |
query_priority | integer | 1
query_retry_attempts | integer | 4
redistribute_writes | boolean | true
remote_task_adaptive_update_request_size_enabled | boolean | true
remote_task_guaranteed_splits_per_request | integer | 3
remote_task_max_request_size | size | 8MB
remote_task_request_size_headroom | size | 2MB
required_workers_count | integer | 1
required_workers_max_wait_time | duration | 5.00m
resource_overcommit | boolean | false
retry_delay_scale_factor | double | 2.0
retry_initial_delay | duration | 10.00s
retry_max_delay | duration | 1.00m
rewrite_filtering_semi_join_to_inner_join | boolean | true
scale_writers | boolean | true
skip_redundant_sort | boolean | true
spatial_join | boolean | true
spatial_partitioning_table_name | varchar |
spill_enabled | boolean | false
split_concurrency_adjustment_interval | duration | 100.00ms
statistics_cpu_timer_enabled | boolean | true
statistics_precalculation_for_pushdown_enabled | boolean | true
table_scan_node_partitioning_min_bucket_to_task_ratio | double | 0.5
task_concurrency | power of 2 | 2
task_max_writer_count | power of 2 | 4
task_min_writer_count | integer | 1
task_retry_attempts_per_task | integer | 4
task_scale_writers_enabled | boolean | true
task_share_index_loading | boolean | false
use_cost_based_partitioning | boolean | true
use_exact_partitioning | boolean | false
use_legacy_window_filter_pushdown | boolean | false
use_preferred_write_partitioning | boolean | true
use_table_scan_node_partitioning | boolean | true
writer_scaling_min_data_processed | size | 120MB
"""

_HIDDEN: Final = f"""
{TIME_ZONE} | varchar |
query_max_memory | size |
query_max_memory_per_node | size |
query_max_total_memory | size |
query_max_stage_count | integer |
retry_policy | NONE|QUERY|TASK | NONE
"""


def _read(rows: str) -> dict[str, SessionProperty]:
    cut = ([part.strip() for part in row.split(" |")] for row in rows.split("\n") if row)
    return {name: SessionProperty(name, kind, default) for name, kind, default in cut}


LISTED: Final = _read(_ROWS)
"""The properties that SHOW SESSION lists, by their names."""

PROPERTIES: Final = {**LISTED, **_read(_HIDDEN)}
"""All of them."""
