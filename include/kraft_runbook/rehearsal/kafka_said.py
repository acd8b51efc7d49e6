"""What a controller's log says of the copy that ended it, or of what it could not apply. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

_FAULT = r"Encountered {} fault: (?P<what>.*?)(?: \(org\.apache\.\S+\))?$"
FATAL = re.compile(_FAULT.format("fatal"))
"""``ProcessTerminatingFaultHandler`` of the controller."""
OF_ITS_START = ("caught exception", "Error starting ")
"""Fatal faults of a controller that can't start (``ControllerServer.startup``), and of a broker in KRaft mode
(``BrokerMetadataPublisher.initializeManagers``).
"""
ENDED_AT_START = re.compile(r"(?P<what>Exiting Kafka due to fatal exception|Fatal error during \w+ startup)")
"""What a server logs of the exception that ends it at its start (``kafka.Kafka``, ``KafkaServer``, ``BrokerServer``):
the first alone where its settings are refused.
"""
UNAPPLIED = re.compile(_FAULT.format("metadata publishing(?!.*snapshot file)"))
"""``LoggingFaultHandler``: the controller goes on, and counts a metadata error (a token without a key, on 3.9.2). A
snapshot that could not be written has the same words (``SnapshotGenerator``), and is no matter of the metadata.
"""
STARTS = re.compile(r"run-service\.sh: \S+ starts as pid \d+$")
"""What the throwaway's launcher says before the server does."""
EXCEPTION = re.compile(r"^(?:Caused by: )?(?P<name>[\w.$]+(?:Exception|Error))(?:: (?P<said>.*))?$")
OUT_OF_MEMORY = ("OutOfMemoryError", "unable to create native thread", "Cannot allocate memory")
KILLED = "terminated by SIGKILL; not expected"
"""What the supervisor logs of a process that it was not told to end: the kernel ends one where memory is short."""
PLACE = (
    *(*OUT_OF_MEMORY, KILLED, "No space left on device", "Address already in use", "Too many open files"),
    *("Disk quota exceeded", "Input/output error", "Read-only file system", "Stale file handle"),
    "Failed to acquire lock on file .lock",
)
"""What says that the machine is at fault, not the metadata."""
HEAP_IS_FULL = ("Java heap space", "GC overhead limit exceeded")
"""Of these the machine's own memory is no cause: -Xmx is too small for what the process holds."""
FENCED = re.compile(r"Fencing broker (?P<id>\d+) because its session has timed out")
"""``ReplicationControlManager``, of a broker that sent no heartbeat for ``broker.session.timeout.ms``."""
_OF_METADATA = re.compile(
    r"MigrateMetadataEvent|ZK migration|handling migration|Zk\w*MigrationClient|RecordBatchTooLarge|Unable to apply"
    r"|MetadataLoader|Error loading metadata|Error while loading snapshot|image ending at"
)
"""What a fatal fault says, or a frame of its trace, where the metadata is in the controller's hand: the copy
(``KRaftMigrationDriver``), and the records that it or another one applies (``QuorumController.replay``,
``MetadataLoader``). Others are of the quorum alone: "Unexpected error in raft IO thread", "exception while claiming
leadership".
"""
_PASSING = re.compile(
    r"\b(?:NotController|NotLeader\w*|ControllerMoved|\w*Timeout|Connect|ConnectionLoss|SessionExpired|SessionMoved"
    r"|ZooKeeperClientExpired|NodeExists|RejectedExecution|Cancellation|Interrupted)Exception\b"
)
"""What a copy, or a start, ends of that is over the next time: an election in it, a session that ran out, a wait."""
_ZNODE = re.compile(
    r"(?<![\w/])/(?:brokers/topics|config|kafka-acl|delegation_token|latest_producer_id_block)[^\s,;)\"']*"
)
_TOKENS, _TOPICS = ("/delegation_token",), ("/brokers/topics", "/config/topics")
_QUOTAS, _ACLS = ("/config/users", "/config/clients", "/config/ips"), ("/kafka-acl", "/kafka-acl-extended")
_KINDS = (
    (re.compile(r"TopicConfigHandler|fetchTopicConfigOverrides"), ("/config/topics",)),
    (re.compile(r"BrokerConfigHandler"), ("/config/brokers",)),
    (re.compile(r"producer\s?id", re.IGNORECASE), ("/latest_producer_id_block",)),
    (re.compile(r"delegation\s?token", re.IGNORECASE), _TOKENS),
    (re.compile(r"scram|quota", re.IGNORECASE), _QUOTAS),
    (re.compile(r"\bacls?\b|AclMigrationClient|AclEntry|[a-z]Acls\b", re.IGNORECASE), _ACLS),
    (re.compile(r"iterateBrokerConfigs|migrateBrokerConfigs"), ("/config/brokers",)),
    (re.compile(r"TopicMigrationClient|migrateTopics"), _TOPICS),
)
"""What a message or a frame of a trace says of where Kafka was: the kinds of znodes that it read there."""


@dataclass(frozen=True, slots=True)
class KafkaSaid:
    """``fault``: what the controller was doing; ``exceptions``: each with its message, the cause last. ``znode``: the
    one that they name; ``kinds``: where those are that it was reading. Empty where they name none. ``frames``: of the
    stack traces.
    """

    fault: str
    exceptions: tuple[str, ...]
    znode: str = ""
    kinds: tuple[str, ...] = ()
    frames: tuple[str, ...] = ()

    @property
    def of_metadata(self) -> bool:
        """Whether it speaks of the copy, or of records that are applied; else it is of the quorum alone."""
        return any(_OF_METADATA.search(each) for each in (self.fault, *self.exceptions, *self.frames))

    @property
    def passing(self) -> bool:
        """Whether its cause is one of a moment: an election, a session that ran out, a wait."""
        return any(_PASSING.search(each) for each in self.exceptions)

    @property
    def where(self) -> str:
        """The znode, or the kinds, in words."""
        return self.znode or " or ".join(filter(None, (", ".join(self.kinds[:-1]), *self.kinds[-1:])))

    def __str__(self) -> str:
        said = f"{self.fault}: {'; caused by '.join(self.exceptions)}" if self.exceptions else self.fault
        return f"{said} ({self.where})" if self.where else said


def end_at_start_of(lines: Sequence[str]) -> KafkaSaid | None:
    """What ended a broker or a controller at its last start, by its log; None where nothing says so."""
    since = since_start(lines)
    if said := fatal_of(since, fault=ENDED_AT_START):
        return said
    said = fatal_of(since)
    return said if said is not None and said.fault.startswith(OF_ITS_START) else None


def since_start(lines: Sequence[str]) -> Sequence[str]:
    """A log's lines since the last start: what ended an earlier life of the process was over then."""
    starts = [number for number, line in enumerate(lines) if STARTS.match(line)]
    return lines[starts[-1] :] if starts else lines


def fatal_of(lines: Iterable[str], *, fault: re.Pattern[str] = FATAL) -> KafkaSaid | None:
    """The first fatal fault in a log, with its exceptions; None where there is none. ``fault``: another kind.

    The migration driver logs why it aborts, with the exception, and then only "Aborting the ZK migration" as the fault
    (seen on 3.9.2): where a fault has no exception of its own, it is that of the last error before it.
    """
    listed = list(lines)
    for number, line in enumerate(listed):
        if match := fault.search(line):
            trace = _trace(listed[number + 1 :]) or _last_trace(listed[:number])
            exceptions = tuple(each.removeprefix("Caused by: ")[:400] for each in trace if EXCEPTION.match(each))
            frames = tuple(each for each in trace if "\tat " in each)
            return KafkaSaid(match["what"], exceptions, *_where([match["what"], *exceptions, *frames]), frames)
    return None


def _last_trace(lines: Sequence[str]) -> list[str]:
    """That of the last error that has one."""
    for number in range(len(lines) - 1, -1, -1):
        if lines[number].startswith("[") and " ERROR " in lines[number] and (trace := _trace(lines[number + 1 :])):
            return trace
    return []


def _trace(lines: Sequence[str]) -> list[str]:
    """The lines of the stack trace that follow, up to the next line of the log."""
    trace = []
    for line in lines:
        if line.startswith("["):
            break
        trace.append(line)
    return trace


def _where(texts: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    """A znode, and the kinds."""
    for text in texts:
        if match := _ZNODE.search(text):
            return match[0].rstrip(".:"), ()
    for kind, where in _KINDS:
        if any(kind.search(text) for text in texts):
            return (where[0], ()) if where == ("/latest_producer_id_block",) else ("", where)
    return "", ()


def fenced_in(lines: Iterable[str]) -> frozenset[int]:
    """The brokers that a controller fenced since no heartbeat came, by its log."""
    return frozenset(int(match["id"]) for line in lines if (match := FENCED.search(line)))


def place_at_fault(lines: Iterable[str]) -> str | None:
    """The first line that says that the machine is at fault; None where none does."""
    return next((line.strip()[:300] for line in lines if any(each in _without_options(line) for each in PLACE)), None)


def heap_is_full(lines: Iterable[str]) -> str | None:
    """The first line that says that the process's own heap is full; None where none does."""
    return next((line.strip()[:300] for line in lines if any(each in line for each in HEAP_IS_FULL)), None)


def _without_options(line: str) -> str:
    """A line that shows a JVM's options names an error in one of them."""
    return line.replace("ExitOnOutOfMemoryError", "")
