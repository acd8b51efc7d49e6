"""A real finalized cluster goes from 3.9 to 4.x, back, and up again: with the trap of a level that was raised and
lowered, which is known before any controller dies of it.
"""

from __future__ import annotations

from collections.abc import Iterator

import by_hand
import on_kafka4
import pytest
from feature_looks import shown
from labs import Lab

from kraft_runbook.cluster.feature_levels import METADATA_VERSION, NodeFeatures, SoftwareLevels
from kraft_runbook.cluster.properties_text import parse_properties
from kraft_runbook.io.hosts.inventory import node_of
from kraft_runbook.io.kafka.feature_calls import UpgradeType, read_levels, update_feature
from kraft_runbook.io.kafka.metadata_quorum import describe_quorum
from kraft_runbook.io.local import supervision
from kraft_runbook.levels.obstacles import running_software
from kraft_runbook.procedures.observe import observe
from kraft_runbook.procedures.preview_levels import preview_change
from kraft_runbook.procedures.unregister_broker import unregister_broker
from kraft_runbook.runbook.obstacle import Obstacle
from kraft_runbook.software import conditions
from kraft_runbook.software.explain import explain
from kraft_runbook.software.roll import Rolled, order, read_roll
from kraft_runbook.software.way_back import way_to
from lab.health import what_is_missing
from lab.layout import layout

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]
OLD_DIES = "but this controller only supports versions 1-21"


@pytest.fixture(scope="module")
def rolled() -> Iterator[Lab]:
    """Kept at its long interval of snapshots on purpose: what a level leaves in the log stays behind the last one."""
    with on_kafka4.finalized_lab() as lab:
        yield lab


def homes(lab: Lab) -> tuple[str, str]:
    assert lab.spec.kafka.upgrade_to is not None
    return lab.spec.kafka.home, lab.spec.kafka.upgrade_to.home


def both(lab: Lab) -> tuple[SoftwareLevels, SoftwareLevels]:
    """What 3.9 and 4.x know, read on the host."""
    seen = on_kafka4.look(lab)
    old, new = homes(lab)
    return on_kafka4.software(seen, old), on_kafka4.software(seen, new)


def roll(lab: Lab, *, back: bool = False, only: tuple[int, ...] = ()) -> list[int]:
    """Switch every node (or ``only`` these) that is not there yet, in order, each once the one before serves."""
    old, new = homes(lab)
    target = both(lab)[0 if back else 1]
    quorum = describe_quorum(lab.spec, secrets=lab.secrets)
    brokers, controllers = (dict.fromkeys(ids) for ids in (lab.spec.broker_ids, lab.spec.controller_ids))
    done = []
    for node_id in order(brokers, controllers, quorum.leader_id, back=back):
        if only and node_id not in only:
            continue
        on_kafka4.switch(lab, node_id, old if back else new)
        on_kafka4.answers(lab, node_id, lambda seen: seen.supported[METADATA_VERSION] == _range(target), within=120)
        by_hand.wait_until("all is in sync", lambda: _whole(lab), within=120)
        done.append(node_id)
    return done


def _range(software: SoftwareLevels) -> object:
    return software.features[METADATA_VERSION].supported


def _whole(lab: Lab) -> bool:
    quorum = describe_quorum(lab.spec, secrets=lab.secrets)
    behind = [voter for voter in quorum.voters if quorum.high_watermark - voter.log_end_offset > 20]
    return not behind and not what_is_missing(lab.spec)


def test_up_a_mixed_cluster_serves_and_the_next_level_is_refused_by_name_until_nobody_is_old(rolled: Lab) -> None:
    old, new = both(rolled)
    assert way_to(on_kafka4.look(rolled), new, old).open
    done = roll(rolled, only=rolled.spec.controller_ids)
    assert len(done) == 3
    seen = on_kafka4.look(rolled)
    reading = read_roll(shown(seen), old.version, new.version)
    assert (reading.stage, set(reading.on_new)) == (Rolled.MIXED, set(rolled.spec.controller_ids))
    mixed = running_software(seen)
    assert isinstance(mixed, Obstacle) and "the nodes run several versions of Kafka" in mixed.problem
    answer = update_feature(
        rolled.spec,
        on_kafka4.leader(rolled),
        METADATA_VERSION,
        22,
        UpgradeType.UPGRADE,
        validate_only=True,
        secrets=rolled.secrets,
    )
    assert not answer.accepted and "only supports versions 1-21" in answer.refusal, answer
    roll(rolled, only=rolled.spec.broker_ids)
    seen = on_kafka4.look(rolled)
    assert read_roll(shown(seen), old.version, new.version).stage is Rolled.NEW
    assert way_to(seen, old, new).open, "no level was raised: the way back is open"


def test_a_registered_broker_that_was_stopped_on_old_software_blocks_the_raise(rolled: Lab) -> None:
    """One broker goes back to 3.9 and is stopped there: its registration stays, and the server goes by it."""
    old_home, new_home = homes(rolled)
    on_kafka4.switch(rolled, 3, old_home)
    on_kafka4.answers(rolled, 3, lambda seen: seen.supported[METADATA_VERSION].highest == 21)
    by_hand.wait_until("all is in sync", lambda: _whole(rolled))
    broker = rolled.spec.broker(3)
    supervision.begin_stop(layout(rolled.spec), broker.service)
    on_kafka4.ended(rolled, broker, within=330)
    registered = read_levels(rolled.spec, secrets=rolled.secrets)[1].brokers[3]
    assert registered.supported[METADATA_VERSION].highest == 21
    answer = update_feature(
        rolled.spec,
        on_kafka4.leader(rolled),
        METADATA_VERSION,
        22,
        UpgradeType.UPGRADE,
        validate_only=True,
        secrets=rolled.secrets,
    )
    assert "Broker 3 only supports versions 1-21" in answer.refusal
    refused = preview_change(rolled.spec, on_kafka4.look(rolled), METADATA_VERSION, "22", secrets=rolled.secrets)
    assert not refused.may_go
    assert "broker 3 is registered, not running, supports metadata.version 1-21, not 22" in refused.render_text()
    assert "Start it on the new software, or unregister it" in refused.render_text()
    unregister(rolled, 3)
    accepted = preview_change(rolled.spec, on_kafka4.look(rolled), METADATA_VERSION, "22", secrets=rolled.secrets)
    assert accepted.answer is not None and accepted.answer.accepted, "the server asks who is registered"
    assert not accepted.may_go and "broker 3 could not be asked" in accepted.render_text(), "a declared broker is down"
    on_kafka4.switch(rolled, 3, new_home)
    on_kafka4.answers(rolled, 3, lambda seen: seen.supported[METADATA_VERSION].highest == 27)
    by_hand.wait_until("all is in sync", lambda: _whole(rolled))
    preview = preview_change(rolled.spec, on_kafka4.look(rolled), METADATA_VERSION, "22", secrets=rolled.secrets)
    assert preview.may_go, preview.render_text()


def unregister(lab: Lab, broker_id: int) -> None:
    """As the way out says."""
    assert unregister_broker(lab.spec, broker_id, secrets=lab.secrets)
    registered = read_levels(lab.spec, secrets=lab.secrets)[1].brokers
    assert broker_id not in registered, registered


def test_the_trap_is_known_before_a_controller_dies_of_it_and_opens_with_its_snapshot(rolled: Lab) -> None:
    old, new = both(rolled)
    on_kafka4.set_level(rolled, 22)
    on_kafka4.set_level(rolled, 21, down=True)
    seen = on_kafka4.look(rolled)
    way = way_to(seen, old, new)
    assert not way.open and not way.closed
    assert set(way.in_the_way) == set(rolled.spec.node_ids)
    victim = next(i for i in rolled.spec.controller_ids if i != seen.leader_id)
    (said,) = way.in_the_way[victim]
    assert "its log holds metadata.version 22 at offset" in said.problem and said.way_out.startswith("wait for")

    old_home, new_home = homes(rolled)
    on_kafka4.switch(rolled, victim, old_home)  # what the gate would have refused
    on_kafka4.ended(rolled, node_of(rolled.spec, victim))
    assert OLD_DIES in on_kafka4.wait_for_log(rolled, victim, OLD_DIES)

    for node_id in (victim, *(i for i in rolled.spec.node_ids if i != victim)):
        on_kafka4.switch(rolled, node_id, new_home, properties=with_short_interval(rolled, node_id))
        on_kafka4.answers(rolled, node_id, lambda node: isinstance(node, NodeFeatures), within=120)
        by_hand.wait_until("all is in sync", lambda: _whole(rolled), within=120)
    by_hand.wait_until("every node's snapshot is past the record", lambda: _open(rolled, old, new), within=120)
    assert (
        roll(rolled, back=True)
        and read_roll(shown(on_kafka4.look(rolled)), old.version, new.version).stage is Rolled.OLD
    )


def _open(lab: Lab, old: SoftwareLevels, new: SoftwareLevels) -> bool:
    return way_to(on_kafka4.look(lab), old, new).open


def with_short_interval(lab: Lab, node_id: int) -> dict[str, str]:
    """The node's own file with a snapshot every ten seconds: the key is read at the start alone."""
    with open(node_of(lab.spec, node_id).config_file, encoding="latin-1") as stream:
        return {**parse_properties(stream.read()), "metadata.log.max.snapshot.interval.ms": "10000"}


def test_up_again_and_the_newest_level_can_be_had(rolled: Lab) -> None:
    roll(rolled)
    preview = preview_change(rolled.spec, on_kafka4.look(rolled), METADATA_VERSION, "4.1", secrets=rolled.secrets)
    assert preview.may_go and [step.level for step in preview.change.starred] == [23], preview.render_text()


def test_then_the_way_back_is_closed(rolled: Lab) -> None:
    old, new = both(rolled)
    on_kafka4.set_level(rolled, 27)
    on_kafka4.set_level(rolled, 1, feature="eligible.leader.replicas.version")
    way = way_to(on_kafka4.look(rolled), old, new)
    assert way.closed and "23 (4.0-IV1) between changed metadata" in way.render_text()
    down = preview_change(rolled.spec, on_kafka4.look(rolled), METADATA_VERSION, "22", secrets=rolled.secrets)
    assert not down.may_go and down.answer is not None and not down.answer.accepted


def test_a_broker_on_software_that_is_too_old_stays_alive_and_never_serves(rolled: Lab) -> None:
    """After level 27; what a live process proves. It is not registered anew, the roll's condition does not take it for
    one that serves, and explain names it.
    """
    old_home, new_home = homes(rolled)
    before = read_levels(rolled.spec, secrets=rolled.secrets)[1].brokers[3].incarnation_id
    on_kafka4.switch(rolled, 3, old_home)
    said = on_kafka4.wait_for_log(rolled, 3, "UNSUPPORTED_VERSION", within=120)
    assert "Unable to register broker 3" in said
    assert supervision.processes(layout(rolled.spec))["broker-3"].runs
    log = read_levels(rolled.spec, secrets=rolled.secrets)[1]
    assert log.brokers[3].incarnation_id == before
    spec = rolled.spec.model_copy(update={"zookeeper": None})
    seen = observe(spec, secrets=rolled.secrets)
    for condition in (conditions.BROKER_ON_TARGET, conditions.BROKER_ON_FORMER, conditions.BROKER_IN_SYNC):
        progress = condition.progress(seen, spec, node_id=3)
        assert not progress.done and "broker 3" in progress.waiting_for, (condition.name, progress)
    explained = explain(seen, spec, earlier=seen)
    said = explained.render_text()
    waits = [each for each in explained.waits_for if each.startswith("broker 3 ")]
    assert any("metadata.version is 27, and Kafka 3.9.2 knows no level above 21" in each for each in waits), said
    assert "does not run" not in said and "has ended" not in said, said
    assert explained.rollback.answer == "no" and "Can the software go back: no" in said
    print(said)
    on_kafka4.switch(rolled, 3, new_home)
    by_hand.wait_until("all is in sync", lambda: _whole(rolled), within=120)
