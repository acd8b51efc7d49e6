"""The faults of a drill: what is stopped or deleted, by which play, and what clients may see. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from kraft_runbook.cluster.assignment import TopicPartition, partitions_named
from kraft_runbook.cluster.naming import name_ids
from kraft_runbook.cluster.observation import ClusterObservation, was_read
from kraft_runbook.cluster.phases import FOR_GOOD, Phase, detect_phase
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.errors import Refused
from kraft_runbook.runbook.digests import sha256_of
from kraft_runbook.runbook.one_role import require_one_role
from kraft_runbook.runbook.plays import Play

BY_ZOOKEEPER = frozenset({Phase.ZOOKEEPER})
BY_QUORUM = FOR_GOOD
DRILLED = BY_ZOOKEEPER | BY_QUORUM
"""The phases in which a drill may run: a migration under way is no place for one."""


class Fault(StrEnum):
    """SHUTDOWN: SIGTERM to a broker, which hands over its partitions. FAILOVER: in ZooKeeper mode /controller is
    deleted, else the leader of the quorum gets SIGTERM. KILL: SIGKILL to who is the controller.
    """

    SHUTDOWN = "controlled shutdown of a broker"
    FAILOVER = "controller failover"
    KILL = "controller failover by SIGKILL"


SEEN: Mapping[Fault, str] = {
    Fault.SHUTDOWN: "Clients of its partitions find new leaders: 1 to 4 s without an answer were measured on a small"
    " cluster. In ZooKeeper mode it grows with the partitions.",
    Fault.FAILOVER: "No metadata changes until another controller serves: 1 to 2 s were measured on a small cluster."
    " In ZooKeeper mode it grows with the partitions. Partitions keep their leaders.",
    Fault.KILL: "No metadata changes until the loss is noticed and another controller serves: 4 s were measured in"
    " KRaft mode. In ZooKeeper mode the broker's partitions are silent too until its session ends: 21 s.",
}


MOST_PARTITIONS = 200
"""Of the operator's own that one drill may write to: ten records a second go to each."""


def partitions_to_probe(text: str) -> tuple[TopicPartition, ...]:
    """Those that a form names, as ``orders-0, orders-1``, in order, each once. Raises Refused for any other word, for a
    topic of Kafka's own, and for too many.
    """
    found = partitions_named(text)
    for each in found:
        if each.topic.startswith("__"):
            raise Refused(
                f"{each} belongs to a topic of Kafka's own, which the probes may not write to",
                way_out="name partitions of your own topics, or none: then the probes have a topic of their own",
            )
    if len(found) > MOST_PARTITIONS:
        raise Refused(
            f"{len(found)} partitions are named, and the probes write to {MOST_PARTITIONS} at most",
            way_out="name fewer, spread over the brokers",
        )
    return tuple(sorted(found))


@dataclass(frozen=True, slots=True)
class Form:
    """What a run's form says. ``broker``: whom SHUTDOWN means; None: one that is not the controller. ``budget``:
    seconds of silence beyond which the run ends. ``seconds``: of the baseline, and of each fault's window at least.
    ``partitions``: whom the probes write to; none: those of a topic of their own.
    """

    fault: Fault
    broker: int | None
    repeats: int
    budget: float
    seconds: float
    partitions: tuple[TopicPartition, ...] = ()

    @classmethod
    def of(cls, params: Mapping[str, Any]) -> Form:
        """Raises Refused where what it names are no partitions."""
        broker = params.get("broker")
        return cls(
            Fault(params["fault"]),
            None if broker is None else int(broker),
            int(params["repeats"]),
            float(params["stall_budget"]),
            float(params["seconds"]),
            partitions_to_probe(params.get("partitions") or ""),
        )

    @property
    def digest(self) -> str:
        """Of the whole form: what the gate's signature is for."""
        written_to = [str(each) for each in self.partitions]
        told = [self.fault.value, self.broker, self.repeats, self.budget, self.seconds, written_to]
        return sha256_of(told)


@dataclass(frozen=True, slots=True)
class Aim:
    """``node``: who is stopped, and started again; None: /controller is deleted, and nothing stops. ``ends_by``: STOP
    or KILL.
    """

    node: int | None
    ends_by: str = ""

    def stop(self) -> Play | None:
        """What stops it; None where nothing is stopped."""
        if self.node is None:
            return None
        return Play("stop_node", self.node, {"ends_by": self.ends_by}, writes_secrets=False)


def start(node: int) -> Play:
    """Start it where it does not run, with the files that it has."""
    return Play("start_node", node, {}, writes_secrets=False)


PROBE_KEY = "kraft-runbook-drill"
"""The key of each record that the probes write. A compacted topic takes none without a key."""
STOP, KILL = "stop", "kill"
"""Actions of the module ``kafka_service``."""


def aim(form: Form, seen: ClusterObservation, spec: ClusterSpec) -> Aim:
    """Whom the fault hits now. Raises Refused where the cluster file or the phase does not allow it, or where the one
    it would hit is not known.
    """
    phase = detect_phase(seen).phase
    if phase not in DRILLED:
        raise Refused(
            f"a drill runs in {', '.join(sorted(DRILLED))} alone, and the cluster is in {phase}",
            way_out="finish the migration, or roll it back, then trigger a drill",
        )
    controller = _controller(seen, spec, phase)
    if form.fault is Fault.SHUTDOWN:
        return Aim(_broker(form.broker, controller, spec), STOP)
    require_one_role(spec, controller, "a drill")
    if form.fault is Fault.KILL:
        if not spec.quorum_drill.sigkill:
            raise Refused(
                f"the cluster file of {spec.name} does not allow SIGKILL",
                way_out="choose another fault, or set quorum_drill.sigkill: true for a cluster that may be killed",
            )
        if phase in BY_ZOOKEEPER:
            _require_noticed(form, controller, spec)
        return Aim(controller, KILL)
    return Aim(None) if phase in BY_ZOOKEEPER else Aim(controller, STOP)


SESSION_TIMEOUT, SESSION_TIMEOUT_MS = "zookeeper.session.timeout.ms", 18000
"""The property and Kafka's default."""


def session_timeout_ms(spec: ClusterSpec, broker: int) -> int:
    """How long ZooKeeper does not notice that this broker died, by the cluster file."""
    of_all = {**(spec.zookeeper.properties if spec.zookeeper else {}), **spec.broker_properties}
    of_one = spec.broker(broker).properties if broker in spec.broker_ids else {}
    value = {**of_all, **of_one}.get(SESSION_TIMEOUT, "")
    return int(value) if value.isdecimal() else SESSION_TIMEOUT_MS


def _require_noticed(form: Form, broker: int, spec: ClusterSpec) -> None:
    """A silence lasts at least until ZooKeeper ends the broker's session. Raises Refused."""
    seconds = session_timeout_ms(spec, broker) / 1000
    if form.budget <= seconds:
        raise Refused(
            f"the stall budget is {form.budget:g} s, and ZooKeeper notices the loss of broker {broker} only after"
            f" {seconds:g} s ({SESSION_TIMEOUT}): this drill would exceed it every time",
            way_out=f"trigger a run with a stall budget of more than {seconds:g} s, such as {2 * seconds + 20:g}",
        )


def _controller(seen: ClusterObservation, spec: ClusterSpec, phase: Phase) -> int:
    if phase in BY_ZOOKEEPER:
        holder = seen.zookeeper.controller.broker_id if was_read(seen.zookeeper) and seen.zookeeper.controller else None
        known = holder in spec.broker_ids
    else:
        holder = seen.quorum.leader_id if was_read(seen.quorum) else None
        known = holder in spec.controller_ids
    if holder is None or not known:
        raise Refused(
            f"the controller is not known: {'nobody of the cluster file' if holder is None else holder}",
            way_out="see kraft-runbook quorum, and clear this task once somebody of the cluster file is",
        )
    return holder


def control_names(seen: ClusterObservation, spec: ClusterSpec) -> tuple[str, ...]:
    """Whose processes control the cluster, as ``io.hosts.processor_time`` names them: ZooKeeper's servers and the
    broker that holds /controller, or the controllers. A broker that is not known has no process of its name.
    """
    phase = detect_phase(seen).phase
    if phase not in BY_ZOOKEEPER:
        return tuple(map(spec.named, spec.controller_ids))
    servers = spec.zookeeper.servers if spec.zookeeper else ()
    held = seen.zookeeper.controller if was_read(seen.zookeeper) else None
    return (f"broker {held.broker_id if held else 'that controls'}", *(f"ZooKeeper {each}" for each in servers))


def _broker(wanted: int | None, controller: int, spec: ClusterSpec) -> int:
    if wanted is not None:
        if wanted not in spec.broker_ids:
            raise Refused(
                f"broker {wanted} is not in the cluster file",
                way_out=f"name one of {name_ids(spec.broker_ids)}",
            )
    else:
        known = [each.id for each in spec.brokers_alone] or list(spec.broker_ids)
        wanted = next((each for each in known if each != controller), known[0])
    require_one_role(spec, wanted, "a drill")
    return wanted


def page(form: Form, found: Aim, spec: ClusterSpec) -> str:
    """What the gate shows: what will be stopped, and what clients may see."""
    noticed = ""
    if found.ends_by == KILL and found.node in spec.broker_ids:
        noticed = (
            f" ZooKeeper ends its session after {session_timeout_ms(spec, found.node) / 1000:g} s ({SESSION_TIMEOUT});"
            " the report says how long that took, and how long what follows."
        )
    what = (
        "Deletes /controller in ZooKeeper. No process is stopped."
        if found.node is None
        else f"{'Kills' if found.ends_by == KILL else 'Stops'} node {found.node} (by this look), and starts it again"
        " once every probe was answered."
    )
    return (
        f"### The drill: {form.fault.value}, {form.repeats} time(s)\n\n{what}\n\n{SEEN[form.fault]}{noticed}\n\n"
        f"Before, the same probes run for {form.seconds:g} s without a fault. {_writes(form)} A silence of more than"
        f" {form.budget:g} s ends the run, and what was stopped is started first."
    )


def _writes(form: Form) -> str:
    """Where the probes leave records."""
    if not form.partitions:
        return "They create a topic of their own, and one more every 500 ms; all are deleted afterwards."
    return (
        "They create a topic every 500 ms; these are deleted afterwards. **Their records stay in your partitions**"
        f" {', '.join(map(str, form.partitions))}: ten a second in each, with the key {PROBE_KEY}, and whoever consumes"
        " them sees these records."
    )
