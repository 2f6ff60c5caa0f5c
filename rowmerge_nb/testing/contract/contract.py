"""All checks combined."""

from __future__ import annotations

from rowmerge_nb.testing.contract.branches import BranchChecks
from rowmerge_nb.testing.contract.changing import ChangeChecks
from rowmerge_nb.testing.contract.evolution import EvolutionChecks
from rowmerge_nb.testing.contract.layouts import LayoutChecks
from rowmerge_nb.testing.contract.older_flow_checks import UpdatableChecks
from rowmerge_nb.testing.contract.on_spark import SparkChecks
from rowmerge_nb.testing.contract.transactions import TransactionChecks
from rowmerge_nb.testing.contract.version_checks import VersionChecks


class ConnectorContract(
    ChangeChecks,
    LayoutChecks,
    TransactionChecks,
    EvolutionChecks,
    BranchChecks,
    UpdatableChecks,
    VersionChecks,
    SparkChecks,
):
    """The checks that every connector must pass; subclass it with a name that begins with ``Test``,
    in a file that pytest collects.

    Only `make_connector` is required. For attributes and other methods to override, see
    `rowmerge_nb.testing.contract.store_under_test.ContractStore`.
    """
