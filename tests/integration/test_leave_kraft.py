"""Leaving KRaft on a real quorum: the fence is lifted where anything can't be proven, and what was acknowledged is in ZooKeeper where it is not."""

from __future__ import annotations

import json
import os
from pathlib import Path

import by_hand
import pytest
from by_hand import answered
from confluent_kafka.admin import AdminClient, ConfigEntry, ConfigResource, NewTopic
from confluent_kafka.admin import AlterConfigOpType as Op
from kazoo.client import KazooClient
from labs import Lab

from kraft_runbook.clients import departure
from kraft_runbook.clients.departure import leave_kraft
from kraft_runbook.clients.metadata_quorum import describe_quorum
from kraft_runbook.clients.observe import accepts, observe
from kraft_runbook.clients.playbooks import gather_host_facts
from kraft_runbook.controller_threads import cut_off
from kraft_runbook.errors import StepFailed
from kraft_runbook.leaving import Departure, fence_plan
from lab.layout import starts

BURST = [f"burst-{n}" for n in range(300)]


def leave(lab: Lab, zookeeper: KazooClient, *, just_before=None) -> Departure:
    since = json.loads(zookeeper.get("/migration")[0])["kraft_metadata_offset"]
    plan = fence_plan(observe(lab.spec, secrets=lab.secrets))
    return leave_kraft(lab.spec, plan, proven_since=since, secrets=lab.secrets, tell=print, just_before=just_before)


def create(lab: Lab, topics: list[str]) -> None:
    admin = AdminClient({"bootstrap.servers": ",".join(lab.spec.bootstrap_servers)})
    answered(admin.create_topics([NewTopic(name, 3, 3) for name in topics]))


def dual_write_goes_on(lab: Lab) -> None:
    by_hand.wait_until("all controllers are back", lambda: len(describe_quorum(lab.spec, secrets=lab.secrets).voters) == len(lab.spec.controllers))
    by_hand.await_dual_write(lab.spec, secrets=lab.secrets)


def test_the_threads_of_every_broker_in_migration_mode_are_seen_on_its_host(dual_write: Lab) -> None:
    hosts = gather_host_facts(dual_write.spec)
    assert {i: len(hosts[i].controller_threads) for i in (*dual_write.spec.broker_ids, 101)} == {1: 4, 2: 4, 3: 4, 101: 0}
    assert cut_off(observe(dual_write.spec, secrets=dual_write.secrets), hosts) == {}


def test_a_controller_whose_file_lost_the_flag_is_named_before_any_is_stopped(dual_write: Lab, zookeeper: KazooClient) -> None:
    """Lifting the fence starts controllers: one without the flag would finalize the migration as soon as it led."""
    controller = dual_write.spec.controllers[1]
    file = Path(controller.config_file)
    kept, changed = file.read_text(), file.stat().st_mtime_ns
    before = starts(dual_write.spec)
    file.write_text("\n".join(line for line in kept.splitlines() if "migration.enable" not in line))
    try:
        with pytest.raises(StepFailed, match=f"controller {controller.id} would not start in migration mode") as failed:
            leave(dual_write, zookeeper)
    finally:
        file.write_text(kept)
        os.utime(file, ns=(changed, changed))
    assert "could not be lifted" not in failed.value.problem
    assert all(accepts(c.host, c.port) is True for c in dual_write.spec.controllers)
    assert starts(dual_write.spec) == before


def test_what_fails_before_the_fence_stops_no_controller(dual_write: Lab, zookeeper: KazooClient) -> None:
    def fail() -> None:
        raise StepFailed("something else", way_out="")

    before = starts(dual_write.spec)
    with pytest.raises(StepFailed, match="something else"):
        leave(dual_write, zookeeper, just_before=fail)
    assert starts(dual_write.spec) == before
    assert all(accepts(c.host, c.port) is True for c in dual_write.spec.controllers)


def test_a_touched_key_that_differs_in_zookeeper_lifts_the_fence(dual_write: Lab, zookeeper: KazooClient) -> None:
    admin = AdminClient({"bootstrap.servers": ",".join(dual_write.spec.bootstrap_servers)})

    def touch_and_plant() -> None:
        entry = ConfigEntry("retention.ms", "777000", incremental_operation=Op.SET)
        answered(admin.incremental_alter_configs([ConfigResource(ConfigResource.Type.TOPIC, "customers", incremental_configs=[entry])]))
        by_hand.wait_until("the change reaches ZooKeeper", lambda: b"777000" in zookeeper.get("/config/topics/customers")[0])
        zookeeper.set("/config/topics/customers", zookeeper.get("/config/topics/customers")[0].replace(b"777000", b"666000"))

    before = zookeeper.get("/controller")[0]
    with pytest.raises(StepFailed, match="keys touched since the full parity") as failed:
        leave(dual_write, zookeeper, just_before=touch_and_plant)
    assert "retention.ms" in str(failed.value)
    assert zookeeper.get("/controller")[0] == before
    assert zookeeper.exists("/migration")
    dual_write_goes_on(dual_write)
    zookeeper.set("/config/topics/customers", zookeeper.get("/config/topics/customers")[0].replace(b"666000", b"777000"))


def test_what_is_not_drained_in_time_lifts_the_fence(dual_write: Lab, zookeeper: KazooClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """A real drain is too quick to be caught behind: the offset is read as one that lags by a record."""
    read = departure._offset
    monkeypatch.setattr(departure, "_offset", lambda reader: (read(reader) or 0) - 1)
    before = starts(dual_write.spec)
    with pytest.raises(StepFailed, match="was not written up to offset") as failed:
        leave(dual_write, zookeeper, just_before=lambda: create(dual_write, BURST[:150]))
    assert "the fence is lifted" in failed.value.way_out
    dual_write_goes_on(dual_write)
    after = starts(dual_write.spec)
    active = describe_quorum(dual_write.spec, secrets=dual_write.secrets)
    assert active.high_watermark > 0
    assert sum(after[c.service] - before[c.service] for c in dual_write.spec.controllers) == 2


def test_right_after_a_burst_every_acknowledged_topic_and_state_is_in_zookeeper(dual_write: Lab, zookeeper: KazooClient) -> None:
    zookeeper.create("/admin/reassign_partitions", b'{"version":1,"partitions":[]}')
    left = leave(dual_write, zookeeper, just_before=lambda: create(dual_write, BURST[150:]))
    assert left.migration_offset == (left.high_watermark or 0) - 1
    assert (left.touched_keys or 0) >= 150
    assert set(left.deleted) == {"/controller", "/migration", "/admin/reassign_partitions"}
    assert left.window_seconds is not None
    states = [f"/brokers/topics/{name}/partitions/{number}/state" for name in BURST for number in range(3)]
    assert [path for path in states if not zookeeper.exists(path)] == []
    assert json.loads(zookeeper.get("/controller")[0])["kraftControllerEpoch"] == -1
    assert not zookeeper.exists("/migration")
