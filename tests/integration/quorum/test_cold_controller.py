"""A controller restarted on a long log: it has fetched everything and not applied it, and a roll waits for it."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import by_hand
import pytest
from kafka.protocol.admin import AlterClientQuotasRequest
from labs import Lab, lab_of

from kraft_runbook.cluster.observation import BrokerMode, ClusterObservation, was_read
from kraft_runbook.cluster.spec_nodes import Controller
from kraft_runbook.io.kafka.connection import connect_to
from kraft_runbook.io.local.supervision import processes
from kraft_runbook.procedures.look_at_nodes import accepts
from kraft_runbook.restart.conditions import CONTROLLER_BACK
from kraft_runbook.runbook.warm import Warmth, warmth_of
from kraft_runbook.steps.handle import Cluster
from kraft_runbook.steps.waiting import Wait
from lab.layout import layout

RECORDS_A_REQUEST, REQUESTS = 2000, 100
"""200,000 records: a controller applied them in five seconds on two cores."""


@pytest.fixture(scope="module")
def long_log(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with lab_of(("a",), mode=BrokerMode.KRAFT, clusters=tmp_path_factory.mktemp("clusters")) as lab:
        entry = AlterClientQuotasRequest.EntryData
        with connect_to(lab.spec, lab.spec.brokers[0], secrets=lab.secrets, timeout=60) as connection:
            for rate in range(1, REQUESTS + 1):
                entries = [
                    entry(
                        entity=[entry.EntityData(entity_type="user", entity_name=f"user-{n}")],
                        ops=[entry.OpData(key="producer_byte_rate", value=float(rate), remove=False)],
                    )
                    for n in range(RECORDS_A_REQUEST)
                ]
                answer = connection.send(AlterClientQuotasRequest(entries=entries, validate_only=False, version=1))
                assert {each.error_code for each in answer.entries} == {0}
        yield lab


@pytest.mark.long
def test_a_roll_waits_for_a_controller_that_has_fetched_a_long_log_and_not_applied_it(long_log: Lab) -> None:
    spec, told = long_log.spec, list[str]()
    cluster = Cluster(spec, long_log.secrets, told.append)
    seen = cluster.observe()
    assert was_read(seen.quorum)
    committed, leader = seen.quorum.high_watermark, seen.quorum.leader_id
    assert committed > RECORDS_A_REQUEST * REQUESTS
    standby = next(each for each in spec.controllers if each.id != leader)
    by_hand.restart(standby, spec)
    wait = Wait(cluster, CONTROLLER_BACK, 60.0, standby.id)
    cold: list[ClusterObservation] = []
    with with_a_tenth_of_a_core(long_log, standby) as whole_again:
        while not wait.look():
            assert wait.seen is not None
            if warmth_of(wait.seen, [standby.id])[standby.id] is Warmth.COLD:
                cold.append(wait.seen)
                whole_again()
    assert cold, f"it was never seen to be cold: {told}"
    assert any(fetched(look, standby.id) >= committed for look in cold), "DescribeQuorum called it caught up"
    waited = f"waiting for controller {standby.id} to apply the metadata log: it has applied up to offset"
    assert any(line.startswith(waited) for line in told), told
    assert told[-1].startswith(f"controller {standby.id} to have caught up and to be warm: holds")
    assert wait.seen is not None
    assert warmth_of(wait.seen, [standby.id])[standby.id] is Warmth.WARM


@contextmanager
def with_a_tenth_of_a_core(lab: Lab, controller: Controller) -> Iterator[Callable[[], None]]:
    """Let it run for 30 of 300 ms from the moment its port opens, until released: its log is applied slowly."""
    pid = processes(layout(lab.spec))[controller.service].pid
    released = threading.Event()

    def hold() -> None:
        while not released.is_set() and not accepts(controller.host, controller.port):
            released.wait(0.02)
        while not released.is_set():
            os.kill(pid, signal.SIGSTOP)
            try:
                released.wait(0.27)
            finally:
                os.kill(pid, signal.SIGCONT)
            released.wait(0.03)

    thread = threading.Thread(target=hold)
    thread.start()
    try:
        yield released.set
    finally:
        released.set()
        thread.join()


def fetched(seen: ClusterObservation, controller: int) -> int:
    """The end of its log by DescribeQuorum."""
    voters = seen.quorum.voters if was_read(seen.quorum) else ()
    return next((each.log_end_offset for each in voters if each.id == controller), -1)
