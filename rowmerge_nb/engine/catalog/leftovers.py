"""Orphans in the stores of all catalogs."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rowmerge_nb.base.errors import RowMergeError, StatementInterrupted, error_text
from rowmerge_nb.base.front_end import orphans_command
from rowmerge_nb.base.words import plural
from rowmerge_nb.engine.spark.interrupts import (
    Interrupts,
    WaitEndedError,
    interrupts_put_off,
    interrupts_reported,
    raise_put_off,
)
from rowmerge_nb.engine.spark.marks import orphaned_marks

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rowmerge_nb.spi.connector import Connector, Orphan


@dataclass(frozen=True)
class CatalogOrphans:
    """The orphans of one catalog.

    ``problem`` is why the store was not, or not fully, searched; ``""`` if it was.
    """

    catalog: str
    store: str
    orphans: tuple[Orphan, ...] = ()
    problem: str = ""


def orphans_of(connectors: Mapping[str, Connector], *, remove: bool) -> list[CatalogOrphans]:
    """List or remove the orphans of every catalog, despite failing ones.

    A removal in one catalog is interrupted only by a second interrupt, ten seconds after the first.

    >>> orphans_of({}, remove=False)
    []
    """
    answers: list[CatalogOrphans] = []
    catalogs = sorted(connectors)

    def report(interrupt: BaseException) -> StatementInterrupted:
        if not remove:
            return StatementInterrupted(
                "The search for leftovers was interrupted; nothing was removed", step="orphans"
            )
        unfinished = catalogs[len(answers)] if isinstance(interrupt, WaitEndedError) else ""
        return _interrupted_removal(answers, catalogs, unfinished)

    with interrupts_reported(report):
        for catalog in catalogs:
            with interrupts_put_off() if remove else nullcontext(Interrupts()) as interrupts:
                answers.append(_orphans_in(catalog, connectors[catalog], remove=remove))
            if interrupts.came:
                raise_put_off()
    return answers


def _orphans_in(catalog: str, connector: Connector, *, remove: bool) -> CatalogOrphans:
    try:
        orphans = tuple(connector.remove_orphans() if remove else connector.orphans())
        if (directory := connector.shared_directory) is not None:
            orphans += tuple(orphaned_marks(directory, remove=remove))
        problem = " ".join(f"{sentence.rstrip('.')}." for sentence in connector.orphan_problems())
        return CatalogOrphans(catalog, connector.name, orphans, problem)
    except RowMergeError as error:
        return CatalogOrphans(catalog, connector.name, problem=str(error))
    except Exception as error:  # noqa: BLE001 - whatever a connector raises must not hide what the others have
        return CatalogOrphans(catalog, connector.name, problem=error_text(error))


def _interrupted_removal(
    answers: Sequence[CatalogOrphans], catalogs: Sequence[str], unfinished: str
) -> StatementInterrupted:
    count = sum(len(answer.orphans) for answer in answers)
    finished = ", ".join(answer.catalog for answer in answers) or "no catalog"
    words = [f"{plural(count, 'leftover')} removed from {finished}"]
    if unfinished:
        words.append(f"some may be removed from {unfinished}")
    if rest := [name for name in catalogs[len(answers) :] if name != unfinished]:
        words.append(f"nothing was removed from {', '.join(rest)}")
    return StatementInterrupted(
        f"The removal of leftovers was interrupted: {'; '.join(words)}",
        step="orphans",
        changed=True if count else None if unfinished else False,
        hint=f"Tables are unchanged. {orphans_command()} lists what is left.",
    )
