"""The brokers of a rack are restarted together: four real brokers in two racks, and a real Airflow."""

from __future__ import annotations

from datetime import datetime

import pytest
from replicas import Ground, admin, ground_of
from stage import Stage
from test_reassignment_in_airflow import scene_on, without_zookeeper

from kraft_runbook.cluster.observation import BrokerMode
from kraft_runbook.evidence.kinds import Played, of_kind
from kraft_runbook.evidence.store import evidence_directory, read_records, run_name
from kraft_runbook.runbook.broker_batches import CODE
from lab.layout import starts

RESTART = "rolling_restart__lab"
ROLL = "roll: {by: rack, at_once: 2}\n"
Times = tuple[datetime, datetime]


def turns(stage: Stage, run_id: str) -> dict[int, Times]:
    """When each broker's playbook began and ended, by the run's evidence."""
    home = evidence_directory({"KRAFT_RUNBOOK_STATE": str(stage.airflow.home / "kraft-runbook")})
    found = of_kind(read_records(home, run_name(RESTART, run_id)), Played)
    return {told.node_id: (told.began_at, told.ended_at) for _, told in found if told.began_at and told.ended_at}


def restarted(ground: Ground) -> list[int]:
    services = starts(ground.lab.spec)
    return [services[each.service] for each in ground.lab.spec.brokers]


@pytest.mark.long
def test_a_rack_is_restarted_together_once_no_partition_would_be_short(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    made, seen, home = (tmp_path_factory.mktemp(name) for name in ("made", "seen", "airflow"))
    with ground_of(BrokerMode.KRAFT, made) as ground:
        clusters = without_zookeeper(made / "lab.yaml", seen)
        with (clusters / "lab.yaml").open("a") as written:
            written.write(ROLL)
        with scene_on(ground, clusters, home) as scene:
            stage = scene.stage
            spread = ground.topic((1, 2), (2, 3), (3, 4), (4, 1), megabytes=1)
            ground.topic((4, 3, 2, 1))
            crowded = ground.topic((2, 4))
            before = restarted(ground)

            refused = stage.start(RESTART, nodes="brokers")
            assert stage.run_to_its_end(RESTART, refused) == "failed"
            told = stage.log(RESTART, refused, "preflight.checks")
            assert CODE in told and f"{crowded}-0 (0 left, min.insync.replicas 1)" in told, told
            assert restarted(ground) == before

            client = admin(ground.lab.spec)  # its requests end with it
            client.delete_topics([crowded])[crowded].result(30)
            run_id = stage.start(RESTART, nodes="brokers")
            assert stage.run_to_its_end(RESTART, run_id) == "success", stage.failures(RESTART, run_id)
            assert [now - was for now, was in zip(restarted(ground), before, strict=True)] == [1, 1, 1, 1]
            played = turns(stage, run_id)
            print({broker: f"{(ended - began).total_seconds():.1f} s" for broker, (began, ended) in played.items()})
            began, ended = ({broker: times[at] for broker, times in played.items()} for at in (0, 1))
            assert max(began[2], began[4]) < min(ended[2], ended[4]), "not together"
            assert ended[1] < min(began[2], began[4]) and max(ended[2], ended[4]) < began[3], "not in turn"
            ground.until(lambda look: all(set(p.isr) == set(p.replicas) for p in look.seen.values()))
            assert ground.readable(spread) == ground.written[spread]
