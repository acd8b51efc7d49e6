"""The demo of a group's way: its picture, its account, and how its members are started."""

from __future__ import annotations

from pathlib import Path

import pytest
from groups_seen_as import kafka, look, new, zookeeper
from observations import SPEC
from toggled_group import T0, T1, migrating

from kraft_runbook.errors import StepFailed
from kraft_runbook.groups.look import Owner
from kraft_runbook.groups.report import report
from lab.demo_groups import EXAMPLE, GROUP, Members, await_that, command, owners, picture
from lab.demo_groups_page import Page, drawing


def test_the_picture_shows_who_reads_what() -> None:
    side = zookeeper(owners={T0: Owner(f"{GROUP}_migrating-1-0", False)}, offsets={T0: 1, T1: 1})
    seen = report(look(side, kafka(new(f"{GROUP}_migrating-1", T0), new("new-1", T1), offsets={T0: 1, T1: 1})))
    assert owners(seen) == {"migrating-1": ["0"], "new-1": ["1"]}
    lines = picture(5, EXAMPLE[4], seen, 1963).splitlines()
    assert lines[0].startswith("5 · a KafkaConsumer replaces one, as a canary: ") and "1,963 records" in lines[0]
    assert lines[1:] == ["    migrating-1  ■ 0", "    new-1        ■ 1"]


def test_who_owns_a_partition_in_zookeeper_reads_it_whatever_kafka_assigns() -> None:
    assert [each for some in owners(report(migrating())).values() for each in some] == ["0", "1"]


def test_each_record_is_counted_once(tmp_path: Path) -> None:
    """A migrating member prints partition, offset and text."""
    (tmp_path / "migrating-1.log").write_text("0 0\n0 5 0 1\n1 0\n1 0\nnonsense\n")
    members = Members(SPEC, tmp_path)
    for sent, lost in (({0: 2, 1: 1}, 0), ({0: 3, 1: 1}, 1)):
        assert (members.proof(sent).count("lost"), members.proof(sent).count("twice")) == (lost, 1)


def test_the_example_ends_with_new_members_alone_and_each_is_started_before_it_is_stopped(tmp_path: Path) -> None:
    running: set[str] = set()
    for stage in EXAMPLE:
        running |= set(stage.starts)
        assert set(stage.stops) <= running
        running -= set(stage.stops)
    assert running == {"new-1", "new-2"}
    for name, expected in (("old-1", "kafka.tools.ConsoleConsumer"), ("new-1", "client.id=new-1")):
        assert expected in command(name, SPEC, tmp_path)
    assert "consumer.id=migrating-1" in command("migrating-1", SPEC, tmp_path)
    assert "consumer.id=old-1\n" in (tmp_path / "old-1.properties").read_text()


def test_a_member_that_ends_by_itself_ends_the_demo(tmp_path: Path) -> None:
    members = Members(SPEC, tmp_path, command=lambda name, spec, where: ["false"])
    members.start("old-1")
    members.running["old-1"].wait(30)
    with pytest.raises(StepFailed, match="old-1 ended"):
        await_that(members, "nothing", lambda: False)


def test_the_page_shows_each_step_and_whether_every_record_came_once() -> None:
    page = Page("lab")
    for number, stage in enumerate(EXAMPLE, 1):
        page.step(number, stage.title, f"as text {number}", {"old-1": ["0", "2"], "<new>": ["1"]}, 3)
    proof = Members(SPEC, Path("nowhere")).proof({0: 1})
    page.end(proof)
    html = page.html()
    assert html.index("1 · two old members") < html.index("6 · and the other one") < html.index("1 lost, 0 twice")
    assert html.count("data:image/svg+xml;base64,") == len(EXAMPLE) and "as text 6" in html
    assert "Stopped in ZOOKEEPER; failed: proof" in html and "Chain verified: 8 records" in html


def test_a_demo_that_ended_early_has_a_page_too() -> None:
    page = Page("lab")
    page.end(None)
    assert "Stopped in ZOOKEEPER; failed: example" in page.html()


def test_each_partition_is_drawn_in_its_place() -> None:
    shown = drawing({"old-1": ["0", "2"], "<new>": ["1"]}, 3)
    assert [shown.count(f'x="{150 + n * 26}"') for n in range(3)] == [1, 1, 1]
    assert "&lt;new&gt;" in shown and "<new>" not in shown
