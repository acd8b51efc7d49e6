"""The tasks that toggle groups: what waits in the triggerer and goes on, and the DAG that a schedule starts."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk.exceptions import TaskDeferred
from dag_files import dags_of
from observations import observation
from recording import RecordingCluster, run_on

from kraft_runbook.cluster.phases import Phase
from kraft_runbook.errors import Unreachable
from kraft_runbook.steps.later import Later
from kraft_runbook.steps.run import Run
from kraft_runbook_airflow.groups.later import LaterTrigger, WaitLater
from lab import ROOT

BLOCK = """
group_toggles:
  groups: ["orders-.*"]
  schedule: "@hourly"
  relief: {metric: kafka_load, above: 3}
"""


def test_the_fleet_has_a_dag_where_the_cluster_file_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lab = (ROOT / "include" / "clusters" / "lab.yaml").read_text()
    (tmp_path / "lab.yaml").write_text(lab + BLOCK)
    (dag,) = dags_of("toggle_consumer_groups.py", tmp_path, monkeypatch).values()
    assert {each.task_id: each.upstream_task_ids for each in dag.tasks} == {
        "begin": set(),
        "toggle": {"begin"},
        "settled": {"toggle"},
        "closing_report": {"settled"},
    }
    assert (dag.dag_id, dag.schedule, dag.max_active_runs) == ("toggle_consumer_groups__lab", "@hourly", 1)
    assert dag.is_paused_upon_creation and not dag.catchup
    assert dag.params.dump() == {"dry_run": False, "go_on": False}
    assert dags_of("toggle_consumer_groups.py", ROOT / "include" / "clusters", monkeypatch) == {}


def test_a_cluster_without_zookeeper_has_none_of_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lab = (ROOT / "include" / "clusters" / "lab.yaml").read_text()
    lines, inside = [], False
    for line in (lab + BLOCK).splitlines():
        inside = line.startswith("zookeeper:") or (inside and line.startswith(" "))
        if not inside:
            lines.append(line)
    (tmp_path / "lab.yaml").write_text("\n".join(lines))
    for file in ("toggle_consumer_group.py", "toggle_consumer_groups.py", "group_watch.py"):
        assert dags_of(file, tmp_path, monkeypatch) == {}


# -- a step that waits -------------------------------------------------------------------------------------------------


def resumed(seen: dict[str, Any] | None, does: Any) -> Any:
    """What the task answers to what the trigger has seen; None: as it begins."""
    task = WaitLater(task_id="settled", cluster="lab", does=does)
    run = run_on(RecordingCluster(observation(Phase.HYBRID)))
    task.act_or_rehearse = lambda context, act, rehearse: act(context, run)  # type: ignore[method-assign]
    return task.act({}, run) if seen is None else task.resume({}, seen)


def test_a_step_that_asks_for_a_wait_is_deferred_and_goes_on_with_what_was_seen() -> None:
    def step(run: Run, seen: Any) -> Any:
        return Later("soaking", {"group": "g", "direction": "to Kafka", "until": 5.0}, 9.0) if seen is None else seen

    with pytest.raises(TaskDeferred) as deferred:
        resumed(None, step)
    trigger = deferred.value.trigger
    assert isinstance(trigger, LaterTrigger) and deferred.value.method_name == "resume"
    path, given = trigger.serialize()
    assert path == "kraft_runbook_airflow.groups.later.LaterTrigger"
    again = LaterTrigger(**given)
    assert (again.cluster, again.watch, again.until, again.given["group"]) == ("lab", "soaking", 9.0, "g")
    assert resumed({"over": True}, step) == {"over": True}


class Looks:
    """What looks: it is over at the third look, and the first one sees nothing."""

    every = 0.0

    def __init__(self, group: str) -> None:
        self.group, self.looks = group, 0

    def look(self, cluster: Any) -> bool:
        self.looks += 1
        if self.looks == 1:
            raise Unreachable("ZooKeeper is away", way_out="start it")
        return self.looks == 3

    def told(self) -> dict[str, Any]:
        return {"looks": self.looks}


@pytest.mark.parametrize(("until", "seen"), [(1e12, {"over": True, "looks": 3}), (0.0, {"over": False, "looks": 0})])
def test_the_trigger_looks_until_it_is_over_or_the_time_is(until: float, seen: dict[str, Any]) -> None:
    class Trigger(LaterTrigger):
        def looking(self) -> Any:
            return Looks(**self.given)

        def hand(self) -> Any:
            return self.cluster

    async def first() -> Any:
        return await anext(Trigger("lab", "looks", {"group": "g"}, until).run())

    assert asyncio.run(first()).payload == seen
