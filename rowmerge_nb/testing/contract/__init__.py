"""The contract kit: what a connector must do, as tests that run against it.

A connector's developer writes a test file::

    from rowmerge_nb.testing.contract import ConnectorContract

    class TestShop(ConnectorContract):
        def make_connector(self, folder):
            return ShopConnector(folder / "shop")

and runs pytest; or, in a notebook, ``check_contract(TestShop)``. What the connector does not have is said by the attributes of `ConnectorContract`; checks of it are skipped, and say why.
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

# So that a failed check shows the values on both sides; to be said before the modules are imported.
pytest.register_assert_rewrite(*(f"{__name__}.{module}" for module in MODULES))

from rowmerge_nb.testing.contract.contract import ConnectorContract  # noqa: E402
from rowmerge_nb.testing.contract.contract_statement import Changes, PageStatement  # noqa: E402
from rowmerge_nb.testing.contract.notebook import Checked, check_contract  # noqa: E402
from rowmerge_nb.testing.contract.store_under_test import FilledTable, Way  # noqa: E402

__all__ = ["Changes", "Checked", "ConnectorContract", "FilledTable", "PageStatement", "Way", "check_contract"]
