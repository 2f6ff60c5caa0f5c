"""Statements under bursts of interrupts, in a separate process: the last line reports whether the session still works."""

from __future__ import annotations

import logging
import os
import random
import signal
import sys
import threading
import time
import traceback
from contextlib import suppress

import pyarrow as pa

from rowmerge_nb import Engine, RowMergeError

BURSTS = 12


def main() -> None:
    """Interrupt MERGEs and queries at all moments, three signals at a time."""
    chance = random.Random(7)
    frame = pa.table({"id": list(range(100)), "v": [0] * 100})
    with Engine(cores=1) as engine:
        engine.register("t", frame)
        merge = "MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = s.v + 1"
        engine.run(merge, namespace={"s": frame})
        begun = time.monotonic()
        engine.run(merge, namespace={"s": frame})
        usual = time.monotonic() - begun
        for _ in range(BURSTS):
            ended = threading.Event()
            burst = threading.Thread(
                target=interrupt, args=(chance.uniform(0, usual), chance, ended)
            )
            try:
                burst.start()
                engine.run(merge, namespace={"s": frame})
            except (RowMergeError, KeyboardInterrupt) as error:
                if getattr(error, "code", "USER_CANCELED") != "USER_CANCELED":
                    raise
            # Not by joining the thread: one whose join() was interrupted counts as ended, before Python 3.13.
            while not ended.is_set():
                with suppress(KeyboardInterrupt):
                    ended.wait(1)
        sys.stdout.write(f"works {engine.run(merge, namespace={'s': frame}).count}\n")


def interrupt(wait: float, chance: random.Random, ended: threading.Event) -> None:
    """Interrupt this process several times in a row."""
    time.sleep(wait)
    for _ in range(6):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(chance.uniform(0, 0.004))
    # The last signal has been handled by then.
    time.sleep(0.05)
    ended.set()


class WithStack(logging.StreamHandler):
    """Adds the callers to log records: py4j reports only its own position for an interrupt."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record, and the stack."""
        record.stack_info = "".join(traceback.format_stack())
        super().emit(record)


if __name__ == "__main__":
    logging.getLogger().addHandler(WithStack())
    signal.signal(signal.SIGINT, signal.default_int_handler)
    main()
