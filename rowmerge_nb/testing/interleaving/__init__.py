"""Every order of the contract calls of two concurrent statements, without Spark, and the results."""

from __future__ import annotations

from rowmerge_nb.testing.contract.contract_statement import Changes
from rowmerge_nb.testing.interleaving.interleaved_statement import upsert
from rowmerge_nb.testing.interleaving.result import Interleaving, Order
from rowmerge_nb.testing.interleaving.run import interleave

__all__ = ["Changes", "Interleaving", "Order", "interleave", "upsert"]
