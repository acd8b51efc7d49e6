"""A cluster in the hand of a test: it shows what it is given, and keeps what is asked of it and done to it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from observations import SPEC

from kraft_runbook.cluster.observation import ClusterObservation, HostState
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.errors import Refused
from kraft_runbook.evidence.kind import Kind
from kraft_runbook.evidence.record import EvidenceRecord
from kraft_runbook.io.hosts.playbooks import PlaybookResult
from kraft_runbook.runbook.conditions import Condition
from kraft_runbook.runbook.plays import Play
from kraft_runbook.steps.handle import Act, Cluster
from kraft_runbook.steps.run import Run

T = TypeVar("T")
NOWHERE = Path("/no/state/directory/in/this/test")
AT = datetime(2026, 3, 4, 10, 0, tzinfo=UTC)


class RecordingCluster(Cluster):
    """``shown``: what the looks see, one after the other, the last one again and again. ``answers``: by procedure, what
    it answers, or a function that does. ``facts``: of hosts. ``looks``: what each look asked for. ``did``: acts and
    waits, in their order. ``paused``: seconds in all; its clock runs by them alone.
    """

    shown: list[ClusterObservation]
    answers: dict[Callable[..., Any], Any]
    facts: Mapping[int, HostState]
    looks: list[dict[str, Any]]
    did: list[str]
    told: list[str]
    paused: float

    def __init__(
        self,
        *shown: ClusterObservation,
        spec: ClusterSpec = SPEC,
        gone: Iterable[int] = (),
        answers: Mapping[Callable[..., Any], Any] | None = None,
        facts: Mapping[int, HostState] | None = None,
    ) -> None:
        told: list[str] = []
        super().__init__(spec, lambda ref: "a secret", told.append, frozenset(gone))
        vars(self).update(
            shown=list(shown), answers=dict(answers or {}), facts=facts or {}, looks=[], did=[], told=told, paused=0.0
        )

    def observe(self, **deep: Any) -> ClusterObservation:
        self.looks.append(deep)
        return self.shown.pop(0) if len(self.shown) > 1 else self.shown[0]

    def settled(self, **deep: Any) -> ClusterObservation:
        return self.observe(**deep)

    def hosts(self, node_ids: Sequence[int]) -> Mapping[int, HostState]:
        return {each: self.facts[each] for each in node_ids}

    def ask(self, question: Callable[..., T], *given: Any, **how: Any) -> T:
        return self._answer(question, given, how)

    def now(self) -> float:
        return AT.timestamp() + self.paused

    def pause(self, seconds: float) -> None:
        vars(self)["paused"] += seconds

    def wait_for(self, condition: Condition, *, deadline: float, node_id: int | None = None) -> ClusterObservation:
        self.did.append(f"awaited {condition.describe(node_id)}")
        return self.observe()

    def play(self, what: Play) -> PlaybookResult:
        self.did.append(f"played {what.playbook} on {what.node_id}")
        return PlaybookResult(what.playbook, what.node_id, ("Restart",), (), 1, {}, AT, AT, True)

    def forget_zookeeper_secrets(self) -> tuple[str, ...]:
        self.did.append("removed ZooKeeper's secrets")
        return ()

    def do(self, act: Callable[..., T], *given: Any, would: Sequence[Act], **how: Any) -> T | None:
        self.did.extend(each.what for each in would)
        self.acts.extend(would)
        return self._answer(act, given, how)

    def _answer(self, asked: Callable[..., T], given: tuple[Any, ...], how: Mapping[str, Any]) -> T:
        assert asked in self.answers, f"the test does not say what {asked.__name__} answers"
        answer = self.answers[asked]
        found: T = answer(*given, **how) if callable(answer) else answer
        return found


@dataclass
class Ports:
    """The journal, the signatures and the claim of a run that nobody else has and whose gates are all signed.
    ``kept``: what is on record. ``asked``: what was asked of them.
    """

    kept: list[Kind] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    def record(self, what: Kind) -> None:
        self.kept.append(what)

    def records(self) -> tuple[EvidenceRecord, ...]:
        return ()

    def require_mirrored(self) -> None:
        pass

    def require(self, operation: Any, gate: str, seen: Any, **_: Any) -> None:
        self.asked.append(f"signature of {gate}")

    def begins(self, gate: str) -> None:
        self.asked.append(f"begins behind {gate}")

    def take(self) -> None:
        self.asked.append("claim")

    def await_groups(self) -> None:
        pass

    def renew(self) -> None:
        self.asked.append("claim again")

    def rest(self) -> None:
        pass

    def give_back(self) -> None:
        self.asked.append("claim back")

    def take_groups(self, groups: Sequence[str], *, waits: bool = False) -> None:
        self.asked.append(f"claim of {', '.join(groups)}")

    def refuse_while_cluster_acts(self) -> None:
        pass

    def give_back_groups(self, groups: Sequence[str]) -> None:
        self.asked.append(f"claim of {', '.join(groups)} back")


class Evidence(Ports):
    """The same, and its records can be read again. ``others``: groups that another run has."""

    def __init__(self, others: Sequence[str] = ()) -> None:
        super().__init__()
        self.others = others

    def records(self) -> tuple[EvidenceRecord, ...]:
        run = {"cluster": SPEC.name, "dag": "d", "run": "r", "task": "t"}
        return tuple(
            EvidenceRecord(number, "", AT.isoformat(), {**run, **each.body()}, "")
            for number, each in enumerate(self.kept)
        )

    def take_groups(self, groups: Sequence[str], *, waits: bool = False) -> None:
        if taken := [each for each in groups if each in self.others]:
            raise Refused(f"another run has {taken[0]}", way_out="wait for it")
        super().take_groups(groups, waits=waits)


def run_on(
    cluster: Cluster,
    ports: Any = None,
    *,
    state: Path = NOWHERE,
    answers: Mapping[str, Any] | None = None,
    **params: Any,
) -> Run:
    """A run with this cluster in hand. ``ports``: default one that lets everything pass. ``answers``: of its earlier
    tasks.
    """
    ports = ports or Ports()
    return Run(cluster, params, ports, ports, ports, "one", state, (answers or {}).get)
