"""Every controller died in the copy: what the logs on disk hold, read as the project's own decoder reads them, and what
they prove.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from feature_looks import host_module
from hypothesis import given
from hypothesis import strategies as st
from kept_observations import never_elected
from metadata_encoding import ABORT, BEGIN, END, NO_OP, batch, record, topic
from observations import SPEC, WHY, a_controller, broker, observation, part, zookeeper

from kraft_runbook.cluster.observation import BrokerMode, ClusterObservation, ControllerZnode, MigrationZnode
from kraft_runbook.cluster.phases import Phase, detect_phase
from kraft_runbook.metadata.log.frames import records
from kraft_runbook.metadata.log.record_schemas import RecordType
from kraft_runbook.metadata.log.transactions import Transactions
from kraft_runbook.migration import conditions
from kraft_runbook.migration.explain import explain
from kraft_runbook.migration.never_copied import LogAccount, may_have_died_in_the_copy, why_not_proven
from kraft_runbook.migration.never_copied import never_elected as never_elected_seen
from kraft_runbook.migration.way_back import DIED_IN_THE_COPY, way_back

host, on_disk = host_module("kafka_host"), host_module("metadata_log_scan")
former = host_module("former_copy")


def state(value: int) -> bytes:
    return record(RecordType.ZK_MIGRATION_STATE, zk_migration_state=value)


SEGMENT = "00000000000000000000.log"


def written(directory: Path, *batches: bytes, name: str = SEGMENT) -> Path:
    (directory / name).write_bytes(b"".join(batches))
    return directory


def test_a_copy_that_was_aborted_begun_again_and_not_ended_committed_nothing(tmp_path: Path) -> None:
    first = batch(0, NO_OP, state(2)) + batch(2, BEGIN) + batch(3, topic("a"), topic("b")) + batch(5, ABORT)
    found = on_disk.scan(str(written(tmp_path, first, batch(6, BEGIN, topic("a"), state(1)))))
    assert (found.states, found.end, found.open_since) == ({2}, 9, 6)


@pytest.mark.parametrize("in_a_transaction", [True, False])
def test_the_end_of_the_copy_is_found_committed_or_not(tmp_path: Path, in_a_transaction: bool) -> None:
    copy = (BEGIN, topic("a"), state(1), END) if in_a_transaction else (topic("a"), state(1))
    assert on_disk.scan(str(written(tmp_path, batch(0, state(2)), batch(1, *copy)))).states == {1, 2}


@pytest.mark.parametrize(("value", "named"), [(1, "1 (MIGRATION)"), (3, "3 (POST_MIGRATION)")])
def test_a_log_of_a_migration_that_was_left_is_refused_for_new_controllers(
    tmp_path: Path, value: int, named: str
) -> None:
    former.require_no_former_copy("controller 101", str(tmp_path / "not-formatted"))
    log = tmp_path / "__cluster_metadata-0"
    log.mkdir()
    former.require_no_former_copy("controller 101", str(written(log, batch(0, state(2), NO_OP)).parent))
    written(log, batch(0, state(2)), batch(1, BEGIN, topic("a"), state(value), END))
    with pytest.raises(former.HostError) as refused:
        former.require_no_former_copy("controller 101", str(tmp_path))
    assert f"controller 101 in {tmp_path} holds ZkMigrationState {named}" in refused.value.problem
    assert "zk_to_kraft_rollback__" in refused.value.way_out


def test_it_is_found_in_a_snapshot_and_across_segments(tmp_path: Path) -> None:
    written(tmp_path, batch(0, state(2), BEGIN))
    written(tmp_path, batch(2, state(1)), name="00000000000000000002.log")
    assert on_disk.scan(str(tmp_path)).states == {2}
    written(tmp_path, batch(2, state(1), END), name="00000000000000000002.log")
    assert on_disk.scan(str(tmp_path)).states == {1, 2}
    written(tmp_path, batch(2, NO_OP), name="00000000000000000002.log")
    snapshot = batch(0, b"\0" * 6, control=True) + batch(1, topic("a"), state(1))
    written(tmp_path, snapshot, name="00000000000000000900-0000000003.checkpoint")
    found = on_disk.scan(str(tmp_path))
    assert (found.states, found.end) == ({1, 2}, 900)


def test_a_batch_cut_short_by_the_controllers_end_is_no_record_and_garbage_before_the_end_is_an_error(
    tmp_path: Path,
) -> None:
    whole, torn = batch(0, state(2)), batch(1, BEGIN, state(1), END)
    assert on_disk.scan(str(written(tmp_path, whole, torn[:-3]))).states == {2}
    assert on_disk.scan(str(written(tmp_path, whole, bytes(200)))).states == {2}
    written(tmp_path, NO_OP, name="00000000000000000009.log")
    with pytest.raises(host.HostError, match="is not what Kafka writes"):
        on_disk.scan(str(written(tmp_path, whole, torn[:-3])))
    with pytest.raises(host.HostError, match="compressed"):
        on_disk.scan(str(written(tmp_path, batch(0, state(2), codec=1))))


@given(
    st.lists(
        st.lists(
            st.sampled_from([BEGIN, END, ABORT, NO_OP, state(1), state(2), topic("x" * 200)]), min_size=1, max_size=5
        ),
        max_size=8,
    )
)
def test_the_host_reads_what_the_decoder_reads(groups: list[list[bytes]]) -> None:
    data, offset = b"", 0
    for group in groups:
        data += batch(offset, *group)
        offset += len(group)
    wanted = list(records(data))
    found = on_disk.Scan()
    for each in wanted:
        found.see(each.offset, each.api_key, each.body[0] if each.api_key == RecordType.ZK_MIGRATION_STATE else None)
    effective = {r.body[0] for _, r in Transactions().effective(wanted) if r.api_key == RecordType.ZK_MIGRATION_STATE}
    assert found.states == effective
    with tempfile.TemporaryDirectory() as directory:
        again = on_disk.scan(str(written(Path(directory), data)))
    assert (again.states, again.end, again.open_since) == (found.states, found.end, found.open_since)


# -- what the logs prove -----------------------------------------------------------------------------------------------

PRE, COPIED = frozenset({2}), frozenset({1, 2})


def logs(*states: frozenset[int] | None) -> list[LogAccount]:
    return [LogAccount(101 + at, each, 10, reason="no such host") for at, each in enumerate(states)]


@pytest.mark.parametrize(
    ("found", "why_not"),
    [
        (logs(PRE, PRE, PRE), None),
        (logs(PRE, PRE, None), None),
        (
            logs(PRE, None, None),
            (
                "the logs of 1 of 3 controllers show this migration, and 2 are needed: controller 102: not read (no"
                " such host)"
            ),
        ),
        (logs(PRE, PRE, COPIED), "the log of controller 103 holds the end of the copy"),
        (logs(PRE, PRE, frozenset({3})), "the log of controller 103 holds the end"),
        (logs(PRE, frozenset(), frozenset()), "the logs of 1 of 3 controllers show this migration"),
        (logs(PRE), "controller 102: named as gone"),
    ],
)
def test_only_a_majority_of_logs_without_the_end_of_the_copy_proves_that_it_was_never_committed(
    found: list[LogAccount], why_not: str | None
) -> None:
    said = why_not_proven(found, SPEC.controller_ids)
    assert said is None if why_not is None else why_not in (said or "")


# -- how it looks from outside -----------------------------------------------------------------------------------------


def died_in_the_copy(seen: ClusterObservation) -> ClusterObservation:
    """As an observation of one shows it: two of three have ended, /controller is KRaft's, /migration was
    never written.
    """
    for i in SPEC.controller_ids:
        seen = a_controller(i, running=i == 103, mode=WHY, metrics=WHY)(seen)
    seen = zookeeper(controller=ControllerZnode(102, 5), migration=MigrationZnode(-1, -1, -1, -1))(seen)
    for i in SPEC.broker_ids:
        seen = broker(i, mode=BrokerMode.HYBRID)(seen)
    return part(quorum=WHY)(seen)


def one_shows_its_state(seen: ClusterObservation) -> ClusterObservation:
    """The last one runs on without a majority, and its gauge says PRE_MIGRATION."""
    return a_controller(103, metrics=observation(Phase.PRE_MIGRATION).controllers[103].metrics)(seen)


@pytest.mark.parametrize("spoil", [lambda seen: seen, one_shows_its_state, a_controller(103, running=False)])
def test_the_way_back_is_to_read_the_logs_not_to_start_them_again(
    spoil: Callable[[ClusterObservation], ClusterObservation],
) -> None:
    seen = spoil(died_in_the_copy(observation(Phase.PRE_MIGRATION)))
    assert "Aborting the metadata migration" in explain(seen, SPEC).forward[0]
    assert may_have_died_in_the_copy(seen)
    plan = way_back(seen, SPEC)
    assert not plan.possible
    assert plan.steps == DIED_IN_THE_COPY
    assert conditions.BROKER_BACK_IN_MIGRATION_MODE.progress(seen, SPEC, node_id=3).done
    behind = part(topics=replace(seen.topics, out_of_sync_by_broker={3: 7}))(seen)  # type: ignore[arg-type]
    assert conditions.BROKER_IN_SYNC.progress(behind, SPEC, node_id=3).done


@pytest.mark.parametrize(
    "spoil",
    [
        zookeeper(migration=MigrationZnode(207, 101, 3, 4)),
        zookeeper(controller=ControllerZnode(2, -1)),
        broker(2, mode=BrokerMode.KRAFT),
        part(zookeeper=WHY),
        lambda seen: part(quorum=observation(Phase.PRE_MIGRATION).quorum)(seen),
        lambda seen: a_controller(103, metrics=observation(Phase.HYBRID).controllers[103].metrics)(seen),
    ],
)
def test_anything_that_speaks_of_a_copy_brings_the_quorum_back_instead(
    spoil: Callable[[ClusterObservation], ClusterObservation],
) -> None:
    assert not may_have_died_in_the_copy(spoil(died_in_the_copy(observation(Phase.PRE_MIGRATION))))


# -- controllers that were never elected -------------------------------------------------------------------------------


def test_controllers_that_elect_nobody_before_any_copy_can_be_left() -> None:
    seen = never_elected()
    assert detect_phase(seen).phase is Phase.UNKNOWN
    plan = way_back(seen, SPEC)
    assert plan.possible and plan.why.endswith("nothing was copied: broker 2 holds /controller")
    assert [step.partition(":")[0] for step in plan.steps] == [
        "leave_kraft", "roll_brokers_to_zookeeper", "set_controllers_aside",
    ]  # fmt: skip
    told = explain(seen, SPEC)
    assert "SCRAM never works there" in told.forward[0]
    assert told.back == plan.steps


def test_they_are_left_only_where_the_znodes_may_be_deleted_and_each_host_answers() -> None:
    assert not way_back(never_elected(), SPEC, not_deletable="no DELETE").possible
    assert not way_back(a_controller(103, running=WHY)(never_elected()), SPEC).possible


@pytest.mark.parametrize(
    "spoil",
    [
        zookeeper(migration=MigrationZnode(207, 101, 3, 4)),
        zookeeper(controller=ControllerZnode(102, 5)),
        zookeeper(controller=None),
        broker(2, mode=BrokerMode.KRAFT),
        part(zookeeper=WHY),
        a_controller(103, silent=True),
        lambda seen: part(quorum=observation(Phase.PRE_MIGRATION).quorum)(seen),
        lambda seen: a_controller(103, metrics=observation(Phase.HYBRID).controllers[103].metrics)(seen),
        lambda seen: observation(Phase.ZOOKEEPER),
    ],
)
def test_what_may_have_led_or_copied_is_not_taken_for_never_elected(
    spoil: Callable[[ClusterObservation], ClusterObservation],
) -> None:
    assert not never_elected_seen(spoil(never_elected()))
