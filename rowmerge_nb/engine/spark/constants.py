"""Values of expressions without rows: arguments of CALL, and of AS OF."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rowmerge_nb.engine.spark.interrupts import interrupts_afterwards
from rowmerge_nb.engine.tasks.arrow import conform
from rowmerge_nb.sql.spark.printer import print_spark

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pyarrow as pa

    from rowmerge_nb.sql.typed.expressions import Typed


def constants(spark: Any, values: Sequence[Typed], collect: Callable[[Any], pa.Table]) -> list[Any]:
    texts = [f"{print_spark(value)} AS `{index}`" for index, value in enumerate(values)]
    with interrupts_afterwards():
        rows = spark.sql(f"SELECT {', '.join(texts)}")
    columns = collect(rows).columns
    return [
        conform(c.combine_chunks(), v.type.arrow)[0].as_py()
        for c, v in zip(columns, values, strict=True)
    ]
