"""A migrating member as a process: python migrating_process.py SETTINGS TOPIC LOG. Ends orderly at SIGTERM.

LOG gets a line for each record: when (monotonic clock, which the processes of a machine share), partition, offset.
"""

from __future__ import annotations

import json
import signal
import sys
import time
from pathlib import Path

from kraft_runbook_consumer import MigratingConsumer


def main(settings: str, topic: str, log: str) -> None:
    with Path(log).open("w", buffering=1) as out, MigratingConsumer(json.loads(settings), {topic: 1}) as consumer:
        asked_to_end: list[int] = []
        signal.signal(signal.SIGTERM, lambda number, _: asked_to_end.append(number))
        print(consumer.member_id, flush=True)
        while not asked_to_end:
            message = consumer.streams[0].poll(0.2)
            if message is not None:
                out.write(f"{time.monotonic()} {message.partition()} {message.offset()}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
