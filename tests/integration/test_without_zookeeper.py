"""A finalized cluster whose ZooKeeper is gone and whose file names none: observed, explained, and refused by the
migration's preflight.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import by_hand
import kept_states
import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from labs import Lab
from recording import run_on

from kraft_runbook.cluster.cluster_file import load_cluster
from kraft_runbook.cluster.observation import NO_ZOOKEEPER
from kraft_runbook.cluster.phases import Phase, detect_phase
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.cluster.unread import was_read
from kraft_runbook.errors import Refused
from kraft_runbook.io.local import supervision
from kraft_runbook.procedures.observe import Scope, observe
from kraft_runbook.steps.handle import Cluster
from kraft_runbook.steps.unregister_broker import unregister
from lab import ROOT
from lab.layout import ZOOKEEPER, layout


@dataclass(frozen=True)
class Alone:
    """The lab as a cluster file without ``zookeeper`` describes it. ``clusters``: where that file lies."""

    lab: Lab
    spec: ClusterSpec
    clusters: Path

    def command(self, *arguments: str) -> tuple[int, str]:
        """``kraft-runbook`` as a person runs it: its exit code, and what it said."""
        done = subprocess.run(
            [sys.executable, "-m", "kraft_runbook.cli.app", *arguments, "--cluster", "lab"],
            env={**self.lab.environment, "KRAFT_RUNBOOK_CLUSTERS": str(self.clusters)},
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        return done.returncode, done.stdout or done.stderr

    def stop(self, service: str) -> None:
        here = layout(self.lab.spec)
        supervision.begin_stop(here, service)
        by_hand.wait_until(f"{service} has ended", lambda: not supervision.processes(here)[service].runs)


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Alone]:
    clusters = tmp_path_factory.mktemp("files") / "include" / "clusters"
    clusters.mkdir(parents=True)
    before, _, rest = (ROOT / "include" / "clusters" / "lab.yaml").read_text().partition("zookeeper:\n")
    (clusters / "lab.yaml").write_text(before + rest[rest.index("reach:") :])
    with kept_states.lab_in(Phase.FINALIZED) as lab:
        found = Alone(lab, load_cluster("lab", directory=clusters, environment=lab.environment), clusters)
        assert not supervision.processes(layout(lab.spec))[ZOOKEEPER].runs
        yield found


def test_it_is_finalized_and_whole(alone: Alone) -> None:
    for scope in Scope:
        seen = observe(alone.spec, secrets=alone.lab.secrets, scope=scope)
        assert detect_phase(seen).phase is Phase.FINALIZED
        assert seen.zookeeper == NO_ZOOKEEPER
    status, text = alone.command("explain")
    assert (status, "lab is in FINALIZED." in text) == (0, True), text
    assert (
        "The migration is final, and the cluster file names no ZooKeeper any more. There is nothing to migrate." in text
    )
    assert "3 of 3 controllers run; 3 of 3 brokers are registered and not fenced" in text
    assert "It waits for: nothing." in text and "Problems: none seen in a quick look." in text
    assert "Could not be read" not in text


def test_what_the_command_line_says_of_it_names_no_zookeeper_that_was_looked_for(alone: Alone) -> None:
    status, text = alone.command("observe")
    assert (status, "lab is in FINALIZED" in text, "could not be read" in text) == (0, True, False), text
    status, text = alone.command("observe", "--json")
    assert (status, json.loads(text)["observation"]["zookeeper"]["reason"]) == (
        0,
        "the cluster file names no ZooKeeper",
    )
    status, text = alone.command("plan")
    assert status == 0 and "Nothing is left to do: the migration is final." in text, text


def test_the_migrations_preflight_is_refused_by_checks(alone: Alone) -> None:
    status, text = alone.command("preflight", "--json")
    found = json.loads(text)
    assert (status, found["verdict"], found["phase"]) == (1, "FAIL", "FINALIZED"), text
    assert [
        each["code"] for each in found["results"] if each["verdict"] != "PASS" and each["severity"] == "BLOCKING"
    ] == ["KRB-PRE-002", "KRB-PRE-080"]


def test_what_is_down_is_named_and_what_brings_it_back(alone: Alone) -> None:
    seen = observe(alone.spec, secrets=alone.lab.secrets)
    follower = next(i for i in alone.spec.controller_ids if seen.active_controller and i != seen.active_controller.id)
    alone.stop(alone.spec.controller(follower).service)
    alone.stop(alone.spec.broker(3).service)
    status, text = alone.command("explain")
    assert status == 0, text
    assert f"start controller {follower} with the present configuration" in text
    assert "then start broker 3 in KRaft mode" in text
    assert "2 of 3 controllers run" in text


def test_a_broker_that_is_gone_is_unregistered_once_nobody_needs_it_and_registers_anew(alone: Alone) -> None:
    spec, gone = alone.spec, alone.spec.broker(3)

    def fenced() -> bool | None:
        quorum = observe(spec, secrets=alone.lab.secrets).quorum
        found = quorum.registrations.get(3) if was_read(quorum) else None
        return found.fenced if found else None

    def take_out() -> bool:
        return bool(unregister(run_on(Cluster(spec, alone.lab.secrets, print), broker=3))["changed"])

    supervision.start(layout(alone.lab.spec), gone.service)
    by_hand.wait_until("broker 3 serves", lambda: fenced() is False)
    with pytest.raises(Refused, match="broker 3 lives: the controller has not fenced it"):
        take_out()

    def admin() -> AdminClient:
        """Made anew for each request: a broker in KRaft mode names any live broker as the controller, and a client
        that heard of broker 3 waits for broker 3.
        """
        return AdminClient({"bootstrap.servers": ",".join(spec.broker_address(spec.broker(i)) for i in (1, 2))})

    by_hand.answered(
        (client := admin()).create_topics([NewTopic("lonely", num_partitions=1, replica_assignment=[[3]])])
    )
    alone.stop(gone.service)
    by_hand.wait_until("broker 3 is fenced", lambda: fenced() is True)
    with pytest.raises(Refused, match="no other replica could lead lonely-0: what broker 3 holds"):
        take_out()
    by_hand.answered((client := admin()).delete_topics(["lonely"]))
    by_hand.wait_until("the topic is gone", lambda: "lonely" not in client.list_topics(timeout=20).topics)
    assert take_out()
    assert fenced() is None
    assert not take_out(), "the task that is run again finds nothing to do"
    supervision.start(layout(alone.lab.spec), gone.service)
    by_hand.wait_until("it has registered by itself", lambda: fenced() is False)
