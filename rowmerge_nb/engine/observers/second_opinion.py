"""The option ``verify``: another engine runs the statement, see
`rowmerge_nb.engine.observers.verify.verification`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rowmerge_nb.engine.statements.run_observer import RunObserver

if TYPE_CHECKING:
    from rowmerge_nb.engine.api.result import Result
    from rowmerge_nb.engine.observers.verify.verification import Verification
    from rowmerge_nb.engine.statements.statement import StatementRun


class SecondOpinion(RunObserver):
    """Adds the other engine's answer to the trace."""

    def __init__(self, verification: Verification) -> None:
        self._verification = verification

    def after_result(self, run: StatementRun, result: Result) -> None:
        self._verification.told(result)
