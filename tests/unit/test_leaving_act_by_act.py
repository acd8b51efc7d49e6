"""Leaving KRaft, act by act: what stops it, with nothing deleted, and what nobody may undo any more. ZooKeeper, quorum,
fence and proof are fakes that keep the order; on a real cluster: tests/integration/test_leave_kraft.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from threading import Event
from types import SimpleNamespace
from typing import Any

import pytest
from observations import SPEC

from kraft_runbook.cluster.observation import ControllerEpochs, Found, ZkMigrationState
from kraft_runbook.errors import Refused, StepFailed, Unreachable
from kraft_runbook.io.secrets import environment_secrets
from kraft_runbook.io.zookeeper.handover import ControllerZnodes, NothingDeleted
from kraft_runbook.io.zookeeper.znode import Znode
from kraft_runbook.migration.leaving import Departure, FencePlan
from kraft_runbook.migration.never_copied import LogAccount
from kraft_runbook.procedures import give_back, resume_departure
from kraft_runbook.procedures import leave_kraft as departure
from kraft_runbook.procedures.give_back import Departed, see_brokers_follow, settle_in_zookeeper, what_settling_changes
from kraft_runbook.procedures.leave_kraft import leave_kraft

HIGH = 1000
NOW = datetime.now(UTC)
NEVER_COPIED = tuple(LogAccount(i, frozenset({2}), end=9, open_since=4) for i in (101, 102, 103))


def znodes(
    offset: int | None,
    *,
    kraft: bool = True,
    claimed: int | None = 4,
    held: bool = True,
    set_at: int = 1,
    elected: datetime | None = None,
) -> ControllerZnodes:
    """What ZooKeeper holds: /migration at this offset (None: no copy), /controller of KRaft (raft epoch 4) or of a
    broker, created then, /controller_epoch, written at this zxid (1: as all others).
    """
    told = {"brokerid": 101, "kraftControllerEpoch": 4} if kraft else {"brokerid": 1}
    written = {
        "kraft_metadata_offset": offset,
        "kraft_controller_id": 101,
        "kraft_metadata_epoch": 4,
        "kraft_controller_epoch": 4,
    }
    return ControllerZnodes(
        replace(znode("/controller", json.dumps(told)), created_ms=int(elected.timestamp() * 1000) if elected else 0)
        if held
        else None,
        None if offset is None else znode("/migration", json.dumps(written)),
        None,
        replace(znode("/controller_epoch", str(claimed)), mzxid=set_at),
    )


def znode(path: str, data: str) -> Znode:
    return Znode(path, data.encode(), version=1, czxid=1, mzxid=1, pzxid=1, ephemeral_owner=0)


class Killed(BaseException):
    """The worker was killed when ZooKeeper had carried out the deletion."""


class Scene:
    """``offset``: /migration's, look by look; ``high_watermark``: the active controller's, ask by ask; the last of each
    for ever. ``did``: what was done, in its order.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.did: list[str] = []
        self.offsets: list[int | None] = [HIGH - 1]
        self.kraft = True
        self.high_watermarks: list[int | Exception] = [HIGH]
        self.differs: StepFailed | None = None
        self.deletion: Exception | None = None
        self.not_deletable: Refused | None = None
        self.not_writable = False
        self.uncountable = Found()
        self.logs = NEVER_COPIED
        self.recorded = ZkMigrationState.PRE_MIGRATION
        self.leader = 101
        self.leaders: list[int] = []
        self.settled: list[bool] = []
        self.claimed: int | None = 4
        self.of_states, self.of_quorum = 4, 4
        self.epochs: list[int | None] = []
        self.held = True
        self.set_at = 1
        self.elected: datetime | None = None
        self.killed = False
        scene = self

        class Opened:
            def __init__(self, *given: Any, **_: Any) -> None:
                self.given = given

            def __enter__(self) -> Any:
                return self

            def __exit__(self, *_: object) -> None: ...

        class Fence(Opened):
            def ready(self) -> None:
                scene.did.append("ready")

            def raise_it(self) -> None:
                scene.did.append(f"fenced all but {self.given[1].active}")

            def leave(self) -> None:
                scene.did.append("stopped the last")

            def nobody_may_return(self, *, settled: bool = True) -> None:
                scene.settled.append(settled)

            def finish(self) -> None:
                scene.did.append("finished")

        class Quorum(Opened):
            leader_epoch = property(lambda _: scene.of_quorum)

            def high_watermark(self) -> int:
                found = scene.high_watermarks.pop(0) if len(scene.high_watermarks) > 1 else scene.high_watermarks[0]
                if isinstance(found, Exception):
                    raise found
                return found

        class Proof(Opened):
            def newest_topics(self) -> dict[str, Any]:
                return {}

            def read_on(self, _: int) -> None: ...

        def mend(*_: Any, **__: Any) -> tuple[Any, ...]:
            scene.did.append("mended")
            return ()

        def prove(*_: Any) -> int:
            scene.did.append("proved")
            if scene.differs:
                raise scene.differs
            return 7

        def require(_: Any) -> None:
            if scene.not_deletable:
                raise scene.not_deletable

        def settable(_: Any, found: ControllerZnodes, greatest: int) -> str | None:
            if scene.not_writable and found.epoch_wanted(greatest) is not None:
                raise Refused("this tool may not write /controller_epoch", way_out="grant it")
            return "this tool may not write /controller_epoch" if scene.not_writable else None

        def delete(_: Any, found: ControllerZnodes, *, epoch: int | None = None) -> tuple[str, ...]:
            scene.did.append("deleted")
            scene.epochs.append(epoch)
            if scene.killed:
                raise Killed
            if scene.deletion:
                raise scene.deletion
            return tuple(each.path for each in found.doomed(epoch=epoch))

        def elect(*_: Any, **__: Any) -> int:
            scene.did.append("elected")
            scene.held = True
            return 1

        def follow(*given: Any, **_: Any) -> Departure:
            scene.did.append("followed")
            return next(each for each in given if isinstance(each, Departure))

        for name, fake in {
            "ZookeeperReader": Opened,
            "QuorumFence": Fence,
            "QuorumConnection": Quorum,
            "FinalProof": Proof,
            "raise_all": mend,
            "prove_and_raise": prove,
            "require_deletable": require,
            "require_epoch_settable": settable,
            "read_controller_znodes": lambda _: znodes(
                self._offset(),
                kraft=self.kraft,
                claimed=self.claimed,
                held=self.held,
                set_at=self.set_at,
                elected=self.elected,
            ),
            "read_controller_epochs": lambda _: ControllerEpochs(
                self.claimed, self.of_states, states=3, uncountable=self.uncountable
            ),
            "await_election": elect,
            "delete_controller_znodes": delete,
            "see_brokers_follow": follow,
            "await_taken_in": lambda *_, **__: (),
            "read_logs": lambda *_, **__: self.logs,
            "read_cluster_records": lambda *_, **__: SimpleNamespace(migration_state_record=self.recorded),
            "describe_quorum": lambda *_, **__: SimpleNamespace(leader_id=self.next_leader()),
            "DRAIN_SECONDS": 0.05,
            "POLL": 0.001,
        }.items():
            for module in (departure, give_back):
                if hasattr(module, name):
                    monkeypatch.setattr(module, name, fake)

    def next_leader(self) -> int:
        """``leaders`` one after the other, where a test has them; else ``leader``."""
        return self.leaders.pop(0) if self.leaders else self.leader

    def _offset(self) -> int | None:
        return self.offsets.pop(0) if len(self.offsets) > 1 else self.offsets[0]

    def leave(
        self,
        active: int | None = 101,
        *,
        since: int | None = 640,
        tell: Callable[[str], None] = lambda _: None,
        departing: Departed | None = None,
        departed: Departed | None = None,
        taken: Refused | None = None,
    ) -> Departure:
        """``taken``: why the claim is not this run's any more."""
        others = tuple(i for i in (101, 102, 103) if i != active)
        plan = FencePlan(active, others)

        def mine() -> None:
            if taken:
                raise taken
            self.did.append("still mine")

        return leave_kraft(
            SPEC,
            plan,
            proven_since=since,
            secrets=environment_secrets({}),
            tell=tell,
            still_mine=mine,
            departing=departing,
            departed=departed,
        )


@pytest.fixture
def scene(monkeypatch: pytest.MonkeyPatch) -> Scene:
    return Scene(monkeypatch)


def stops(scene: Scene, why: str, leave: Callable[[], Any] | None = None) -> None:
    """It ends with this reason, and nothing was deleted; the last controller was not stopped for it."""
    with pytest.raises((StepFailed, Refused, Unreachable), match=why):
        (leave or scene.leave)()
    assert "deleted" not in scene.did


def test_mend_catch_up_fence_drain_prove_stop_delete_follow(scene: Scene) -> None:
    told = scene.leave()
    assert scene.did == [
        "mended",
        "ready",
        "still mine",
        "fenced all but 101",
        "proved",
        "stopped the last",
        "deleted",
        "finished",
        "followed",
    ]
    assert (told.high_watermark, told.migration_offset, told.touched_keys) == (HIGH, HIGH - 1, 7)
    assert scene.settled == [True]


@pytest.mark.parametrize("active", [101, None])
def test_the_claim_is_renewed_right_before_the_fence_and_where_another_run_has_it_nothing_is_stopped(
    scene: Scene, active: int | None
) -> None:
    """After all that may outlast the claim."""
    scene.offsets = [HIGH - 1 if active else None]
    since = None if active is None else 640
    taken = Refused("cluster lab is being changed by run two", way_out="wait")
    stops(scene, "run two", lambda: scene.leave(active, since=since, taken=taken))
    assert not [each for each in scene.did if each.startswith("fenced")]
    scene.did.clear()
    scene.leave(active, since=since)
    at = scene.did.index("still mine")
    assert scene.did[at - 1 : at + 2] == ["ready", "still mine", f"fenced all but {active}"]


def test_nothing_is_stopped_where_this_tool_may_not_delete(scene: Scene) -> None:
    scene.not_deletable = Refused("this tool may not delete /controller", way_out="grant it")
    stops(scene, "may not delete")
    assert scene.did == []


def test_what_is_not_drained_in_time_is_not_left(scene: Scene) -> None:
    scene.offsets = [HIGH - 2]
    stops(scene, "was not written up to offset 999")
    assert "proved" not in scene.did


def test_what_was_committed_while_the_drain_was_looked_at_must_be_drained_too(scene: Scene) -> None:
    """/migration is read between two looks at the high watermark: only where both agree is everything written."""
    scene.high_watermarks = [HIGH, HIGH, HIGH + 1]
    stops(scene, "was not written up to offset 1000")


def test_a_high_watermark_that_moves_during_the_proof_is_another_controller(scene: Scene) -> None:
    scene.high_watermarks = [HIGH, HIGH, HIGH, HIGH, HIGH + 1]  # two looks are before the fence
    stops(scene, "the high watermark moved though the quorum was fenced")
    assert "stopped the last" not in scene.did


@pytest.mark.parametrize("after", [0, 2])
def test_an_active_controller_that_resigns_lifts_the_fence(scene: Scene, after: int) -> None:
    scene.high_watermarks = [HIGH, HIGH, *[HIGH] * after, Unreachable("controller 101 leads no more", way_out="")]
    stops(scene, "the drain could not be proven: controller 101 leads no more")


def test_a_key_that_differs_lifts_the_fence(scene: Scene) -> None:
    scene.differs = StepFailed("ZooKeeper does not hold what the metadata log says of 1 key", way_out="")
    stops(scene, "ZooKeeper does not hold")
    assert "stopped the last" not in scene.did


def test_a_migration_that_moves_after_the_proof_is_another_controller_s(scene: Scene) -> None:
    scene.offsets = [HIGH - 1, HIGH - 1, HIGH - 1, HIGH]  # two looks are before the fence
    stops(scene, "/migration moved while the quorum was fenced")
    assert "stopped the last" not in scene.did


def test_the_controllers_may_return_only_where_it_is_known_that_nothing_was_deleted(scene: Scene) -> None:
    scene.deletion = NothingDeleted("one of them changed", way_out="")
    with pytest.raises(NothingDeleted):
        scene.leave()
    assert scene.settled == [True, False]
    scene.settled, scene.deletion = [], StepFailed("the connection broke", way_out="")
    with pytest.raises(StepFailed):
        scene.leave()
    assert scene.settled == [True]


def test_where_another_is_elected_before_the_fence_it_begins_again_around_that_one(scene: Scene) -> None:
    scene.high_watermarks = [Unreachable("controller 101 leads no more", way_out=""), HIGH]
    scene.leader = 102
    scene.leave()
    assert [each for each in scene.did if each.startswith("fenced")] == ["fenced all but 102"]


def test_three_elections_are_enough(scene: Scene) -> None:
    scene.high_watermarks = [Unreachable("it leads no more", way_out="")]
    scene.leaders = [102, 103, 101, 102]
    stops(scene, "another controller was elected before each of 3 fences")
    assert not [each for each in scene.did if each.startswith("fenced")]


# -- where nothing was copied, or nobody leads -------------------------------------------------------------------------


def test_a_copy_that_is_completed_meanwhile_is_not_thrown_away(scene: Scene) -> None:
    scene.offsets, scene.recorded = [None], ZkMigrationState.MIGRATION
    stops(scene, "the copy was completed while the quorum was being fenced", lambda: scene.leave(since=None))


def test_a_copy_that_was_never_made_needs_no_proof(scene: Scene) -> None:
    scene.offsets = [None]
    scene.leave(since=None)
    assert "proved" not in scene.did and scene.did[-3:] == ["deleted", "finished", "followed"]


def test_without_a_leader_what_was_acknowledged_may_be_missing(scene: Scene) -> None:
    stops(scene, "ZooKeeper may lack what it last acknowledged", lambda: scene.leave(None, since=None))
    assert scene.did == []


def test_without_a_leader_the_logs_must_prove_that_nothing_was_copied(scene: Scene) -> None:
    scene.offsets = [None]
    scene.leave(None, since=None)
    assert scene.did[:2] == ["ready", "still mine"] and "deleted" in scene.did
    scene.did, scene.logs = [], (*NEVER_COPIED[:2], LogAccount(103, frozenset({2, 1}), end=12))
    ended = "the copy was never completed: the log of controller 103 holds the end"
    stops(scene, ended, lambda: scene.leave(None, since=None))
    scene.did, scene.logs = [], (NEVER_COPIED[0], *(LogAccount(i, None, reason="no such host") for i in (102, 103)))
    stops(scene, "the logs of 1 of 3 controllers show this migration", lambda: scene.leave(None, since=None))


def test_where_a_broker_holds_the_office_only_what_was_left_is_deleted_and_a_kraft_controller_is_never_ousted(
    scene: Scene,
) -> None:
    scene.kraft = False
    settle()
    assert scene.did == ["deleted", "followed"]
    scene.did, scene.kraft = [], True
    settle()
    assert scene.did == ["followed"]


# -- what is kept of it where a later wait fails ---------------------------------------------------------------------


def test_its_moments_are_told_at_the_deletion_before_anything_is_waited_for(scene: Scene) -> None:
    told: list[Departure] = []

    def departed(moments: Departure) -> None:
        scene.did.append("told")
        told.append(moments)

    scene.leave(departed=departed)
    assert scene.did[-4:] == ["deleted", "finished", "told", "followed"]
    assert told[0].fenced_at and told[0].drained_at and told[0].stopped_at and told[0].deleted_at
    assert (told[0].touched_keys, told[0].deleted) == (7, ("/migration", "/controller"))
    scene.did, scene.kraft = [], False
    settle(departed)
    assert scene.did == ["deleted", "told", "followed"]
    scene.did, scene.kraft = [], True
    settle(departed)
    assert scene.did == ["followed"], "nothing was deleted"


def test_what_was_measured_before_the_deletion_is_told_before_it_and_taken_up_by_the_next_try(scene: Scene) -> None:
    noted: list[Departure] = []
    told: list[Departure] = []
    scene.of_states, scene.killed = 9, True
    with pytest.raises(Killed):
        scene.leave(departing=noted.append, departed=told.append)
    (begun,) = noted
    assert begun.fenced_at and begun.drained_at and begun.proven_at and begun.deleted_at is None
    assert (begun.deleted, begun.epoch_set, begun.touched_keys, told) == (("/migration", "/controller"), 9, 7, [])
    scene.killed, scene.kraft, scene.offsets = False, False, [None]
    scene.claimed, scene.elected = 10, datetime(2026, 3, 4, 9, 58, 12, 250000, UTC)
    scene.did, scene.epochs = [], []
    left = settle(told.append, begun=begun)
    assert (left.elected_at, left.controller, left.by_zookeepers_clock) == (scene.elected, 1, ("elected_at",))
    assert (left.fenced_at, left.deleted_at) == (begun.fenced_at, None)
    assert [each.resumed_at is not None for each in told] == [True]
    assert scene.did[-1] == "followed"


def test_what_is_told_before_the_deletion_and_fails_lifts_the_fence(scene: Scene) -> None:
    def full(_: Departure) -> None:
        raise StepFailed("no space left on device", way_out="make room")

    stops(scene, "no space left", lambda: scene.leave(departing=full))
    assert scene.settled == []


def test_a_record_that_is_slow_holds_up_no_deletion_and_comes_before_the_next(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The evidence's object store may hang. Without a controller nobody waits for it."""
    gone_on = Event()
    monkeypatch.setattr(resume_departure, "NOTED_WITHIN", 0.001)
    delete = give_back.delete_controller_znodes

    def deleted(*given: Any, **also: Any) -> tuple[str, ...]:
        gone_on.set()
        return delete(*given, **also)

    monkeypatch.setattr(give_back, "delete_controller_znodes", deleted)

    def slow(_: Departure) -> None:
        assert gone_on.wait(30)
        scene.did.append("noted")

    scene.leave(departing=slow, departed=lambda _: scene.did.append("told"))
    assert [each for each in scene.did if each in ("noted", "told")] == ["noted", "told"]


def test_an_election_anew_that_was_killed_is_taken_up_too(scene: Scene) -> None:
    noted: list[Departure] = []
    scene.kraft, scene.offsets, scene.of_states, scene.killed = False, [None], 9, True
    with pytest.raises(Killed):
        settle(departing=noted.append)
    scene.killed, scene.claimed, scene.elected = False, 10, NOW
    told: list[Departure] = []
    settle(told.append, begun=noted[0])
    assert [(each.epoch_set, each.controller) for each in told] == [(9, 1)]


def electing(monkeypatch: pytest.MonkeyPatch, controller: int, fails: str = "") -> None:
    """An election whose steps answer so at once; the one that ``fails`` ends in an error."""

    def fail(*_: Any, **__: Any) -> Any:
        raise StepFailed("it elects none", way_out="look in its log")

    answers = {"await_election": controller, "await_known": (), "see_election": "orders-1 was given broker 1"}
    for name, answer in answers.items():
        monkeypatch.setattr(give_back, name, fail if name == fails else lambda *_, answer=answer, **__: answer)


def test_a_departure_that_is_taken_up_keeps_the_moments_that_were_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    electing(monkeypatch, 3)
    begun = Departure(began_at=NOW, fenced_at=NOW, resumed_at=NOW)

    def follow(moments: Departure) -> Departure:
        return see_brokers_follow(
            SPEC,
            None,
            moments,
            secrets=environment_secrets({}),
            tell=lambda _: None,
            known_within=1,
            departed=lambda _: None,
        )

    assert follow(replace(begun, elected_at=NOW)).elected_at == NOW
    late = follow(begun)
    assert (late.elected_at, late.controller) == (None, 3), "another may have been elected before"
    assert late.known_at is not None and late.window_seconds is None
    assert follow(replace(begun, known_at=NOW)).known_at == NOW


@pytest.mark.parametrize("fails", ["await_known", "see_election"])
def test_how_long_there_was_no_controller_is_told_before_an_election_is_tried(
    fails: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    electing(monkeypatch, 2, fails)
    told: list[Departure] = []
    with pytest.raises(StepFailed, match="it elects none"):
        see_brokers_follow(
            SPEC,
            None,
            Departure(began_at=NOW, fenced_at=NOW),
            secrets=environment_secrets({}),
            tell=lambda _: None,
            known_within=1,
            departed=told.append,
        )
    assert [each.controller for each in told] == ([2] if fails == "see_election" else [])
    assert all(each.window_seconds is not None for each in told)


# -- the two counters of controller epochs -----------------------------------------------------------------------------


def settle(
    departed: Departed | None = None, *, departing: Departed | None = None, begun: Departure | None = None
) -> Departure:
    return settle_in_zookeeper(
        SPEC,
        secrets=environment_secrets({}),
        tell=lambda _: None,
        known_within=1,
        departing=departing,
        departed=departed,
        begun=begun,
    )


@pytest.mark.parametrize(
    ("of_states", "in_controller", "of_quorum", "claimed", "wanted"),
    [(4, 4, 4, 4, None), (9, 4, 4, 4, 9), (3, 4, 4, 3, 4), (3, 4, 7, 5, 7), (9, 4, 12, 20, None)],
    ids=["enough", "a state", "the controller", "the quorum", "far enough"],
)
def test_controller_epoch_is_set_to_the_greatest_that_a_state_may_hold(
    scene: Scene, of_states: int, in_controller: int, of_quorum: int, claimed: int, wanted: int | None
) -> None:
    scene.of_states, scene.of_quorum, scene.claimed = of_states, of_quorum, claimed
    left = scene.leave()
    assert scene.epochs == [wanted]
    assert (left.controller_epoch, left.epoch_set) == (claimed, wanted)


def test_a_quorum_that_never_had_the_controller_role_has_written_no_state(scene: Scene) -> None:
    scene.offsets, scene.kraft, scene.of_quorum = [None], False, 30
    scene.leave(since=None)
    assert scene.epochs == [None]


def test_a_cluster_that_left_by_hand_gets_a_controller_whose_epoch_is_above_every_state_s(scene: Scene) -> None:
    scene.kraft, scene.offsets, scene.of_states = False, [None], 9
    assert settle().epoch_set == 9
    assert scene.epochs == [9] and scene.did == ["deleted", "followed"]


def test_a_controller_that_can_write_nothing_needs_the_right_to_delete_it(scene: Scene) -> None:
    """Someone set /controller_epoch alone, so no number must be set."""
    scene.kraft, scene.offsets, scene.set_at = False, [None], 8
    scene.not_deletable = Refused("this tool may not delete /controller", way_out="grant it")
    stops(scene, "may not delete /controller", settle)
    scene.not_deletable = None
    assert settle().epoch_set is None
    assert scene.epochs == [None] and scene.did == ["deleted", "followed"]


@pytest.mark.parametrize(
    ("shows", "deleted", "epoch"),
    [
        ({}, (), None),
        ({"offsets": [HIGH]}, ("/migration",), None),
        ({"set_at": 8}, ("/controller",), None),
        ({"of_states": 9}, ("/controller",), 9),
        ({"of_states": 9, "held": False}, ("/controller",), 9),
        ({"kraft": True, "offsets": [HIGH]}, (), None),
    ],
)
def test_what_settling_would_change_is_told_and_nothing_is_changed(
    scene: Scene, shows: dict[str, Any], deleted: tuple[str, ...], epoch: int | None
) -> None:
    vars(scene).update({"kraft": False, "offsets": [None], **shows})
    told = what_settling_changes(SPEC, secrets=environment_secrets({}))
    assert (told.deleted, told.epoch_set) == (deleted, epoch)
    assert scene.did == ["elected"] * (not shows.get("held", True)) and not scene.epochs
    if not scene.kraft:
        done = settle()
        assert (done.deleted, done.epoch_set) == (deleted, epoch), "what the run then does"


def test_between_two_controllers_nothing_is_set_before_one_is_elected(scene: Scene) -> None:
    """Every broker that read the former number would fail in its election, and none would try again."""
    scene.kraft, scene.offsets, scene.of_states, scene.held = False, [None], 9, False
    settle()
    assert scene.did == ["elected", "deleted", "followed"]


def test_where_a_broker_is_elected_meanwhile_settling_looks_again(scene: Scene) -> None:
    scene.kraft, scene.offsets, scene.of_states = False, [None], 9
    scene.deletion = NothingDeleted("/controller_epoch changed", way_out="")
    with pytest.raises(NothingDeleted):
        settle()
    assert scene.epochs == [9, 9, 9]


def test_settling_is_refused_where_this_tool_may_not_write_the_epoch(scene: Scene) -> None:
    scene.kraft, scene.offsets, scene.of_states = False, [None], 9
    scene.not_writable = True
    stops(scene, "may not write /controller_epoch", settle)
    scene.of_states = 4
    assert settle().epoch_set is None


@pytest.mark.parametrize(("of_states", "of_quorum"), [(9, 4), (4, 9)], ids=["a state's", "the quorum's"])
def test_leaving_is_refused_with_nothing_stopped_where_an_epoch_must_be_set_and_may_not(
    scene: Scene, of_states: int, of_quorum: int
) -> None:
    scene.not_writable, scene.of_states, scene.of_quorum = True, of_states, of_quorum
    stops(scene, "may not write /controller_epoch")
    assert not [each for each in scene.did if each.startswith(("fenced", "stopped"))]


def test_where_no_epoch_must_be_set_the_right_to_set_it_is_a_risk_and_no_reason_to_stay(scene: Scene) -> None:
    scene.not_writable = True
    told: list[str] = []
    assert scene.leave(tell=told.append).epoch_set is None
    assert scene.epochs == [None]
    assert [each for each in told if "may not write /controller_epoch: nothing must be set there now" in each]


@pytest.mark.parametrize("kraft", [True, False], ids=["leaving", "settling"])
def test_an_epoch_that_kafka_can_t_count_on_from_is_never_set(scene: Scene, kraft: bool) -> None:
    """Kafka adds one to it as an Int: no broker would be elected again, and no leader anywhere."""
    scene.of_states, scene.uncountable, scene.kraft = 2**31 - 1, Found(1, ("orders-7",)), kraft
    stops(scene, r"can't count on from \(2147483647\): 1: orders-7; nothing was stopped", None if kraft else settle)
    assert scene.did == []
    scene.of_states, scene.uncountable, scene.claimed = 4, Found(), 2**31 - 1
    stops(scene, "/controller_epoch is 2147483647, which Kafka can't count on", None if kraft else settle)


@pytest.mark.parametrize("kraft", [True, False], ids=["leaving", "settling"])
def test_without_a_controller_epoch_the_next_controller_would_count_from_zero(scene: Scene, kraft: bool) -> None:
    scene.claimed, scene.of_states, scene.kraft = None, 14, kraft
    with pytest.raises(Refused, match="create /controller_epoch 14"):
        scene.leave() if kraft else settle()
    assert scene.did == []
