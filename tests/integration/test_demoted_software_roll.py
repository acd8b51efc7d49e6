"""A software roll that takes a broker's leaders off: the last broker of a real, half-rolled cluster, under a real
Airflow and a workload, with a worker that is killed.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import by_hand
import on_kafka4
import pytest
from labs import Lab
from stage import ENDED, Stage, a_stage, kill_worker_of_playbook, no_acknowledged_record_is_lost

from kraft_runbook.io.kafka.leader_elections import elect_preferred_leaders
from kraft_runbook.procedures.look_at_replicas import look_at_replicas
from kraft_runbook.reassignment.look import ReplicasLook
from lab.layout import starts
from lab.software import write_cluster_file

UP, RESTART = "upgrade_software__lab", "roll_brokers_up.broker_2.restart"
pytestmark = [pytest.mark.long, pytest.mark.timeout(1500)]


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with on_kafka4.finalized_lab(on_new=(1, 3, 101, 102, 103)) as found:
        yield found


@pytest.fixture(scope="module")
def stage(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    file = write_cluster_file(tmp_path_factory.mktemp("files") / "clusters")
    text = file.read_text()
    assert "upgrade_software: {" in text
    file.write_text(text.replace("upgrade_software: {", "upgrade_software: {demote: true, ", 1))
    with a_stage(lab, tmp_path_factory.mktemp("airflow"), clusters=file.parent) as opened:
        yield opened


def seen(lab: Lab) -> ReplicasLook:
    return look_at_replicas(lab.spec, secrets=lab.secrets, sizes_of=(), settings=False)


def led_by(look: ReplicasLook, broker: int) -> set[str]:
    """What it leads that another broker could lead."""
    return {str(p) for p, each in look.seen.items() if each.leader == broker and len(each.replicas) > 1}


def preferred(look: ReplicasLook) -> bool:
    return all(each.leader == each.replicas[0] for each in look.seen.values())


def test_the_last_brokers_leaders_are_off_around_its_switch_and_back_on_the_new_software(
    stage: Stage, lab: Lab, tmp_path: Path
) -> None:
    elect_preferred_leaders(lab.spec, list(seen(lab).seen), secrets=lab.secrets)
    by_hand.wait_until("first replicas lead", lambda: preferred(seen(lab)), within=60)
    before, began = seen(lab), starts(lab.spec)
    led = led_by(before, 2)
    assert led, "broker 2 must have leaders to lose"
    with no_acknowledged_record_is_lost(lab, tmp_path / "account.json"):
        run_id = stage.start(UP)
        stage.wait(UP, run_id, "gate_software_up.approve", {"awaiting_input"})
        stage.client.answer(UP, run_id, "gate_software_up.approve", "Approve")
        stage.wait(UP, run_id, RESTART, {"running"})
        kill_worker_of_playbook(stage, "switch_software")
        assert stage.wait(UP, run_id, RESTART, ENDED) == "failed"
        off = seen(lab)
        assert not led_by(off, 2)
        several = {p: r for p, r in off.placement.present.items() if 2 in r and len(r) > 1}
        assert several and all(r[-1] == 2 for r in several.values())
        stage.resume(UP, run_id, RESTART)
        assert stage.run_to_its_end(UP, run_id) == "success", stage.failures(UP, run_id)
    told = stage.client.xcom(UP, run_id, "roll_brokers_up.broker_2.give_leaders_back")
    assert told["given_back"] > 0 and told["left"] == 0
    for other in (1, 3):
        told = stage.client.xcom(UP, run_id, f"roll_brokers_up.broker_{other}.give_leaders_back")
        assert told["given_back"] == 0, "it ran on the new software already, and kept its leaders"
    assert on_kafka4.versions(lab) == {"4.1.1"}
    ended = starts(lab.spec)
    assert {name for name in began if ended[name] != began[name]} == {"broker-2"}
    assert ended["broker-2"] == began["broker-2"] + 1, "once, although a worker was killed"
    after = seen(lab)
    assert before.placement.present.items() <= after.placement.present.items(), "also their order"
    by_hand.wait_until("first replicas lead", lambda: preferred(seen(lab)), within=60)
    assert led <= led_by(seen(lab), 2)
