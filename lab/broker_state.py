"""Is each broker wholly alive? Its process, its listeners for what changes in ZooKeeper, and what its log says since it
started.

A broker can be half dead: ``ShutdownableThread.run`` logs what ended a thread, and the process lives on. The cluster's
metadata shows nothing of it. Where the thread listened for ``/config/changes``, the broker never hears of new quotas,
credentials and settings again.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from kraft_runbook.cluster.properties_text import parse_properties
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.cluster.spec_nodes import Broker
from kraft_runbook.errors import StepFailed
from kraft_runbook.io.local import supervision
from kraft_runbook.migration.listener_threads import expected, missing_threads
from lab.layout import Layout, layout

STARTED = re.compile(r"\bstarted \(kafka\.server\.Kafka(?:Raft)?Server\)")
MARK = "run-service.sh: {} starts as pid "
LAST_WORDS = ("Error due to", "OutOfMemoryError", " FATAL ", "Fatal error", "Uncaught exception")
"""What Kafka, or its JVM, says when a thread or the process ends: never in a log where all is well."""


@dataclass(frozen=True, slots=True)
class Unwell:
    """A broker that is not wholly alive. ``says``: its log's first line about it, with the exception; empty where the
    log has none.
    """

    broker: Broker
    what: str
    says: str
    runs: bool

    def __str__(self) -> str:
        return f"broker {self.broker.id} {self.what}{f'; its log says: {self.says}' if self.says else ''}"


def require_well(spec: ClusterSpec, *, brokers: Iterable[Broker] = (), logs: bool = True) -> None:
    """Raise StepFailed where a broker (of ``brokers``, or any) is half dead or has ended, with its log's own words and
    the command that helps.

    ``logs=False`` reads the log only of a broker whose threads or process are missing: cheap enough for a loop.
    """
    found = [each for broker in brokers or spec.brokers if (each := look(spec, broker, logs=logs))]
    if not found:
        return
    restart = [each.broker.service for each in found if each.runs]
    commands = ([f"python -m lab restart {' '.join(restart)}"] if restart else []) + (
        [] if all(each.runs for each in found) else ["python -m lab up"]
    )
    files = ", ".join(str(layout(spec).logs / f"{each.broker.service}.log") for each in found)
    raise StepFailed(
        "\n".join(map(str, found)),
        way_out=f"{', then '.join(commands)}, then seed again: python -m lab seed  (read {files})",
    )


def look(spec: ClusterSpec, broker: Broker, *, logs: bool = True) -> Unwell | None:
    """What is wrong with a broker of this lab; None where nothing is, or where it still starts."""
    here = layout(spec)
    process = supervision.processes(here).get(broker.service)
    if process is None or not process.runs:
        state = f" ({process.state})" if process else ""
        return Unwell(broker, f"does not run{state}", last_words(said(here, broker.service)), runs=False)
    missing = _missing_listeners(broker, process.pid)
    if not missing and not logs:
        return None
    lines = said(here, broker.service)
    if _starting(lines, broker.service):
        return None
    words = last_words(lines)
    if missing:
        deaf = ", ".join(missing)
        return Unwell(
            broker,
            f"runs, but no longer listens for {deaf} in ZooKeeper: it will never hear of what changes there",
            words,
            runs=True,
        )
    return Unwell(broker, "runs, but not all of it", words, runs=True) if words else None


def still_starting(spec: ClusterSpec) -> list[Broker]:
    """The brokers that have not said yet that they have started, though they may be registered.

    One that is told to stop by then ends without closing its session ("Kafka server is still starting up, cannot shut
    down!"), and until the session has expired its next start fails: the znode of its id exists (KafkaServer.shutdown).
    """
    return [broker for broker in spec.brokers if _starting(said(layout(spec), broker.service), broker.service)]


def _starting(lines: Iterable[str], service: str) -> bool:
    """Whether the log's last process has not started yet. Where the log does not hold its beginning any
    more, it has.
    """
    begun = False
    for line in lines:
        begun = begun or line.startswith(MARK.format(service))
        if STARTED.search(line):
            return False
    return begun


def listeners(properties: Mapping[str, str]) -> tuple[str, ...]:
    """The paths whose changes a broker with this configuration listens for: none in KRaft mode."""
    return () if "process.roles" in properties else expected(properties)


def last_words(lines: Iterable[str]) -> str:
    """The first line of a log that tells of a thread's or the process's end, and the exception under it; empty where
    there is none.
    """
    rest = iter(lines)
    for line in rest:
        if any(words in line for words in LAST_WORDS):
            under = next(rest, "")
            return line.strip() + ("" if under.startswith("[") or not under.strip() else f" {under.strip()}")
    return ""


def since_start(lines: Iterable[str], service: str) -> list[str]:
    """What a service's log holds of its last process. run-service.sh marks the start; without a mark, all of it."""
    found = list[str]()
    for line in lines:
        if line.startswith(MARK.format(service)):
            found = []
        found.append(line)
    return found


def _missing_listeners(broker: Broker, pid: int) -> list[str]:
    names = thread_names(pid)
    if not names:  # the process has just ended: the next look tells
        return []
    return missing_threads(listeners(parse_properties(Path(broker.config_file).read_text())), names)


def thread_names(pid: int) -> list[str]:
    """The names of a process's threads, as Linux keeps them (15 characters); none when it has ended. Threads may end
    while they are listed.
    """
    names = list[str]()
    with contextlib.suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            with contextlib.suppress(OSError):
                names.append((task / "comm").read_text().rstrip("\n"))
    return names


def said(here: Layout, service: str) -> list[str]:
    """What a service's log holds of its last process, line by line."""
    return since_start(_lines(here, service), service)


def _lines(here: Layout, service: str) -> Iterator[str]:
    """A service's log, rotated parts first."""
    for path in [*(here.logs / f"{service}.log.{number}" for number in (3, 2, 1)), here.logs / f"{service}.log"]:
        if path.exists():
            with path.open(errors="replace") as file:
                yield from file
