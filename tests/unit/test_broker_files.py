"""``plan --hosts`` shows what writing the brokers' files anew would change, as KRB-PRE-046 compares them."""

from __future__ import annotations

from observations import SPEC, config, observation, on_host

from kraft_runbook.cluster.observation import Unread
from kraft_runbook.cluster.phases import Phase
from kraft_runbook.migration.plan import make_plan


def test_a_file_that_means_the_same_is_told_so() -> None:
    plan = make_plan(observation(Phase.ZOOKEEPER), SPEC, hosts=True)
    assert [(each.node_id, each.changes, each.unread) for each in plan.files] == [(i, (), "") for i in (1, 2, 3)]
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
