"""One cluster in the hand of a task: what it reads there and what it does there, or only would do in a rehearsal."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from kraft_runbook.cluster.observation import ClusterObservation, HostState
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.io.secrets import Secrets
from kraft_runbook.procedures.observe import Scope, observe
from kraft_runbook.procedures.settled import observe_settled
from kraft_runbook.runbook.conditions import Condition
from kraft_runbook.runbook.plays import Play
from kraft_runbook.steps.waiting import wait_for

if TYPE_CHECKING:
    from kraft_runbook.io.hosts.playbooks import PlaybookResult

Tell = Callable[[str], None]
Keep = Callable[[ClusterObservation], None]
T = TypeVar("T")
NOTHING = "nothing to change there"


def keep_nothing(_: ClusterObservation) -> None:
    """Where no look is kept."""


@dataclass(frozen=True, slots=True)
class Act:
    """One change of the cluster. ``what``: in words, with the node where it is on one. ``lines``: what it changes, such
    as the differences of files; a real act of Ansible has none.
    """

    what: str
    lines: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "\n".join((self.what, *self.lines))


@dataclass(frozen=True)
class Cluster:
    """``secrets``: resolves what the cluster file names. ``tell``: gets a line at each progress. ``gone``: controllers
    whose hosts are gone for good, as the run's form says. ``keep``: gets each look, for others to read. ``acts``: what
    was done, or would be, in its order.
    """

    spec: ClusterSpec
    secrets: Secrets
    tell: Tell
    gone: frozenset[int] = frozenset()
    keep: Keep = keep_nothing
    acts: list[Act] = field(default_factory=list, init=False)
    rehearses: ClassVar[bool] = False

    # -- reads ---------------------------------------------------------------------------------------------------------

    def observe(self, *, topics: bool = True, **deep: Any) -> ClusterObservation:
        """One look (``procedures.observe``). Without ``topics`` it leaves out those as brokers show them, unless it is
        kept for others to read. Raises SecretMissing.
        """
        seen = observe(self.spec, secrets=self.secrets, gone=self.gone, **self._scope(topics), **deep)
        self.keep(seen)
        return seen

    def _scope(self, topics: bool) -> dict[str, Any]:
        return {} if topics or self.keep is not keep_nothing else {"scope": Scope.NODES}

    def settled(self, *, topics: bool = True, **deep: Any) -> ClusterObservation:
        """The same, looked at again while the phase is UNKNOWN (``procedures.settled``)."""
        deep |= self._scope(topics)
        seen = observe_settled(self.spec, secrets=self.secrets, tell=self.tell, gone=self.gone, **deep)
        self.keep(seen)
        return seen

    def hosts(self, node_ids: Sequence[int]) -> Mapping[int, HostState]:
        """The facts of these nodes' hosts (``io.hosts.host_facts.gather_host_facts``)."""
        # ansible-runner is slow to import, and most waits need none
        from kraft_runbook.io.hosts.host_facts import gather_host_facts

        return gather_host_facts(self.spec, node_ids, secrets=self.secrets)

    def ask(self, question: Callable[..., T], *given: Any, **how: Any) -> T:
        """What a procedure answers that reads with ``spec`` and ``secrets``, and changes nothing."""
        return question(self.spec, *given, secrets=self.secrets, **how)

    def wait_for(self, condition: Condition, *, deadline: float, node_id: int | None = None) -> ClusterObservation:
        """Wait here, at most ``deadline`` seconds (``steps.waiting``). Returns the look that fulfilled the condition;
        raises StepFailed.
        """
        return wait_for(self, condition, deadline=deadline, node_id=node_id)

    def now(self) -> float:
        """Seconds since the epoch."""
        return time.time()

    def pause(self, seconds: float) -> None:
        """Let so much time pass between two looks."""
        time.sleep(seconds)

    # -- acts ----------------------------------------------------------------------------------------------------------

    def play(self, what: Play) -> PlaybookResult:
        """Play it on its node and wait for its end. Raises as ``io.hosts.playbooks.play``."""
        from kraft_runbook.io.hosts import playbooks

        result = playbooks.play(self.spec, what, secrets=self.secrets, on_event=self.tell)
        self.acts.append(Act(in_words(what)))
        return result

    def forget_zookeeper_secrets(self) -> tuple[str, ...]:
        """Remove ZooKeeper's secrets from every host; returns those nodes that held some. Raises StepFailed."""
        from kraft_runbook.io.hosts import playbooks

        nodes = playbooks.forget_zookeeper_secrets(self.spec, secrets=self.secrets, on_event=self.tell)
        self.acts.extend(Act(f"remove ZooKeeper's secrets from {each}") for each in nodes)
        return nodes

    def do(self, act: Callable[..., T], *given: Any, would: Sequence[Act], **how: Any) -> T | None:
        """Let a procedure act that takes ``spec`` and ``secrets``. ``would``: what it changes, in its order. Returns
        its answer; None in a rehearsal. Raises as the procedure does.
        """
        answer = act(self.spec, *given, secrets=self.secrets, **how)
        self.acts.extend(would)
        return answer


class RehearsedCluster(Cluster):
    """The same reads. Each act is told with what it would change, and nothing is done or waited for."""

    rehearses = True

    def wait_for(self, condition: Condition, *, deadline: float, node_id: int | None = None) -> ClusterObservation:
        """Tell what would be waited for, and look."""
        self.tell(f"Dry run: would wait up to {deadline:.0f} s for {condition.describe(node_id)}")
        return self.observe()

    def play(self, what: Play) -> PlaybookResult:
        """Ansible's own rehearsal on the node, with the difference that it would make to each file."""
        from kraft_runbook.io.hosts import playbooks

        result = playbooks.play(self.spec, what, secrets=self.secrets, check=True, on_event=self.tell)
        changes = ", ".join(result.changed) or "nothing"
        self.tell(f"Dry run: {result.playbook} on node {result.node_id} would change: {changes}")
        for diff in result.diffs:
            self.tell(diff.render())
        lines = tuple(each.render() for each in result.diffs) or (() if result.changed else (NOTHING,))
        self.acts.append(Act(in_words(what), lines))
        return result

    def forget_zookeeper_secrets(self) -> tuple[str, ...]:
        """Ansible's own rehearsal of that."""
        from kraft_runbook.io.hosts import playbooks

        nodes = playbooks.forget_zookeeper_secrets(self.spec, secrets=self.secrets, check=True, on_event=self.tell)
        self.acts.extend(Act(f"remove ZooKeeper's secrets from {each}") for each in nodes)
        return nodes

    def do(self, act: Callable[..., T], *given: Any, would: Sequence[Act], **how: Any) -> T | None:
        """Tell what the act would change."""
        for each in would:
            self.tell(f"Dry run: would {each}")
        self.acts.extend(would)
        return None


def in_words(what: Play) -> str:
    """The act of playing it."""
    return f"play {what.playbook} on node {what.node_id}"
