"""The contract kit: the requirements of a connector, as tests that run against it.

A connector's developer writes a test file::

    from rowmerge_nb.testing.contract import ConnectorContract

    class TestShop(ConnectorContract):
        def make_connector(self, folder):
            return ShopConnector(folder / "shop")

and runs pytest, or ``check_contract(TestShop)`` in a notebook. Attributes of `ConnectorContract`
declare unsupported features, whose checks are skipped.
"""

from __future__ import annotations

from typing import Final

MODULES: Final = (
    "changing",
    "contract_statement",
    "failures",
    "layouts",
    "older_flow_checks",
    "on_spark",
    "reading_checks",
    "store_under_test",
    "transactions",
)

try:
    import pytest
except ImportError as missing:
    msg = "The contract kit is run by pytest, which is not installed. Run: pip install pytest"
    raise ImportError(msg) from missing

# Failed checks then show both values; registration must precede the imports.
pytest.register_assert_rewrite(*(f"{__name__}.{module}" for module in MODULES))

from rowmerge_nb.testing.contract.contract import ConnectorContract  # noqa: E402
from rowmerge_nb.testing.contract.contract_statement import Changes, PageStatement  # noqa: E402
from rowmerge_nb.testing.contract.notebook import Checked, check_contract  # noqa: E402
from rowmerge_nb.testing.contract.store_under_test import FilledTable, Way  # noqa: E402

__all__ = [
    "Changes",
    "Checked",
    "ConnectorContract",
    "FilledTable",
    "PageStatement",
    "Way",
    "check_contract",
]
