"""Statements under bursts of interrupts, in a process of their own: the last line says whether the session still works."""

from __future__ import annotations

import os
import random
import signal
import threading
import time

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
            burst = threading.Thread(target=interrupt, args=(chance.uniform(0, usual), chance))
            try:
                burst.start()
                engine.run(merge, namespace={"s": frame})
                burst.join()
            except (RowMergeError, KeyboardInterrupt) as error:
                if getattr(error, "code", "USER_CANCELED") != "USER_CANCELED":
                    raise
            while burst.is_alive():
                try:
                    burst.join(1)
                except KeyboardInterrupt:
                    continue
        print("works", engine.run(merge, namespace={"s": frame}).count)


def interrupt(wait: float, chance: random.Random) -> None:
    """Interrupt this process some times in a row."""
    time.sleep(wait)
    for _ in range(6):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(chance.uniform(0, 0.004))


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)
    main()
