"""Errors of the steps before a statement runs, and what every error of a statement carries."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from rowmerge_nb.base.choices import StatementState
from rowmerge_nb.base.errors import ExecutionError, RowMergeError, error_text
from rowmerge_nb.engine.api.result import Result
from rowmerge_nb.engine.spark.errors.translate import java_gone, with_next_step
from rowmerge_nb.engine.spark.interrupts import interruptible, to_its_end
from rowmerge_nb.trace.error_record import Consequence, error_record
from rowmerge_nb.trace.trace import Trace

if TYPE_CHECKING:
    from rowmerge_nb.engine.catalog.transaction import StatementTransaction


@contextmanager
def reporting_step(step: str) -> Iterator[None]:
    """Turn interrupts, and what connectors raise, into errors of ours with the name of the step."""
    try:
        with interruptible(step):
            yield
    except RowMergeError:
        raise
    except Exception as error:
        if (java_error := java_gone(error, step)) is not None:
            raise java_error from error
        raise ExecutionError(
            f"The statement could not be inspected ({step}): {error_text(error)}", step=step
        ) from error


@contextmanager
def rolling_back_on_error(transaction: StatementTransaction) -> Iterator[None]:
    """Roll a transaction back if the block raises; a transaction that has ended stays unchanged."""
    try:
        yield
    except BaseException:
        with suppress(Exception):
            to_its_end(transaction.rollback)
        raise


def complete_error(error: RowMergeError, text: str) -> None:
    with_next_step(error).statement = error.statement or text
    if error.result is None:
        consequences = (
            (Consequence("nothing was read or written"),) if error.changed is False else ()
        )
        record = error_record(error, consequences)
        statement_kind = (text.split(None, 1) or [""])[0].upper()
        error.result = Result(
            Trace(statement=text, kind=statement_kind, state=StatementState.FAILED, error=record)
        )
