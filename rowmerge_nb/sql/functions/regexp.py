r"""Regular expressions.

Trino's engine (Joni with Java's syntax) knows all of Unicode in ``\w``, ``\d``, ``\s`` and ``\b``, and ends a line at ``\n`` alone;
the flags ``(?Ud)`` make Java's engine, which Spark has, do the same.
"""

from __future__ import annotations

from typing import Final

__all__ = ["FRAGMENTS", "ROWS"]

ROWS: Final = r"""
regexp_like(varchar(x), varchar(y)) -> boolean | regexp_like({0}, {pattern})
regexp_count(varchar(x), varchar(y)) -> bigint | CAST(regexp_count({0}, {pattern}) AS BIGINT)
regexp_extract(varchar(x), varchar(y)) -> varchar(x) | IF(regexp_like({0}, {pattern}), regexp_extract({0}, {pattern}, 0), NULL)
regexp_extract(varchar(x), varchar(y), bigint) -> varchar(x) | IF(regexp_like({0}, {pattern}), regexp_extract({0}, {pattern}, {int:2}), NULL)
regexp_extract_all(varchar(x), varchar(y)) -> array(varchar(x)) | regexp_extract_all({0}, {pattern}, 0)
regexp_extract_all(varchar(x), varchar(y), bigint) -> array(varchar(x)) | regexp_extract_all({0}, {pattern}, {int:2})
regexp_position(varchar(x), varchar(y)) -> integer | CASE regexp_instr({0}, {pattern}) WHEN 0 THEN -1 ELSE regexp_instr({0}, {pattern}) END
regexp_position(varchar(x), varchar(y), integer) -> integer ! Spark's regular expressions always search from the beginning
regexp_position(varchar(x), varchar(y), integer, integer) -> integer ! Spark's regular expressions always search from the beginning
regexp_replace(varchar(x), varchar(y)) -> varchar(x) | regexp_replace({0}, {pattern}, '')
regexp_replace(varchar(x), varchar(y), varchar(z)) -> regexp replaced | regexp_replace({0}, {pattern}, {2})
regexp_replace(varchar(x), varchar(y), function(array(varchar(x)),varchar(x))) -> varchar ! Spark's regular expressions do not hand matches to a lambda
regexp_split(varchar(x), varchar(y)) -> array(varchar(x)) | IF(regexp_instr({0}, {pattern}) = 1 AND regexp_extract({0}, {pattern}, 0) = '', concat(array(''), split({0}, {pattern}, -1)), split({0}, {pattern}, -1))
"""

FRAGMENTS: Final = {"pattern": "concat('(?Ud)', {1})"}
"""Parts that several templates share; ``{name}`` in a template stands for them."""
