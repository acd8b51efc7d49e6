"""What brokers keep on disk decides what the metadata copy makes of a topic: a topic's id that was dropped, a directory
that was left over, a new disk. Each is named before it does harm, and each cure is tried.
"""

from __future__ import annotations

import contextlib
import shutil
import subprocess
from pathlib import Path

import by_hand
import kept_states
import pytest
from confluent_kafka.admin import AdminClient
from labs import Lab
from left_on_disk import drop_topic_id, leave_over

from kraft_runbook.cluster.node_properties import broker_properties
from kraft_runbook.cluster.observation import BrokerMode, ClusterObservation, was_read
from kraft_runbook.cluster.phases import Phase
from kraft_runbook.errors import StepFailed
from kraft_runbook.io.local import supervision
from kraft_runbook.migration.checks.catalogue import CHECKS
from kraft_runbook.procedures.kept_log_ends import check_log_ends
from kraft_runbook.procedures.observe import Scope, observe
from kraft_runbook.restart.operation import RESTARTS
from kraft_runbook.runbook.check_results import CheckResult, Verdict
from lab.layout import layout

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]


def look(lab: Lab) -> ClusterObservation:
    return observe(lab.spec, secrets=lab.secrets, scope=Scope.FULL, with_hosts=True)


def failures(lab: Lab) -> dict[str, CheckResult]:
    """What fails at the gate behind the copy, by its code."""
    results = CHECKS.run(look(lab), lab.spec, Phase.HYBRID, gate="dual_write").results
    return {each.code: each for each in results if each.verdict is Verdict.FAIL}


def out_of_sync(lab: Lab, broker_id: int) -> int | None:
    """How many partitions lack the broker in their ISR; None: not known."""
    topics = observe(lab.spec, secrets=lab.secrets).topics
    return topics.out_of_sync_by_broker.get(broker_id, 0) if was_read(topics) else None


def test_a_left_over_directory_cuts_its_broker_off_at_the_copy_and_the_gate_names_it() -> None:
    """On 3.9.2 the broker that is restarted last follows no leader. The cure is tried."""
    with kept_states.lab_in(Phase.ZOOKEEPER) as lab:
        last = lab.spec.brokers[-1]
        directory = leave_over(last)
        by_hand.to_dual_write(lab.spec, secrets=lab.secrets)
        by_hand.wait_until("it falls out of the ISRs", lambda: (out_of_sync(lab, last.id) or 0) > 30, within=90)
        found = failures(lab)
        cause = f"Broker {last.id} has replicas without partition.metadata: 1: {directory}"
        assert cause in found["KRB-PRE-029"].evidence and "KRB-PRE-085" in found["KRB-PRE-029"].fix
        assert str(directory) in found["KRB-PRE-085"].evidence

        here = layout(lab.spec)
        supervision.begin_stop(here, last.service)
        by_hand.wait_until("it stops", lambda: not supervision.processes(here)[last.service].runs, within=330)
        shutil.move(directory, lab.directory / directory.name)
        supervision.start(here, last.service)
        by_hand.wait_until("it is in every ISR again", lambda: out_of_sync(lab, last.id) == 0, within=120)
        named = {"KRB-PRE-029", "KRB-PRE-085", "KRB-PRE-086"}
        by_hand.wait_until("the brokers' gauges say so too", lambda: not failures(lab).keys() & named, within=60)


def test_a_dropped_topic_id_sets_every_replica_aside_at_the_copy_and_the_gate_names_them() -> None:
    """On 3.9.2: what KRB-PRE-084 keeps from happening."""
    with kept_states.lab_in(Phase.ZOOKEEPER) as lab:
        drop_topic_id(lab, "orders")
        by_hand.to_dual_write(lab.spec, secrets=lab.secrets)

        def set_aside() -> bool:
            return any(each.name.endswith("-stray") for each in Path(lab.spec.brokers[-1].log_dirs[0]).iterdir())

        by_hand.wait_until("the last broker renames its replicas", set_aside, within=90)
        found = failures(lab)["KRB-PRE-086"].evidence
        assert "/orders-" in found and "-stray" in found


def test_what_a_broker_sets_aside_of_a_topic_that_was_deleted_meanwhile_is_named_beside_its_end(tmp_path: Path) -> None:
    """On 3.9.2: a broker in KRaft mode that was down while a topic was deleted keeps its replicas as strays."""
    with kept_states.lab_in(Phase.DUAL_WRITE) as lab:
        last, here, file = lab.spec.brokers[-1], layout(lab.spec), tmp_path / "log_ends"

        def ends() -> CheckResult:
            replicas = look(lab).replicas
            return check_log_ends(
                lab.spec, file, Phase.DUAL_WRITE, secrets=lab.secrets, keeps=True, replicas=replicas, tell=print
            )

        ends()
        assert ends().passed
        supervision.begin_stop(here, last.service)
        by_hand.wait_until("it stops", lambda: not supervision.processes(here)[last.service].runs, within=330)
        deleting = AdminClient({"bootstrap.servers": ",".join(lab.spec.bootstrap_servers)})
        by_hand.answered(deleting.delete_topics(["audit.log_v1"]))
        supervision.start(here, last.service)
        by_hand.wait_until("it is in every ISR again", lambda: out_of_sync(lab, last.id) == 0)

        def strays() -> list[Path]:
            return list(Path(last.log_dirs[0]).glob("audit.log_v1-0.*-stray"))

        by_hand.wait_until("it sets its replica aside", lambda: bool(strays()))
        found = ends()
        named = f"1: broker {last.id}: {strays()[0]} (audit.log_v1-0 ended at 0); "
        assert f"that were there before the copy and are gone: {named}" in found.evidence
        assert not found.blocks and "move the directory out of the log directory" in found.fix
        shutil.move(strays()[0], tmp_path)
        assert ends().passed


def test_a_new_disk_ends_a_broker_in_kraft_mode_and_is_formatted_while_the_broker_runs() -> None:
    with kept_states.lab_in(Phase.FINALIZED) as lab:
        old = lab.spec.broker(2)
        disk = lab.directory / "broker-2" / "new-disk"
        disk.mkdir()
        broker = old.model_copy(update={"log_dirs": (*old.log_dirs, str(disk))})
        spec = lab.spec.model_copy(
            update={"brokers": tuple(broker if each.id == 2 else each for each in lab.spec.brokers)}
        )

        def answer() -> CheckResult:
            seen = observe(spec, secrets=lab.secrets, with_hosts=True)
            return RESTARTS.checks["KRB-PRE-087"].run(seen, spec)

        by_hand.write(broker, broker_properties(spec, broker, BrokerMode.KRAFT))
        assert answer().evidence == f"node 2 would not start: {disk}: it is empty"

        here = layout(spec)
        supervision.begin_stop(here, broker.service)
        by_hand.wait_until("it stops", lambda: not supervision.processes(here)[broker.service].runs, within=330)
        with contextlib.suppress(StepFailed):  # it may have run for a second, which counts as a start
            supervision.start(here, broker.service)
        by_hand.wait_until("it ends", lambda: not supervision.processes(here)[broker.service].runs, within=60)
        assert f"No `meta.properties` found in {disk}" in supervision.log_tail(here, broker.service, lines=60)
        by_hand.write(old, broker_properties(lab.spec, old, BrokerMode.KRAFT))
        supervision.start(here, broker.service)

        by_hand.write(broker, broker_properties(spec, broker, BrokerMode.KRAFT))
        meta = (Path(broker.log_dirs[0]) / "meta.properties").read_text()
        cluster_id = next(line for line in meta.splitlines() if line.startswith("cluster.id=")).partition("=")[2]
        subprocess.run(
            [
                f"{spec.kafka.home}/bin/kafka-storage.sh",
                "format",
                "--ignore-formatted",
                f"--cluster-id={cluster_id}",
                "--config",
                broker.config_file,
            ],
            check=True,
            capture_output=True,
        )
        assert (Path(broker.log_dirs[0]) / "meta.properties").read_text() == meta
        assert "directory.id=" in (disk / "meta.properties").read_text()
        assert answer().passed
        by_hand.restart(broker, spec)

        def is_back() -> bool:
            topics = observe(spec, secrets=lab.secrets).topics
            return was_read(topics) and topics.under_replicated_count == 0 and 2 in topics.live_broker_ids

        by_hand.wait_until("it is in every ISR", is_back, within=120)
