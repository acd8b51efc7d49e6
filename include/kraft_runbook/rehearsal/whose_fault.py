"""Whose fault it is that a rehearsal did not go on: the place's, or the metadata's and this tool's. Pure."""

from __future__ import annotations

import re
import subprocess
import xmlrpc.client
from collections.abc import Iterable
from dataclasses import replace

from kraft_runbook.cluster.observation import ClusterObservation, was_read
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.rehearsal.kafka_said import KafkaSaid
from kraft_runbook.rehearsal.limits import why_busy
from kraft_runbook.rehearsal.verdict import MISMATCH, TREE_CHANGED, Finding, Verdict
from kraft_runbook.runbook.check_results import CheckResult
from kraft_runbook.runbook.check_results import Verdict as Answer

OF_THE_PLACE = frozenset({"KRB-PRE-015", "KRB-PRE-041", "KRB-PRE-042"})
"""Checks of hosts, which are this machine here: which Java there is, whether a port is free, the room of a disk."""
OF_A_BUSY_PLACE = frozenset({"KRB-DW-001", "KRB-GATE-003"})
"""Checks that ZooKeeper keeps up with the quorum, in a time that a busy machine does not hold."""
BY_AN_ELECTION = frozenset(
    {
        *("KRB-PRE-022", "KRB-GATE-001", "KRB-GATE-002", "KRB-GATE-006", "KRB-GATE-008", "KRB-GATE-009"),
        "KRB-GATE-014",
    }
)
"""Checks of who leads and of what a leader shows, which fail for some moments after each election."""
OF_WHAT_RUNS = OF_A_BUSY_PLACE | {
    *("KRB-PRE-004", "KRB-PRE-006", "KRB-PRE-022", "KRB-PRE-029", "KRB-PRE-057", "KRB-QRM-003"),
    *("KRB-GATE-001", "KRB-GATE-002", "KRB-GATE-006", "KRB-GATE-008", "KRB-GATE-009", "KRB-GATE-014"),
}
"""Checks that fail where a process has ended, or its disk is full, whatever the metadata is."""


NO_THREAD = "can't start new thread"
"""What Python says (RuntimeError) where the system gives it none."""
NO_JVM = "JAVA_GATEWAY_EXITED"
"""PySpark's word (PySparkRuntimeError) for a JVM that ended before it answered."""


def of_check(
    result: CheckResult, gate: str, *, load: float | None, cores: float | None, throttled: float | None = None
) -> Finding:
    """What a check of a gate says that blocks: FAILED where it failed, INCONCLUSIVE where it could not be answered,
    judges this machine, or may have failed because the machine is busy. ``load``: None: not measured.
    ``throttled``: as of ``io.local.usage.Taken``.
    """
    said = f"gate {gate}: {result.code} {result.title}: {result.verdict}. {result.evidence}"
    if result.verdict is not Answer.FAIL:
        return Finding(Verdict.INCONCLUSIVE, said, result.code)
    if result.code in OF_THE_PLACE:
        return Finding(Verdict.INCONCLUSIVE, f"{said} (of this machine, not of the cluster's hosts)", result.code)
    if result.code in OF_A_BUSY_PLACE:
        if load is None or cores is None:
            return Finding(Verdict.INCONCLUSIVE, f"{said} (the machine's load was not measured)", result.code)
        if busy := why_busy(load, cores, throttled):
            return Finding(Verdict.INCONCLUSIVE, f"{said} ({busy})", result.code)
    return Finding(Verdict.FAILED, said, result.code)


def election_in(looks: Iterable[ClusterObservation]) -> str:
    """What says that there was an election from one of these looks to a later one: the epoch of the quorum, or
    /controller_epoch, rose. Empty where nothing does.
    """
    seen = tuple(looks)
    epochs = {
        "the quorum's epoch": [each.quorum.leader_epoch for each in seen if was_read(each.quorum)],
        "/controller_epoch": [
            each.zookeeper.controller_epoch
            for each in seen
            if was_read(each.zookeeper) and each.zookeeper.controller_epoch is not None
        ],
    }
    rose = {what: (found[0], max(found)) for what, found in epochs.items() if found}
    return " and ".join(f"{what} rose from {old} to {new}" for what, (old, new) in rose.items() if new > old)


def beside_an_election(found: Finding, why: str) -> Finding:
    """A finding where there was an election while the gate looked. ``why``: what says so."""
    if found.verdict is Verdict.FAILED and found.code in BY_AN_ELECTION:
        return replace(found, verdict=Verdict.INCONCLUSIVE, what=f"{found.what} ({why} while the gate looked)")
    return found


def beside_a_fault_of_the_place(found: Finding) -> Finding:
    """A finding where this machine is known to have ended a process: of what runs it says nothing then."""
    if found.verdict is Verdict.FAILED and found.code in OF_WHAT_RUNS:
        return replace(found, verdict=Verdict.INCONCLUSIVE)
    return found


def beside_a_standstill(found: Finding, why: str) -> Finding:
    """A finding where this machine stood still: brokers that are fenced lose their leaders, and ZooKeeper's controller
    elects others for those whose znodes are gone. ``why``: what says so.
    """
    if found.verdict is Verdict.FAILED and found.code in (TREE_CHANGED, MISMATCH):
        return replace(found, verdict=Verdict.INCONCLUSIVE, what=f"this machine stood still ({why}): {found.what}")
    return found


def of_a_start(service: str, said: KafkaSaid, source: ClusterSpec, spec: ClusterSpec) -> Finding:
    """What a broker or a controller says that ended at its start: of a znode or a setting, unless it is over the next
    time. ``source``: the cluster file; ``spec``: the throwaway's.
    """
    verdict = Verdict.INCONCLUSIVE if said.passing else Verdict.FAILED
    of_a_broker = service in {each.service for each in spec.brokers}
    named = "" if said.where else settings_named(said, source, spec, of_a_broker=of_a_broker)
    return Finding(verdict, f"{service} ended at its start: {said}{named}")


def settings_named(said: KafkaSaid, source: ClusterSpec, spec: ClusterSpec, *, of_a_broker: bool) -> str:
    """Which settings Kafka's exceptions name: those that the throwaway has of the cluster file, and its own; empty
    where they name none.
    """
    held = [("zookeeper.properties", source.ensemble.properties, spec.ensemble.properties)]
    if of_a_broker:
        held += [
            ("broker_properties", source.broker_properties, spec.broker_properties),
            ("broker_properties_in_kraft", source.broker_properties_in_kraft, spec.broker_properties_in_kraft),
        ]
    else:
        held += [("controller_properties", source.controller_properties, spec.controller_properties)]
        alone = zip(source.controllers_alone, spec.controllers, strict=False)
        held += [("controllers[].properties", file.properties, here.properties) for file, here in alone]
    files, own = dict[str, None](), dict[str, None]()
    for where, theirs, here in held:
        for key, value in here.items():
            if any(re.search(rf"(?<![\w.-]){re.escape(key)}(?![\w-]|\.\w)", each) for each in said.exceptions):
                (files if theirs.get(key) == value else own)[f"{where}.{key}"] = None
    told = f"; of the cluster file: {', '.join(files)}" if files else ""
    return f"{told}; the throwaway's own: {', '.join(own)}" if own else told


def is_the_places(error: BaseException) -> bool:
    """Whether an error says that this machine is at fault: no memory, no thread, a program that does not answer in
    time, or a supervisor or a Spark that is gone, or whose JVM does not start. Spark's are known by where they come
    from: importing them takes a JVM's client.
    """
    if isinstance(error, OSError | MemoryError | subprocess.TimeoutExpired | xmlrpc.client.Error):
        return True
    packages = {each.__module__.partition(".")[0] for each in type(error).__mro__}
    return (
        "py4j" in packages
        or ("pyspark" in packages and NO_JVM in str(error))
        or (isinstance(error, RuntimeError) and str(error) == NO_THREAD)
    )
