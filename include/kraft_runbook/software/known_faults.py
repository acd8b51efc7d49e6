"""Faults of releases of Kafka 4 that a later release mends. Pure.

A release has a fault where the commit that mends it is no ancestor of the commit that the release was built from, and
the faulty code is there: by the release branches up to August 2026, and by the jars of 4.2.2 and 4.4.0, which are
younger. Only faults of servers, that cost data or availability. What is not here may still be wrong: no list of
faults is ever whole.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from kraft_runbook.cluster.fault_uses import Use
from kraft_runbook.cluster.faults_in_both import (
    CUT_OFF,
    FALSE_BREACH,
    HIDDEN_CLOSE,
    LATE_EPOCH,
    LEAKED_MAPS,
    MISSED_HEARTBEATS,
    NO_PRODUCER_IDS,
    NOT_VALID,
    OFFLINE_DIRECTORY,
    TIME_INDEX,
)
from kraft_runbook.cluster.kafka_version import KafkaVersion

LOOKED_AT: Mapping[str, int] = {"4.0": 2, "4.1": 2, "4.2": 2, "4.3": 1, "4.4": 0}
"""The last release of each minor version that was looked at."""


@dataclass(frozen=True, slots=True)
class KnownFault:
    """``what``: what happens, and where. ``lines``: by minor version the first release that has it, and the first that
    does not (None: none was out). ``in_a_roll``: it shows while old and new brokers run side by side. ``only_with``:
    without it the fault can't show.
    """

    issue: str
    what: str
    lines: Mapping[str, tuple[int, int | None]]
    in_a_roll: bool = False
    only_with: Use | None = None

    def is_in(self, version: KafkaVersion) -> bool:
        """Whether this release of Apache Kafka has it."""
        first, mended = self.lines.get(version.minor, (None, None))
        patch = version.patch
        return patch is not None and first is not None and first <= patch and (mended is None or patch < mended)

    @property
    def mended_in(self) -> tuple[str, ...]:
        """The first release of each minor version that no longer has it."""
        of_lines = [f"{minor}.{mended}" for minor, (_, mended) in self.lines.items() if mended is not None]
        later = [f"{minor}.0" for minor in LOOKED_AT if minor > max(self.lines)]
        return (*of_lines, *later[:1])

    def __str__(self) -> str:
        return f"{self.issue}: {self.what} (not in {', '.join(self.mended_in)})"


FAULTS = (
    KnownFault(
        "KAFKA-20322",
        "a transaction whose coordinator runs 4.2.0 does not end while a broker below 4.2 leads one of its partitions",
        {"4.2": (0, 1)},
        in_a_roll=True,
    ),
    KnownFault(
        "KAFKA-20634",
        "a commit of offsets that was acknowledged may be lost as its __consumer_offsets partition changes its leader",
        {"4.0": (0, None), "4.1": (0, None), "4.2": (0, 2), "4.3": (0, 1)},
    ),
    KnownFault(
        "KAFKA-19862",
        "groups of type consumer or streams have no coordinator where their __consumer_offsets partition is loaded"
        " while it is compacted",
        {"4.0": (0, 2), "4.1": (0, 2)},
    ),
    KnownFault(
        "KAFKA-20115",
        "members of a group hang until their rebalance timeout where the coordinator lost its partition while a write"
        " was pending",
        {"4.0": (1, 2), "4.1": (0, 2)},
    ),
    KnownFault(
        "KAFKA-20845",
        "a write of the group coordinator that is larger than a batch may be leaves a __consumer_offsets partition that"
        " can't be loaded (very large groups)",
        {"4.0": (2, None), "4.1": (1, None), "4.2": (0, 2), "4.3": (0, None)},
    ),
    KnownFault(
        "KAFKA-19760",
        "commits of offsets fail",
        {"4.0": (0, 2), "4.1": (0, 1)},
        only_with=Use.COMPRESSED_OFFSETS,
    ),
    KnownFault(
        "KAFKA-19716",
        "a broker may run out of heap while it loads a large __consumer_offsets partition with transactional commits",
        {"4.0": (0, 2), "4.1": (0, 1)},
    ),
    KnownFault(
        "KAFKA-19163",
        "the expiry of offsets may delete a group whose offsets are part of a transaction that has not ended",
        {"4.0": (0, 1)},
    ),
    KnownFault(
        "KAFKA-19427",
        "each __consumer_offsets partition that a broker leads keeps a buffer of its max.message.bytes in the heap",
        {"4.0": (0, 1)},
    ),
    KnownFault(*LATE_EPOCH, {"4.0": (0, 2), "4.1": (0, 1)}),
    KnownFault(
        "KAFKA-20254",
        "a __consumer_offsets partition may not load once a Streams application went from a classic to a streams group",
        {"4.1": (0, None), "4.2": (0, 1)},
    ),
    KnownFault(
        "KAFKA-19354",
        "a broker, or a controller that does not vote, may not go back to the leader after one fetch that took too"
        " long",
        {"4.0": (0, None), "4.1": (0, None)},
    ),
    KnownFault(
        "KAFKA-20380",
        "a controller whose listener has no host stands in the metadata log at an address that others may not reach",
        {"4.0": (0, None), "4.1": (0, None), "4.2": (0, 1)},
        only_with=Use.DYNAMIC_QUORUM,
    ),
    KnownFault(
        "KAFKA-19444",
        "clients that ask JoinGroup 0 or 1 are refused, so their groups stop (some in Go, Elixir, Erlang)",
        {"4.0": (0, 1)},
    ),
    KnownFault(*CUT_OFF, {"4.0": (0, 1)}),
    KnownFault(*NOT_VALID, {"4.0": (0, 1)}),
    KnownFault(
        *FALSE_BREACH,
        {"4.0": (0, None), "4.1": (0, None), "4.2": (0, None), "4.3": (0, None)},
        only_with=Use.TIERED_STORAGE,
    ),
    KnownFault(
        "KAFKA-19367",
        "with transaction.version 2 a producer's epoch overflows at its last value, and its transaction can't go on",
        {"4.0": (0, 1)},
    ),
    KnownFault(*NO_PRODUCER_IDS, {"4.0": (0, 2), "4.1": (0, 2)}),
    KnownFault(
        "KAFKA-20247",
        "a controller whose registration timed out once is never registered, and no level can be raised, until it is"
        " restarted (the roll does that)",
        {"4.0": (0, None), "4.1": (0, None), "4.2": (0, 1)},
    ),
    KnownFault(
        *OFFLINE_DIRECTORY,
        {"4.0": (0, 2), "4.1": (0, 2)},
        only_with=Use.DIRECTORIES,
    ),
    KnownFault(*TIME_INDEX, {"4.0": (0, 1)}),
    KnownFault(*HIDDEN_CLOSE, {"4.0": (0, 1)}),
    KnownFault(*LEAKED_MAPS, {"4.0": (0, 2), "4.1": (0, 1)}),
    KnownFault(*MISSED_HEARTBEATS, {"4.0": (0, 1)}),
    KnownFault(
        "KAFKA-19383",
        "with eligible leader replicas the id of a deleted topic comes back in the metadata",
        {"4.0": (0, 1)},
    ),
    KnownFault("KAFKA-19522", "with eligible leader replicas a fenced broker is elected leader", {"4.0": (0, None)}),
    KnownFault("KAFKA-20505", "fetches of share groups of one broker may block each other for good", {"4.2": (0, 1)}),
    KnownFault(
        "KAFKA-19561",
        "an answer may stay unsent after a client has logged in again",
        {"4.0": (0, 2), "4.1": (0, 2)},
        only_with=Use.REAUTHENTICATION,
    ),
)
"""Worst first. Left out: what only clients have, and what another check names (``KRB-UPG-004``, ``KRB-UPG-019``)."""


def was_looked_at(version: KafkaVersion) -> bool:
    """Whether the list is of this release too: one of Apache Kafka, that was out when the list was made."""
    return version.patch is not None and version.patch <= LOOKED_AT.get(version.minor, -1)


def faults_of(version: KafkaVersion, unused: Collection[Use] = ()) -> tuple[KnownFault, ...]:
    """Those of a release of Apache Kafka 4 that can show in a cluster without what is ``unused``."""
    return tuple(each for each in FAULTS if each.is_in(version) and each.only_with not in unused)


def better_patch(version: KafkaVersion, unused: Collection[Use] = ()) -> str | None:
    """The first later release of the same minor version with the fewest of them; None where none has fewer."""

    def count(of: KafkaVersion) -> int:
        return len(faults_of(of, unused))

    patch, minor = version.patch, version.minor
    later = [] if patch is None else range(patch + 1, LOOKED_AT.get(minor, 0) + 1)
    fewest = min((KafkaVersion.of(f"{minor}.{each}") for each in later), key=count, default=version)
    return fewest.text if count(fewest) < count(version) else None


def render_faults() -> str:
    """docs/known-faults.md below its words: the table, which a test holds against this one."""
    return "\n".join(["| | what happens | releases that have it |", "|---|---|---|", *map(_row, FAULTS)])


def _row(fault: KnownFault) -> str:
    only = f" (only with {fault.only_with})" if fault.only_with else ""
    return f"| {fault.issue} | {fault.what}{only} | {', '.join(_spans(fault.lines.items()))} |"


def _spans(lines: Iterable[tuple[str, tuple[int, int | None]]]) -> Iterable[str]:
    for minor, (first, mended) in lines:
        one = mended == first + 1
        yield (
            f"{minor}.{first}" if one else f"{minor}.{first} on" if mended is None else f"{minor}.{first}–{mended - 1}"
        )
