"""The fence's words to the run of ansible that waits for them: however it ends, it ends with one of the two, lifted or
left. Ansible is a fake that waits for the words; ports are given.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from observations import SPEC

from kraft_runbook.errors import StepFailed
from kraft_runbook.io.hosts.ansible_reports import HostReport, RunReport
from kraft_runbook.io.secrets import environment_secrets
from kraft_runbook.migration.leaving import FencePlan
from kraft_runbook.procedures.quorum_fence import FencedHosts, QuorumFence

NAMES = ("fence", "decision", "outcome")


class Hosts:
    """``answers``: the controllers whose ports are open; ``stubborn``: those that go on, whatever is said;
    ``unstoppable``: those whose host says that they can't be stopped. ``words``: what the run was told. ``back``: the
    run ends only once it is set: a host is silent till then.
    """

    def __init__(self) -> None:
        self.answers = set(SPEC.controller_ids)
        self.stubborn: set[int] = set()
        self.unstoppable: set[int] = set()
        self.words: dict[str, str] = {}
        self.gone_within = 0.2
        self.ends_within = 20.0
        self.back = threading.Event()
        self.back.set()

    def fence(self) -> QuorumFence:
        def accepts(host: str, *_: object, **__: object) -> bool:
            return self._id_at(host) in self.answers

        asked = FencedHosts(self._run, lambda *_, **__: {}, accepts, self.gone_within, self.ends_within)
        plan = FencePlan(101, (102, 103))
        return QuorumFence(SPEC, plan, secrets=environment_secrets({}), tell=lambda _: None, hosts=asked)

    def _id_at(self, host: str) -> int:
        return next(c.id for c in SPEC.controllers if c.host == host)

    def _run(
        self,
        _: Path,
        inventory: Mapping[str, Mapping[str, Any]],
        *,
        tell: Callable[[str], None],
        on_failure: Callable[[str, str], None],
        **__: Any,
    ) -> RunReport:
        place = Path(next(iter(inventory.values()))["words"])
        for name in inventory:
            tell(f"{name.replace('-', ' ')}: ready")
        stops = {"fence": ("fenced", "fence"), "decision": ("active", "leave")}
        failures: dict[str, HostReport] = {}
        for name in NAMES:
            word = self._await(place / name)
            if word is None:
                break
            self.words[name] = word
            part, means = stops.get(name, ("", ""))
            for host, given in inventory.items():
                node = int(host.rpartition("-")[2])
                if word == means and given["part"] == part:
                    if node in self.unstoppable:
                        on_failure(host, "permission denied")
                        failures[host] = HostReport(failure=("Fence the quorum", "permission denied", None))
                    elif node not in self.stubborn:
                        self.answers.discard(node)
            if word in ("do not", "lift", "nothing to decide"):
                if word == "lift":
                    self.answers |= set(SPEC.controller_ids)
                break
        assert self.back.wait(20)
        reports = {name: failures.get(name, HostReport(ok=1)) for name in inventory}
        return RunReport("failed" if failures else "successful", reports, "")

    def _await(self, file: Path) -> str | None:
        ends = time.monotonic() + 5
        while not file.exists():
            if time.monotonic() > ends:
                return None
            time.sleep(0.001)
        time.sleep(0.002)
        return file.read_text()


@pytest.fixture
def hosts() -> Hosts:
    return Hosts()


def test_it_stops_the_others_then_the_active_one_and_lets_nobody_return(hosts: Hosts) -> None:
    with hosts.fence() as raised:
        raised.ready()
        raised.raise_it()
        assert hosts.answers == {101}
        raised.leave()
        assert hosts.answers == set()
        raised.nobody_may_return()
        raised.finish()
    assert hosts.words == {"fence": "fence", "decision": "leave", "outcome": "done"}


def test_what_goes_wrong_before_it_is_raised_stops_nothing(hosts: Hosts) -> None:
    with pytest.raises(ValueError, match="the brokers"), hosts.fence() as raised:
        raised.ready()
        raise ValueError("the brokers did not catch up")
    assert hosts.words["fence"] == "do not"
    assert hosts.answers == {101, 102, 103}


def test_what_goes_wrong_inside_lifts_it(hosts: Hosts) -> None:
    with pytest.raises(ValueError, match="a key differs"), hosts.fence() as raised:
        raised.ready()
        raised.raise_it()
        raise ValueError("a key differs")
    assert hosts.words == {"fence": "fence", "decision": "lift"}
    assert hosts.answers == {101, 102, 103}


def test_what_goes_wrong_behind_the_stop_lifts_it_as_long_as_nothing_can_have_been_deleted(hosts: Hosts) -> None:
    with pytest.raises(ValueError, match="it moved"), hosts.fence() as raised:
        raised.raise_it()
        raised.leave()
        raise ValueError("it moved")
    assert hosts.words["outcome"] == "lift"


@pytest.mark.parametrize(("settled", "outcome"), [(True, "done"), (False, "lift")])
def test_once_it_may_be_deleted_nobody_returns_unless_it_is_known_that_nothing_was(
    hosts: Hosts, settled: bool, outcome: str
) -> None:
    with pytest.raises(ValueError, match="the connection"), hosts.fence() as raised:
        raised.raise_it()
        raised.leave()
        raised.nobody_may_return()
        if not settled:
            raised.nobody_may_return(settled=False)
        raise ValueError("the connection broke")
    assert hosts.words["outcome"] == outcome


@pytest.mark.parametrize("node", [101, 103])
def test_a_controller_that_still_answers_though_it_was_stopped_lifts_it(hosts: Hosts, node: int) -> None:
    """With it there may be a majority."""
    hosts.stubborn = {node}
    with (
        pytest.raises(StepFailed, match=f"controller {node} is not proven to be gone 0.2 s after the kill"),
        hosts.fence() as raised,
    ):
        raised.raise_it()
        raised.leave()
    assert "lift" in hosts.words.values()


def test_a_controller_whose_host_can_t_stop_it_lifts_it_at_once(hosts: Hosts) -> None:
    hosts.gone_within = 60.0
    hosts.unstoppable = {103}
    began = time.monotonic()
    with (
        pytest.raises(StepFailed, match="controller 103 could not be stopped: permission denied"),
        hosts.fence() as raised,
    ):
        raised.raise_it()
    assert time.monotonic() - began < 10
    assert hosts.words["decision"] == "lift"


def test_a_host_that_keeps_the_run_from_its_end_is_told_as_maybe_gone(hosts: Hosts) -> None:
    hosts.stubborn, hosts.ends_within = {103}, 0.2
    hosts.back.clear()
    try:
        with (
            pytest.raises(
                StepFailed, match=r"the Ansible run did not end within 0\.2 s: a controller's host may be gone"
            ),
            hosts.fence() as raised,
        ):
            raised.raise_it()
    finally:
        hosts.back.set()
