"""What eligible.leader.replicas.version 1 does to min.insync.replicas (KIP-966; ``ConfigurationControlManager``).

Where it is not set for all brokers, the quorum sets it for all, to what the active controller's own file says. What is
set for single brokers goes. Measured on 4.1.1: brokers' files 2, the controllers' none, and 2 became 1.
"""

from __future__ import annotations

from collections.abc import Mapping

from kraft_runbook.cluster.feature_levels import FeatureObservation, LevelsInLog
from kraft_runbook.cluster.java_values import java_int, trim
from kraft_runbook.cluster.observation import Unread

ELIGIBLE = "eligible.leader.replicas.version"
MIN_ISR = "min.insync.replicas"
FOR_ALL = ""
"""The name of what is set for all brokers, as the log has it."""


def min_isr_changes(seen: FeatureObservation, log: LevelsInLog) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Each change of what is in force on a broker once the level is raised, and what was not read of the files, in
    words. Any controller may be the active one then.
    """
    if isinstance(log.min_isr, Unread):
        return (), (f"the dynamic {MIN_ISR} of the brokers: {log.min_isr.reason}",)
    files = {node_id: _in_file(seen, node_id) for node_id in (*seen.brokers, *seen.controllers)}
    of_all = log.min_isr.get(FOR_ALL)
    then = {None: of_all} if of_all is not None else {i: files[i] for i in seen.controllers}
    changes, unread = [], []
    for node_id, value in files.items():
        needed = node_id in then or (node_id in seen.brokers and of_all is None and str(node_id) not in log.min_isr)
        if needed and isinstance(value, Unread):
            unread.append(f"the file of {seen.who(node_id)}: {value.reason}")
    for broker in seen.brokers:
        now = log.min_isr.get(str(broker), of_all if of_all is not None else files[broker])
        for who, value in then.items():
            if isinstance(now, Unread) or isinstance(value, Unread) or value == now:
                continue
            why = "as it is set for all" if who is None else f"by the file of controller {who}"
            changes.append(f"broker {broker} {now} -> {value}, {why}")
    return tuple(changes), tuple(unread)


def _in_file(seen: FeatureObservation, node_id: int) -> int | Unread:
    """Kafka's default is 1."""
    host = seen.hosts[node_id]
    config = host if isinstance(host, Unread) else host.config
    if isinstance(config, Unread):
        return config
    if config is None:
        return Unread("there is none")
    return _number(config)


def _number(config: Mapping[str, str]) -> int | Unread:
    written = config.get(MIN_ISR, "1")
    found = java_int(trim(written))
    return Unread(f"{MIN_ISR}={written} is no number") if found is None else found
