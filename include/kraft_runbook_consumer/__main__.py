"""A migrating member that prints what it reads, as an example and a canary:

python -m kraft_runbook_consumer --topic orders group.id=orders zookeeper.connect=zk1:2181
"""

from __future__ import annotations

import argparse
import logging
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from kraft_runbook_consumer import ConsumerError, MigratingConsumer
from kraft_runbook_consumer.handed_out import HandedOutLog

Makes = Callable[[Mapping[str, str], Mapping[str, int]], MigratingConsumer]


def main(arguments: Sequence[str] | None = None, makes: Makes = MigratingConsumer) -> int:
    """Records go to standard output: partition, offset and text; what the member does, to standard error. Exit code 2:
    a setting or the log can't be used, or a server did not answer. ``arguments``: those of the command line where None;
    ``makes``: the member.
    """
    parser = argparse.ArgumentParser(prog="python -m kraft_runbook_consumer", description=__doc__)
    parser.add_argument("--topic", required=True)
    parser.add_argument("settings", nargs="*", metavar="KEY=VALUE", help="of docs/migrating-consumer.md")
    parser.add_argument("--config", type=Path, help="a file of KEY=VALUE lines: others can read a command line")
    parser.add_argument("--log", type=Path, help="a file to which a line is added for each record (docs/proof.md)")
    asked = parser.parse_args(arguments)
    try:
        settings = dict(each.partition("=")[::2] for each in [*_lines(asked.config), *asked.settings])
    except (OSError, ValueError) as error:
        print(f"{asked.config} can't be read: {type(error).__name__}", file=sys.stderr)
        return 2
    logging.basicConfig(format="%(asctime)s %(message)s", level=logging.WARNING)
    logging.getLogger("kraft_runbook_consumer").setLevel(logging.INFO)
    told_to_end: list[int] = []
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda got, _frame: told_to_end.append(got))
    try:
        with ExitStack() as ends:
            log = ends.enter_context(HandedOutLog(asked.log)) if asked.log is not None else None
            consumer = ends.enter_context(makes(settings, {asked.topic: 1}))
            if log is not None:
                log.member = consumer.member_id
            while not told_to_end:
                message = consumer.streams[0].poll(0.2)
                if message is None:
                    continue
                if log is not None:
                    log.write(message)
                text = (message.value() or b"").decode("utf-8", "replace")
                print(message.partition(), message.offset(), text, flush=True)
    except ConsumerError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


def _lines(path: Path | None) -> list[str]:
    """The settings of a file, without comments. Raises OSError, ValueError."""
    if path is None:
        return []
    return [line for each in path.read_text().splitlines() if (line := each.strip()) and not line.startswith("#")]


if __name__ == "__main__":
    sys.exit(main())
