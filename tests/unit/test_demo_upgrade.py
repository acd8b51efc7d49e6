"""The demo of the upgrade: what it refuses to begin with, and what it says."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.errors import Refused
from lab.demo_upgrade import BACK, LEVELS, UP, render, require_finalized, runs, what
from lab.layout import config_files, load
from lab.software import with_kafka4


@pytest.fixture
def spec(tmp_path: Path) -> ClusterSpec:
    return load({**os.environ, "KRB_LAB_DIR": str(tmp_path)})


@pytest.fixture
def configured(spec: ClusterSpec) -> Callable[[str], None]:
    def write(text: str) -> None:
        for file in config_files(spec).values():
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)

    return write


def test_it_begins_where_every_node_is_in_kraft_mode(spec: ClusterSpec, configured: Callable[[str], None]) -> None:
    with pytest.raises(Refused, match="there is no finalized cluster to upgrade"):
        require_finalized(spec)
    configured("process.roles=broker\nzookeeper.connect=zk:2181\n")
    with pytest.raises(Refused, match="there is no finalized cluster to upgrade"):
        require_finalized(spec)
    configured("process.roles=broker\n")
    require_finalized(spec)


def test_it_does_not_begin_on_a_cluster_that_was_upgraded(
    spec: ClusterSpec, configured: Callable[[str], None], tmp_path: Path
) -> None:
    configured("process.roles=broker\n")
    link = with_kafka4(spec).broker(2).home_link
    assert link is not None
    for home, refused in ((spec.kafka.home, False), (str(tmp_path / "kafka-4"), True)):
        Path(home).mkdir(exist_ok=True)
        Path(link).unlink(missing_ok=True)
        Path(link).symlink_to(home)
        if refused:
            with pytest.raises(Refused, match="the nodes were brought to another Kafka already") as error:
                require_finalized(spec)
            assert "make demo APPROVE=auto begins with a new cluster" in error.value.way_out
        else:
            require_finalized(spec)


def test_the_round_trip_goes_up_back_and_up_before_the_level_rises(spec: ClusterSpec) -> None:
    upgraded = with_kafka4(spec)
    assert [dag_id for dag_id, _ in runs(upgraded, round_trip=False)] == [UP, LEVELS]
    planned = runs(upgraded, round_trip=True)
    assert [dag_id for dag_id, _ in planned] == [UP, BACK, UP, LEVELS]
    said = [what(dag_id, upgraded, params) for dag_id, params in planned]
    assert said[0] == said[2] and said[0].startswith("from Kafka 3.9.2 to 4.1.1, one node after the other: the contr")
    assert said[1].startswith("from Kafka 4.1.1 to 3.9.2, one node after the other: the brokers, then")
    assert said[3].startswith("metadata.version rises to the last level of 4.1, on every node at once")


def test_another_kafka_than_the_lab_s_own_is_gone_to_and_its_level(spec: ClusterSpec) -> None:
    """``make demo-upgrade TO=4.4.0``."""
    further = with_kafka4(spec, "4.4.0")
    assert further.kafka.upgrade_to is not None
    assert further.kafka.upgrade_to.home != with_kafka4(spec).kafka.upgrade_to.home  # type: ignore[union-attr]
    planned = runs(further, round_trip=False)
    assert planned == [(UP, {}), (LEVELS, {"feature": "metadata.version", "level": "4.4"})]
    said = [what(dag_id, further, params) for dag_id, params in planned]
    assert said[0].startswith("from Kafka 3.9.2 to 4.4.0, one node after the other")
    assert said[1].startswith("metadata.version rises to the last level of 4.4, on every node at once")


def test_the_report_names_a_node_that_does_not_answer_and_what_does_not_hold() -> None:
    report: dict[str, Any] = {
        "passed": False,
        "verdicts": {"every run succeeded": True, "every node runs the target": False},
        "runs": {f"1. {UP}": "success"},
        "nodes": {"broker 1": ("4.1.1", {"metadata.version": 27}), "broker 2": None},
        "restarts": {"broker-1": 1, "broker-2": 0},
        "workload": None,
        "seconds": 251.3,
    }
    said = render(report)
    assert "broker 1        Kafka 4.1.1   metadata.version 27\nbroker 2        does not answer\n" in said
    assert "restarts: broker-1 1\n" in said
    assert "yes  every run succeeded\nNO   every node runs the target\n" in said
    assert said.endswith("251.3 s: NOT PASSED")
