"""Regular expressions."""

from __future__ import annotations

from typing import Final

__all__ = ["ROWS"]

ROWS: Final = r"""
regexp_like(varchar, varchar) -> boolean | regexp_like({0}, {1})
regexp_extract(varchar, varchar) -> varchar | IF(regexp_like({0}, {1}), regexp_extract({0}, {1}, 0), NULL)
regexp_extract(varchar, varchar, bigint) -> varchar | IF(regexp_like({0}, {1}), regexp_extract({0}, {1}, CAST({2} AS INT)), NULL)
regexp_extract_all(varchar, varchar) -> array(varchar) | regexp_extract_all({0}, {1}, 0)
regexp_replace(varchar, varchar) -> varchar | regexp_replace({0}, {1}, '')
regexp_replace(varchar, varchar, varchar) -> varchar | regexp_replace({0}, {1}, {2})
regexp_count(varchar, varchar) -> bigint | CAST(regexp_count({0}, {1}) AS BIGINT)
"""
