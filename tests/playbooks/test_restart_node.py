"""The restart of a node with the files that it has: only where its process is older than a moment or its files, and in
a migration only while every controller has the flag.
"""

from __future__ import annotations

import subprocess
import sys
import textwrap
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from stand_in_node import Node
from test_restart import PORT_NOT_OPEN, kill_at

from kraft_runbook.cluster.node_properties import broker_properties
from kraft_runbook.cluster.observation import BrokerMode, ControllerMode
from kraft_runbook.cluster.phases import Phase
from kraft_runbook.errors import Refused, StepFailed
from kraft_runbook.io.hosts.migration_guard import guarded_controllers
from kraft_runbook.io.hosts.playbooks import PlaybookResult, play
from kraft_runbook.restart.plays import restart_node

STOP, START = (
    "Stop the service if its process is older than this run or its files",
    "Start the service if it does not run, and wait for its port",
)


def restart(
    node: Node,
    node_id: int = 1,
    phase: Phase = Phase.FINALIZED,
    *,
    older_than: float | None,
    check: bool = False,
    **how: Any,
) -> PlaybookResult:
    what = restart_node(node_id, phase, older_than=older_than)
    return play(node.spec, what, secrets=lambda _: "", check=check, **how)


def test_a_process_that_began_before_the_moment_is_restarted_once(node: Node) -> None:
    node.run_broker()
    before, moment = node.files(), time.time()
    first = restart(node, older_than=moment)
    assert first.changed == (STOP, START) and first.restarted
    pid = node.pid()
    again = restart(node, older_than=moment)
    assert again.changed == () and not again.restarted
    assert node.pid() == pid and len(node.starts()) == 2
    files = node.files()
    assert {path: files[path] for path in before} == before, "it runs with the files that it had"


def test_a_process_that_began_after_the_moment_is_left_alone(node: Node) -> None:
    moment = time.time() - 60  # a run's steps come some time after its beginning
    node.run_broker()
    pid = node.pid()
    assert restart(node, older_than=moment).changed == ()
    assert node.pid() == pid


def test_a_younger_process_is_restarted_where_a_file_changed_since_it_began(node: Node) -> None:
    moment = time.time()
    node.run_broker()
    Path(node.spec.broker(1).config_file).touch()
    assert restart(node, older_than=moment).changed == (STOP, START)
    assert restart(node, older_than=moment).changed == ()


def test_a_node_that_is_down_is_started(node: Node) -> None:
    node.run_broker()
    node.control("stop", "broker-1")
    result = restart(node, older_than=time.time())
    assert result.changed == (START,) and not result.restarted
    assert len(node.starts()) == 2


def test_a_rehearsal_says_that_it_would_be_restarted_and_restarts_nothing(node: Node) -> None:
    node.run_broker()
    before, pid = node.files(), node.pid()
    result = restart(node, older_than=None, check=True)
    assert result.changed == (STOP, START) and result.restarted
    assert node.files() == before and node.pid() == pid


@pytest.mark.long
@pytest.mark.parametrize("startsecs", [1])
def test_one_that_does_not_come_back_is_named_and_started_by_the_next_run(node: Node) -> None:
    """Every day: test_restart.py, for the module is the same."""
    node.run_broker()
    moment = time.time()
    node.behave("exit=3")
    with pytest.raises(StepFailed, match="broker-1 does not stay up") as failed:
        restart(node, older_than=moment)
    assert "told to exit" in failed.value.problem and "hunter2" not in str(failed.value)
    node.behave("")
    assert restart(node, older_than=moment).changed == (START,)
    assert restart(node, older_than=moment).changed == ()


# -- in a migration ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("node_id", "phase"),
    [(1, Phase.PRE_MIGRATION), (1, Phase.DUAL_WRITE), (101, Phase.HYBRID)],
    ids=["a broker before the copy", "a broker after it", "the controller itself"],
)
def test_nothing_is_stopped_while_a_controller_s_file_lacks_the_flag(node: Node, node_id: int, phase: Phase) -> None:
    node.run_broker()
    node.configure_controller(zookeeper__metadata__migration__enable=None)
    before, pid = node.files(), node.pid()
    with pytest.raises(Refused, match=r"was refused before any change: .*controller 101") as refused:
        restart(node, node_id, phase, older_than=time.time())
    assert "zookeeper.metadata.migration.enable is missing" in refused.value.problem and refused.value.way_out
    assert node.files() == before and node.pid() == pid


def test_nothing_is_stopped_while_a_controller_s_process_lacks_the_flag(node: Node) -> None:
    node.run_broker()
    node.configure_controller()
    guard = partial(guarded_controllers, mode_of=lambda *_, **__: ControllerMode.KRAFT)
    pid = node.pid()
    with pytest.raises(Refused, match="controller 101 runs without the migration flag"):
        restart(node, 1, Phase.DUAL_WRITE, older_than=time.time(), guarded_by=guard)
    assert node.pid() == pid


def test_a_controller_whose_restart_was_killed_half_way_is_started(node: Node) -> None:
    """It is down; its file shows that it starts in migration mode."""
    node.configure_controller()
    moment = time.time()
    assert restart(node, 101, Phase.DUAL_WRITE, older_than=moment).changed == (START,)
    assert node.starts("controller-101") == ["True"]
    assert restart(node, 101, Phase.FINALIZED, older_than=moment).changed == ()


def test_after_finalization_no_controller_needs_the_flag(node: Node) -> None:
    node.run_broker()
    node.configure_controller(zookeeper__metadata__migration__enable=None)
    assert restart(node, 1, Phase.FINALIZED, older_than=time.time()).changed == (STOP, START)


# -- interruptions -----------------------------------------------------------------------------------------------------


def run_elsewhere(node: Node, moment: float) -> subprocess.Popen[str]:
    """The same in another process, which prints each line of news."""
    (node.directory / "cluster.yaml").write_text(node.text)
    program = textwrap.dedent(f"""
        from pathlib import Path
        from kraft_runbook.cluster.cluster_file import parse_cluster
        from kraft_runbook.cluster.phases import Phase
        from kraft_runbook.io.hosts.playbooks import play
        from kraft_runbook.restart.plays import restart_node
        spec = parse_cluster(Path({str(node.directory / "cluster.yaml")!r}).read_text(), source="x", environment={{}})
        def tell(line): print(line, flush=True)
        play(spec, restart_node(1, Phase.FINALIZED, older_than={moment!r}), secrets=lambda _: "", on_event=tell)
    """)
    return subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)


MOMENTS = [
    (": stopped", True),
    (PORT_NOT_OPEN, True),
    (": stop the service", False),
    (": stop the service", True),
    (": start the service", True),
]


@pytest.mark.long
@pytest.mark.parametrize(
    ("moment", "whole_tree"),
    MOMENTS,
    ids=lambda given: given if isinstance(given, str) else "all-killed" if given else "orphaned",
)
def test_killed_at_any_moment_and_run_again_the_node_is_restarted_once(
    node: Node, moment: str, whole_tree: bool
) -> None:
    """Every day: test_restart.py, which kills the same module, and the tests above of a node that is down."""
    node.behave("stop=0.7 open=0.7")
    node.run_broker()
    began = time.time()
    kill_at(node, run_elsewhere(node, began), moment, whole_tree)
    restart(node, older_than=began)
    time.sleep(1.0)  # an orphan's last task would act now
    assert len(node.starts()) == 2
    assert restart(node, older_than=began).changed == ()


@pytest.mark.long
def test_two_runs_at_once_restart_the_node_once(node: Node) -> None:
    node.behave("stop=0.7 open=0.7")
    node.run_broker()
    began = time.time()
    other = run_elsewhere(node, began)
    restart(node, older_than=began)
    output, _ = other.communicate(timeout=60)
    assert other.returncode == 0, output
    assert len(node.starts()) == 2


def test_a_configuration_that_is_given_is_written_first_and_the_process_restarted_with_it_once(node: Node) -> None:
    node.run_broker()
    file = Path(node.spec.broker(1).config_file)
    wanted = {**broker_properties(node.spec, node.spec.broker(1), BrokerMode.KRAFT), "num.io.threads": "9"}
    what = restart_node(1, Phase.KRAFT, older_than=0.0, properties=wanted)
    first = play(node.spec, what, secrets=lambda _: "")
    assert first.restarted and "num.io.threads=9" in file.read_text().splitlines()
    pid, again = node.pid(), play(node.spec, what, secrets=lambda _: "")
    assert again.changed == () and node.pid() == pid, "the process has the file that it began with"
