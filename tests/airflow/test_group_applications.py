"""Applications that playbooks of the cluster file stop and start while their groups are moved."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from dag_files import dags_of
from group_scene import NEW, OLD, STOPPED, Scene, begin, pages_put_before
from in_run import Signed, run_in

from kraft_runbook.cluster.group_applications import GroupApplication
from kraft_runbook.errors import Refused, StepFailed
from kraft_runbook.evidence.kinds import Begins, of_kind
from kraft_runbook.groups.operation import MOVE_GROUPS, Step
from kraft_runbook.groups.planned_offsets import Direction
from kraft_runbook.procedures.play_group import play_group, signed_for
from kraft_runbook.procedures.warm_groups import keep_warm
from kraft_runbook.steps.groups.applications import play_applications
from kraft_runbook.steps.groups.files import files_of
from kraft_runbook.steps.groups.planning import shows_plan
from kraft_runbook.steps.handle import RehearsedCluster
from kraft_runbook_airflow.base.journal import records_of
from kraft_runbook_airflow.groups.asking import AskOwner
from lab import ROOT

BLOCK = """
group_applications:
  - {groups: ["g.*"], stop: /p/stop.yml, start: /p/start.yml, hosts: {app-1: {ansible_host: 10.0.0.1}}}
"""


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    return pages_put_before(monkeypatch)


@pytest.fixture
def scene(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Scene:
    """A group of an application with playbooks; ``failing``: its play is refused, too."""
    found = begin(monkeypatch, tmp_path)
    ours = {each: str(tmp_path / f"{each}.yml") for each in ("stop", "start")}
    for playbook in ours.values():
        Path(playbook).write_text("- hosts: all\n")
    named = GroupApplication(groups=("g",), hosts={"app-1": {}}, **ours)
    vars(found.cluster)["spec"] = found.cluster.spec.model_copy(update={"group_applications": (named,)})
    found.cluster.answers[signed_for] = lambda groups: signed_for(found.cluster.spec, groups, secrets=lambda ref: "")

    def play(group: str, direction: Direction, *, starts: bool, tell: Any) -> tuple[str, ...]:
        if group in found.failing:
            raise found.failing[group]
        found.did.append(f"{'started' if starts else 'stopped'} {group}")
        return ("app-1",)

    found.cluster.answers[play_group] = play
    return found


def ask(scene: Scene, *, starts: bool) -> Any:
    task = AskOwner(task_id="ask_owner", cluster="lab", starts=starts, wave=1)
    return task.act(scene.context, scene.run)


def play(scene: Scene, *, starts: bool) -> Any:
    return play_applications(scene.run, starts=starts, number=1)


def test_from_the_stop_to_the_start_nobody_is_asked(scene: Scene, asked: list[str]) -> None:
    scene.plan()
    (ours,) = scene.cluster.spec.group_applications
    told = f"g: stopped by {ours.stop}, started by {ours.start}, on app-1"
    assert told in shows_plan(scene.run).exhibits[1].rendered
    assert "not_asked" in ask(scene, starts=False)
    assert play(scene, starts=False) == {"groups": 1, "stayed": []}
    assert play(scene, starts=False)["groups"] == 1, "killed before it was silent: it is played again"
    scene.looks = (STOPPED,)
    scene.read_at_the_stop()
    assert play(scene, starts=False)["groups"] == 0, "it was read at the stop"
    scene.step(Step.FENCE)
    scene.step(Step.COMMIT)
    assert "not_asked" in ask(scene, starts=True)
    assert play(scene, starts=True) == {"groups": 1, "stayed": []}
    scene.looks, scene.missing = (NEW,), ()
    assert play(scene, starts=True)["groups"] == 0, "it has started"
    assert [each for each in scene.did if "ed g" in each and "_" not in each] == ["stopped g", "stopped g", "started g"]
    assert asked == []
    assert f"stopped by playbook: g: {ours.stop}" in scene.told()
    assert f"started by playbook: g: {ours.start}" in scene.told()


def test_a_playbook_that_was_changed_after_the_signature_is_not_played(scene: Scene) -> None:
    scene.plan()
    signed = {each.digest for each in shows_plan(scene.run).exhibits}

    class AsShown(Signed):
        def require(self, *_: Any, exhibit: str | None = None, **__: Any) -> None:
            if exhibit not in signed:
                raise Refused("nobody has signed it", way_out="clear the proof")

    (ours,) = scene.cluster.spec.group_applications
    Path(ours.start).write_text("- hosts: all\n  become: true\n")
    with pytest.raises(Refused, match="nobody has signed it"):
        play_applications(run_in(scene.context, scene.cluster, AsShown), starts=False, number=1)
    assert "stopped g" not in scene.did
    signed |= {each.digest for each in shows_plan(scene.run).exhibits}
    assert play_applications(run_in(scene.context, scene.cluster, AsShown), starts=False, number=1)["groups"] == 1


def test_the_move_has_begun_before_a_playbook_is_played(scene: Scene) -> None:
    """The applications are stopped from then on: the proof's age must not keep them so."""
    scene.plan()
    scene.failing = {"g": KeyboardInterrupt()}  # type: ignore[dict-item]
    would = RehearsedCluster(scene.cluster.spec, lambda _: "", print)
    vars(would).update(ask=scene.cluster.ask, observe=scene.cluster.observe)
    play_applications(run_in(scene.context, would), starts=False, number=1)
    assert not list(of_kind(records_of(scene.context), Begins))
    with pytest.raises(KeyboardInterrupt):
        play(scene, starts=False)
    assert [told.gate for _, told in of_kind(records_of(scene.context), Begins)] == [MOVE_GROUPS]


def test_a_playbook_that_is_missing_is_named_before_anything_is_signed(scene: Scene) -> None:
    (ours,) = scene.cluster.spec.group_applications
    Path(ours.start).unlink()
    with pytest.raises(Refused, match=f"there is no playbook {ours.start}"):
        scene.plan()


def test_a_play_that_fails_is_told_with_its_host_and_task_and_the_others_go_on(scene: Scene, asked: list[str]) -> None:
    scene.looks = (OLD, replace(OLD, name="h"))
    scene.plan()
    ask(scene, starts=False)
    assert len(asked) == 1 and "`h`" in asked[0] and "`g`" not in asked[0], "the other group's owner is asked"
    scene.failing = {"g": StepFailed("stop.yml for group g: 'Stop it' failed on app-1: no such unit", way_out="x")}
    assert play(scene, starts=False) == {"groups": 0, "stayed": ["g"]}
    assert "stayed: g: stop.yml for group g: 'Stop it' failed on app-1: no such unit; x" in scene.told()
    scene.failing = {}
    scene.read_at_the_stop()
    assert [each.group for each in files_of(scene.run).at_the_stop(scene.plan().digest).plans] == ["h"]
    assert play(scene, starts=False) == {"groups": 1, "stayed": []}, "cleared, it is tried again"


def test_where_the_only_play_fails_the_task_fails(scene: Scene) -> None:
    scene.plan()
    scene.failing = {"g": StepFailed("'Stop it' failed on app-1", way_out="x")}
    with pytest.raises(StepFailed, match="'Stop it' failed on app-1"):
        play(scene, starts=False)


def test_killed_in_the_middle_it_goes_on(scene: Scene) -> None:
    (ours,) = scene.cluster.spec.group_applications
    both = ours.model_copy(update={"groups": ("g", "h")})
    vars(scene.cluster)["spec"] = scene.cluster.spec.model_copy(update={"group_applications": (both,)})
    scene.looks = (OLD, replace(OLD, name="h"))
    scene.plan()
    scene.failing = {"h": KeyboardInterrupt()}  # type: ignore[dict-item]
    with pytest.raises(KeyboardInterrupt):
        play(scene, starts=False)
    scene.failing = {}
    assert play(scene, starts=False) == {"groups": 2, "stayed": []}
    assert scene.did == ["stopped g", "stopped g", "stopped h"]


class Kept:
    """What keeps groups warm. ``did``: gets when they are let go."""

    def __init__(self, did: list[str], groups: list[str]) -> None:
        self.did, self.groups = did, groups
        did.append(f"warm {' '.join(groups)}")

    def let_go(self, awaited: Any = (), seconds: float = 0.0) -> dict[str, str]:
        self.did.append(f"let go after {' '.join(awaited) or 'nothing'}")
        return dict.fromkeys(self.groups, "it left when the first member came")


def keep_warm_in(scene: Scene, *groups: str) -> None:
    """The groups move, and the cluster file keeps the first one warm."""
    (ours,) = scene.cluster.spec.group_applications
    cold = ours.model_copy(update={"groups": groups[1:] or ("none",)})
    both = (ours.model_copy(update={"keep_warm": True}), cold)
    vars(scene.cluster)["spec"] = scene.cluster.spec.model_copy(update={"group_applications": both})
    scene.cluster.answers[keep_warm] = lambda some: Kept(scene.did, some)
    scene.looks = tuple(replace(OLD, name=each) for each in groups)
    scene.missing = groups


def moved_to_the_start(scene: Scene) -> None:
    scene.looks = tuple(replace(STOPPED, name=each.name) for each in scene.looks)
    scene.read_at_the_stop()
    scene.step(Step.FENCE)
    scene.step(Step.COMMIT)
    scene.did.clear()


def test_a_group_is_kept_warm_from_before_its_start_until_its_members_came(scene: Scene) -> None:
    keep_warm_in(scene, "g", "h")
    scene.plan()
    signed = shows_plan(scene.run).exhibits[1].rendered
    assert "app-1; kept warm in Kafka for members that join by range, roundrobin" in signed
    assert "are shut out meanwhile" in signed and "group.protocol=consumer" in signed
    assert play(scene, starts=False)["groups"] == 2
    assert not [each for each in scene.did if "warm" in each], "while it stops nothing is kept"
    moved_to_the_start(scene)
    assert play(scene, starts=True) == {"groups": 2, "stayed": []}
    assert scene.did == ["warm g", "started g", "started h", "let go after g h", "let go after nothing"]
    assert "kept warm: g: it left when the first member came" in scene.told()


def test_a_group_whose_start_fails_is_let_go_and_no_member_is_awaited_in_it(scene: Scene) -> None:
    keep_warm_in(scene, "g")
    scene.plan()
    moved_to_the_start(scene)

    def fails(*_: Any, **__: Any) -> tuple[str, ...]:
        raise StepFailed("'Start it' failed on app-1", way_out="x")

    scene.cluster.answers[play_group] = fails
    with pytest.raises(StepFailed, match="'Start it' failed"):
        play(scene, starts=True)
    assert scene.did == ["warm g", "let go after nothing"]


def test_on_the_way_back_and_in_a_dry_run_nothing_is_kept_warm(scene: Scene) -> None:
    keep_warm_in(scene, "g")
    scene.plan()
    would = RehearsedCluster(scene.cluster.spec, lambda _: "", print)
    vars(would).update(ask=scene.cluster.ask, observe=scene.cluster.observe)
    play_applications(run_in(scene.context, would), starts=True, number=1)
    assert [each.what.partition(" for ")[0] for each in would.acts] == [
        "keep group g warm in Kafka until its first member comes",
        f"play {would.spec.group_applications[0].start}",
    ]
    scene.context["params"]["direction"] = "back to ZooKeeper"
    scene.looks = (NEW,)
    scene.plan()
    scene.read_at_the_stop()
    scene.did.clear()
    assert play(scene, starts=True) == {"groups": 1, "stayed": []}
    assert scene.did == ["started g"]


def test_each_wave_plays_where_the_cluster_file_names_playbooks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = (ROOT / "include" / "clusters" / "lab.yaml").read_text()
    (tmp_path / "lab.yaml").write_text(lab + BLOCK)
    (dag,) = dags_of("move_consumer_group.py", tmp_path, monkeypatch).values()
    upstream = {each.task_id: each.upstream_task_ids for each in dag.tasks}
    for part, wait in (("stop", "silent"), ("start", "started")):
        assert upstream[f"wave_3.{part}.play"] == {f"wave_3.{part}.ask_owner"}
        assert upstream[f"wave_3.{part}.{wait}"] == {f"wave_3.{part}.play"}
