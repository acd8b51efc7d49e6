"""``plan --hosts`` shows what writing the nodes' files anew would change."""

from __future__ import annotations

import pytest
from observations import SPEC, config, observation, on_host

from kraft_runbook.cluster.node_properties import MIGRATION_FLAG, controller_properties
from kraft_runbook.cluster.observation import ControllerMode, Unread
from kraft_runbook.cluster.phases import Phase
from kraft_runbook.migration.copy_tuning import SIZES
from kraft_runbook.migration.plan import make_plan


def test_a_file_that_means_the_same_is_told_so() -> None:
    plan = make_plan(observation(Phase.ZOOKEEPER), SPEC, hosts=True)
    brokers = [(each.node_id, each.changes, each.unread) for each in plan.files if each.kind == "broker"]
    assert brokers == [(i, (), "") for i in (1, 2, 3)]
    assert f"  broker 1: {SPEC.broker(1).config_file} means the same as what is rendered\n" in plan.render_text()


def test_each_difference_is_shown_and_no_secret() -> None:
    seen = config(2, num__io__threads="99", further="1", password__encoder__secret="hunter2")(
        observation(Phase.ZOOKEEPER)
    )
    plan = make_plan(seen, SPEC, hosts=True)
    (changed,) = (each for each in plan.files if each.changes)
    assert changed.node_id == 2
    assert {str(each) for each in changed.changes} == {"- further=1", "~ num.io.threads=99 -> 4"}
    assert "- further=1" in plan.render_text()
    assert "hunter2" not in plan.render_text()


def test_a_file_that_is_not_there_or_was_not_read_says_so() -> None:
    seen = on_host(1, config=None)(on_host(3, config=Unread("Permission denied"))(observation(Phase.ZOOKEEPER)))
    text = make_plan(seen, SPEC, hosts=True).render_text()
    assert f"broker 1: {SPEC.broker(1).config_file}: there is no such file" in text
    assert f"broker 3: {SPEC.broker(3).config_file}: broker 3: Permission denied" in text


def test_without_the_hosts_no_file_is_told_of() -> None:
    assert make_plan(observation(Phase.ZOOKEEPER), SPEC).files == ()


@pytest.mark.parametrize("phase", [Phase.PRE_MIGRATION, Phase.DUAL_WRITE, Phase.FINALIZED])
def test_a_controllers_file_is_compared_with_what_is_rendered_for_its_mode(phase: Phase) -> None:
    plan = make_plan(observation(phase), SPEC, hosts=True)
    controllers = [(each.node_id, each.changes, each.unread) for each in plan.files if each.kind == "controller"]
    assert controllers == [(i, (), "") for i in SPEC.controller_ids]
    changed = make_plan(config(102, further="1")(observation(phase)), SPEC, hosts=True)
    assert [(each.kind, each.node_id) for each in changed.files if each.changes] == [("controller", 102)]
    assert f"  controller 102: {SPEC.controller(102).config_file}\n         - further=1\n" in changed.render_text()


def test_the_copys_settings_and_a_finalized_file_beside_one_in_migration_mode_are_no_difference() -> None:
    tuned = next(size for size in SIZES if size.properties)
    rendered = controller_properties(SPEC, SPEC.controller(101), ControllerMode.MIGRATION, also=tuned.properties)
    finalized = controller_properties(SPEC, SPEC.controller(102), ControllerMode.KRAFT)
    seen = on_host(101, config=rendered)(on_host(102, config=finalized)(observation(Phase.DUAL_WRITE)))
    assert not any(each.changes or each.unread for each in make_plan(seen, SPEC, hosts=True).files)


def test_a_controller_that_is_not_provisioned_has_no_file_yet() -> None:
    text = make_plan(observation(Phase.ZOOKEEPER), SPEC, hosts=True).render_text()
    assert f"controller 101: {SPEC.controller(101).config_file}: there is no such file" in text


@pytest.mark.parametrize("phase", [Phase.PRE_MIGRATION, Phase.HYBRID, Phase.DUAL_WRITE])
def test_a_controllers_file_that_lost_its_flag_by_hand_is_told_to_get_it_back(phase: Phase) -> None:
    flag = MIGRATION_FLAG.replace(".", "__")
    plan = make_plan(config(101, **{flag: None})(observation(phase)), SPEC, hosts=True)
    (changed,) = (each for each in plan.files if each.changes)
    assert (changed.kind, changed.node_id) == ("controller", 101)
    assert [str(each) for each in changed.changes] == [f"+ {MIGRATION_FLAG}=true"]


def test_what_is_left_of_the_migration_in_a_final_cluster_is_shown_whole() -> None:
    rendered = controller_properties(SPEC, SPEC.controller(101), ControllerMode.MIGRATION)
    plan = make_plan(on_host(101, config=rendered)(observation(Phase.FINALIZED)), SPEC, hosts=True)
    (changed,) = (each for each in plan.files if each.changes)
    assert {f"- {MIGRATION_FLAG}=true"} <= {str(each) for each in changed.changes}
    assert any(each.key == "zookeeper.connect" and each.after is None for each in changed.changes)
    assert f"controller 102: {SPEC.controller(102).config_file} is as rendered" in plan.render_text()
