"""Injected faults: a connector around another one that logs the contract's calls and fails at a
chosen one.

>>> from rowmerge_nb.connectors.memory.memory_connector import MemoryConnector
>>> connector = FaultyConnector(MemoryConnector(), Fault("commit", call=2, message="no answer"))
>>> transaction = connector.begin_transaction()
>>> connector.calls
['begin_transaction']
"""

from __future__ import annotations

from rowmerge_nb.engine.catalog.faulty import FaultyConnector
from rowmerge_nb.engine.tasks.task_faults import UNSET, Fault

__all__ = ["UNSET", "Fault", "FaultyConnector"]
