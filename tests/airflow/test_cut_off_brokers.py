"""After the cluster left KRaft: which brokers are restarted before the others, and which are left alone. The cluster is
a fake; task and waits are real.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from observations import SPEC, broker, later, observation
from recording import Ports, RecordingCluster, run_on

from kraft_runbook.cluster.observation import BrokerMode, ClusterObservation, HostState, Unread, was_read
from kraft_runbook.cluster.phases import Phase, detect_phase
from kraft_runbook.errors import Refused, StepFailed
from kraft_runbook.evidence.kinds import CutOff, Played
from kraft_runbook.io.hosts.playbooks import PlaybookResult
from kraft_runbook.procedures.known_controller import knows_controller
from kraft_runbook.runbook.conditions import Condition
from kraft_runbook.runbook.plays import Play
from kraft_runbook.steps.back import TO_ZOOKEEPER
from kraft_runbook.steps.cut_off_brokers import SOON, restart_cut_off_brokers
from kraft_runbook.steps.node_step import Look
from kraft_runbook.steps.waiting import wait_for

BEGAN = datetime(2026, 3, 4, 10, 0, tzinfo=UTC)
LONG_AGO = {"elected_at": (BEGAN - timedelta(minutes=1)).isoformat()}
THREADS = ("lif", "to-", "to-", "to-")


def left_kraft(*hybrid: int) -> ClusterObservation:
    """No controller runs any more; these brokers are still in migration mode."""
    seen = replace(observation(Phase.ZOOKEEPER), quorum=Unread("no controller runs"))
    for each in hybrid:
        seen = broker(each, mode=BrokerMode.HYBRID)(seen)
    assert detect_phase(seen).phase is Phase.ZOOKEEPER
    return seen


class Left(RecordingCluster):
    """A cluster that has left KRaft. A broker's restart brings it into ZooKeeper mode with all its threads.

    ``hybrid``: the brokers still in migration mode; ``dead``: those of them that lack a thread; ``unseen``: those whose
    threads can't be looked at. ``ended``: whose process has ended; until ``session`` ZooKeeper still has their znodes.
    ``held_by``: a restarted broker is out of sync until the one that leads its partitions was restarted too. Its clock
    runs with its sleepers.
    """

    hybrid: set[int]
    dead: set[int]
    unseen: set[int]
    held_by: dict[int, int]
    ended: set[int]
    restarted: list[int]
    out_of_sync: dict[int, int]
    clock: float
    session: float

    def __init__(
        self,
        hybrid: Iterable[int],
        *,
        dead: Iterable[int] = (),
        unseen: Iterable[int] = (),
        ended: Iterable[int] = (),
        held_by: dict[int, int] | None = None,
        session: float = 0.0,
    ) -> None:
        super().__init__(answers={knows_controller: None})
        vars(self).update(
            hybrid=set(hybrid), dead=set(dead), unseen=set(unseen), held_by=held_by or {}, ended=set(ended)
        )
        vars(self).update(restarted=[], out_of_sync={}, clock=0.0, session=session)

    def observe(self, **_: object) -> ClusterObservation:
        seen = later(left_kraft(*self.hybrid), self.clock)
        for each in self.ended:
            seen = broker(each, running=False, mode=Unread(f"broker {each} does not run"))(seen)
        assert was_read(seen.zookeeper)
        registered = {i: each for i, each in seen.zookeeper.brokers.items() if self._has_a_session(i)}
        seen = replace(seen, zookeeper=replace(seen.zookeeper, brokers=registered))
        assert was_read(seen.topics)
        return replace(seen, topics=replace(seen.topics, out_of_sync_by_broker=dict(self.out_of_sync)))

    def _has_a_session(self, node: int) -> bool:
        return node not in self.ended or self.clock < self.session

    def hosts(self, brokers: Sequence[int]) -> dict[int, HostState]:
        hosts = observation(Phase.HYBRID).hosts
        assert was_read(hosts)
        names = {
            i: tuple(f"zk-broker-{i}-{name}" for name in (THREADS[:-1] if i in self.dead else THREADS)) for i in brokers
        }
        return {
            i: replace(hosts[i], controller_threads=Unread("no such host") if i in self.unseen else names[i])
            for i in brokers
        }

    def play(self, what: Play) -> PlaybookResult:
        assert (what.playbook, what.variables["mode"]) == ("restart_broker", BrokerMode.ZOOKEEPER.value)
        node = what.node_id
        assert node not in self.ended or not self._has_a_session(node), "its id is taken, so it would end again"
        self.restarted.append(node)
        self.hybrid.discard(node)
        self.ended.discard(node)
        self.dead.discard(node)
        held = [each for each in self.restarted if self.held_by.get(each) not in (None, *self.restarted)]
        self.set(out_of_sync=dict.fromkeys(held, 7))
        return PlaybookResult("restart_broker", node, ("Restart",), (), 1, {}, BEGAN, BEGAN)

    def pause(self, seconds: float) -> None:
        self.set(clock=self.clock + seconds)

    def now(self) -> float:
        return BEGAN.timestamp() + self.clock

    def set(self, **what: Any) -> None:
        vars(self).update(what)

    def wait_for(self, condition: Condition, *, deadline: float, node_id: int | None = None) -> ClusterObservation:
        return wait_for(self, condition, deadline=deadline, node_id=node_id)


def run(
    cluster: Left, *, left: Any = LONG_AGO, goal: str = "ZOOKEEPER", properties: dict[str, str] | None = None
) -> dict[str, Any]:
    """Its answer; the nodes that the evidence names are those that were restarted."""
    spec = SPEC.model_copy(update={"broker_properties": {**SPEC.broker_properties, **(properties or {})}})
    cluster.set(spec=spec)
    ports = Ports()
    made = run_on(cluster, ports, answers={"leave_kraft": left}, goal=goal)
    answer = restart_cut_off_brokers(made, left_task="leave_kraft")
    for kind in (CutOff, Played):
        assert [told.node_id for told in ports.kept if isinstance(told, kind)] == cluster.restarted
    return dict(answer)


def test_brokers_that_lost_a_thread_are_restarted_one_after_the_other_and_no_other_is() -> None:
    cluster = Left((1, 2, 3), dead=(3, 2))
    assert run(cluster) == {"restarted": [2, 3], "not_looked_at": []}
    assert (cluster.restarted, cluster.hybrid) == ([2, 3], {1})


def test_one_that_only_the_next_takes_back_into_sync_holds_up_nothing() -> None:
    cluster = Left((1, 2, 3), dead=(2, 3), held_by={2: 3})
    assert run(cluster)["restarted"] == [2, 3]
    assert cluster.out_of_sync == {}
    assert cluster.clock >= SOON, "it was given its time"


def test_one_that_nobody_takes_back_into_sync_fails_the_task_at_the_end() -> None:
    cluster = Left((1, 2, 3), dead=(2,), held_by={2: 1})
    with pytest.raises(StepFailed, match="broker 2 to be in sync: out of the ISR of 7 partitions"):
        run(cluster)
    assert cluster.restarted == [2]


def test_what_is_not_in_sync_keeps_other_brokers_from_a_restart_but_not_one_that_is_cut_off() -> None:
    cluster = Left((1, 2), dead=(1,), held_by={3: 1})
    cluster.set(out_of_sync={3: 7})
    seen = cluster.observe()
    with pytest.raises(Refused, match="broker 3: 7"):
        TO_ZOOKEEPER.guard(Look(cluster, 1, seen, detect_phase(seen)))
    assert run(cluster)["restarted"] == [1]


def test_those_that_an_earlier_try_restarted_are_awaited_again() -> None:
    cluster = Left((1,))
    cluster.set(out_of_sync={2: 7})
    with pytest.raises(StepFailed, match="broker 2 to be in sync"):
        run(cluster)


def test_healthy_brokers_and_those_in_zookeeper_mode_are_left_alone() -> None:
    assert run(Left((1, 2, 3)))["restarted"] == []
    assert run(Left((1,), dead=(2, 3)))["restarted"] == []


def test_brokers_that_ended_are_started_before_any_other_is_stopped() -> None:
    """Whatever is out of sync meanwhile, and though another one does not run either."""
    cluster = Left((1,), dead=(1,), ended=(2, 3))
    cluster.set(out_of_sync={1: 7})
    assert run(cluster) == {"restarted": [2, 3, 1], "not_looked_at": []}


def test_one_that_ended_is_started_also_where_no_other_is_in_migration_mode() -> None:
    cluster = Left((), ended=(3,))
    assert run(cluster, left=None) == {"restarted": [3]}
    assert cluster.clock < 35, "no thread was waited for"


def test_one_that_was_killed_is_started_only_once_its_session_has_ended() -> None:
    """Its id is taken until then: it would end again at once."""
    assert run(Left((1, 3), ended=(2,), session=18.0))["restarted"] == [2]


def test_a_broker_whose_threads_cannot_be_seen_is_left_to_its_turn() -> None:
    assert run(Left((1, 2, 3), dead=(2, 3), unseen=(2,))) == {"restarted": [3], "not_looked_at": [2]}


@pytest.mark.parametrize(
    ("left", "properties", "seconds"),
    [
        ({"elected_at": BEGAN.isoformat()}, {}, 35),
        ({"elected_at": (BEGAN - timedelta(seconds=20)).isoformat()}, {}, 15),
        ({"elected_at": BEGAN.isoformat()}, {"controller.socket.timeout.ms": "60000"}, 65),
        ({"already_done": "a ZooKeeper broker is the controller"}, {}, 35),
        (LONG_AGO, {}, 0),
    ],
)
def test_the_threads_are_given_the_time_to_notice_their_new_controller(
    left: Any, properties: dict[str, str], seconds: float
) -> None:
    """Looked at before, a thread that is about to die still lives."""
    cluster = Left((1,))
    looked_at: list[float] = []
    threads = cluster.hosts
    cluster.set(hosts=lambda given: looked_at.append(cluster.clock) or threads(given))
    run(cluster, left=left, properties=properties)
    assert looked_at == [seconds]


def test_nothing_is_waited_for_where_no_broker_is_in_migration_mode_or_the_goal_is_hybrid() -> None:
    for cluster, goal in ((Left(()), "ZOOKEEPER"), (Left((1, 2, 3), dead=(1,)), "HYBRID")):
        assert run(cluster, left=None, goal=goal) == {"restarted": []}
        assert cluster.clock == 0
