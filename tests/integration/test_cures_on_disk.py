"""Cures that the checks of what brokers keep on disk print, tried on a real cluster as they are printed."""

from __future__ import annotations

import contextlib
from pathlib import Path

import by_hand
import kept_states
import pytest
from labs import Lab

from kraft_runbook.cluster.node_properties import broker_properties
from kraft_runbook.cluster.observation import BrokerMode, was_read
from kraft_runbook.cluster.phases import Phase
from kraft_runbook.cluster.spec_parts import Broker
from kraft_runbook.errors import StepFailed
from kraft_runbook.migration.checks.catalogue import CHECKS
from kraft_runbook.procedures.observe import Scope, observe
from kraft_runbook.runbook.check_results import CheckResult, Verdict
from lab import supervision
from lab.layout import layout

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]


def failures(lab: Lab, phase: Phase = Phase.ZOOKEEPER) -> dict[str, CheckResult]:
    seen = observe(lab.spec, secrets=lab.secrets, scope=Scope.FULL, with_hosts=True)
    return {each.code: each for each in CHECKS.run(seen, lab.spec, phase).results if each.verdict is Verdict.FAIL}


def in_sync(lab: Lab) -> bool:
    topics = observe(lab.spec, secrets=lab.secrets).topics
    return (
        was_read(topics)
        and not topics.under_replicated_count
        and not topics.offline_count
        and topics.live_broker_ids == set(lab.spec.broker_ids)
    )


def stop(lab: Lab, broker: Broker) -> None:
    here = layout(lab.spec)
    supervision.begin_stop(here, broker.service)
    by_hand.wait_until("it stops", lambda: not supervision.processes(here)[broker.service].runs, within=330)


def start(lab: Lab, broker: Broker) -> None:
    supervision.start(layout(lab.spec), broker.service)


def replica(broker: Broker, name: str) -> Path:
    return Path(broker.log_dirs[0]) / name


def give_id(directory: Path, topic_id: str | None) -> None:
    (directory / "partition.metadata").write_text(f"version: 0\ntopic_id: {topic_id}\n")


def test_a_torn_partition_metadata_ends_its_broker_and_is_written_anew() -> None:
    with kept_states.lab_in(Phase.ZOOKEEPER) as lab:
        last = lab.spec.brokers[-1]
        directory = replica(last, "orders-0")
        right = (directory / "partition.metadata").read_text()
        (directory / "partition.metadata").write_text("")
        assert failures(lab)["KRB-PRE-085"].evidence == (
            f"partition.metadata without a topic_id: 1: broker {last.id}: {directory}"
        )
        stop(lab, last)
        with contextlib.suppress(StepFailed):  # it may have run for a second, which counts as a start
            start(lab, last)
        here = layout(lab.spec)
        by_hand.wait_until("it ends", lambda: not supervision.processes(here)[last.service].runs, within=60)
        give_id(directory, right.rpartition(": ")[2].strip())
        start(lab, last)
        by_hand.wait_until("every partition is in sync", lambda: in_sync(lab))
        assert not failures(lab).keys() & {"KRB-PRE-084", "KRB-PRE-085"}


def test_a_new_disk_of_a_broker_in_migration_mode_is_formatted_by_its_restart_before_kraft_mode() -> None:
    with kept_states.lab_in(Phase.HYBRID) as old:
        disk = old.directory / "broker-2" / "new-disk"
        disk.mkdir()
        broker = old.spec.broker(2)
        broker = broker.model_copy(update={"log_dirs": (*broker.log_dirs, str(disk))})
        brokers = tuple(broker if each.id == 2 else each for each in old.spec.brokers)
        lab = Lab(old.spec.model_copy(update={"brokers": brokers}), old.directory, old.network)
        by_hand.write(broker, broker_properties(lab.spec, broker, BrokerMode.HYBRID))
        assert failures(lab, Phase.HYBRID)["KRB-PRE-096"].evidence == f"broker 2: {disk}: it is empty"
        by_hand.restart(broker, lab.spec)
        by_hand.wait_until("every partition is in sync", lambda: in_sync(lab))
        assert (disk / "meta.properties").exists()
        assert not failures(lab, Phase.HYBRID).keys() & {"KRB-PRE-087", "KRB-PRE-096"}
        by_hand.roll_brokers(lab.spec, BrokerMode.KRAFT, secrets=lab.secrets, only=(2,))
        by_hand.wait_until("every partition is in sync", lambda: in_sync(lab))
