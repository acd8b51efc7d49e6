"""Whether systemd gives each node the time that a clean stop may take."""

from __future__ import annotations

import pytest
from observations import SPEC, WHY, Spoil, observation, on_host
from spoilt_clusters import spec_with

from kraft_runbook.cluster.phases import Phase
from kraft_runbook.cluster.spec_parts import ServiceManager
from kraft_runbook.runbook.check_results import Verdict
from kraft_runbook.runbook.host_checks import HOST_CHECKS as CHECKS

UNDER_SYSTEMD = spec_with(service_manager=ServiceManager(kind="systemd", stop_timeout=330))


@pytest.mark.parametrize(
    ("spoil", "verdict", "says"),
    [
        (on_host(2, stop_seconds=330.0), Verdict.PASS, "330 s or more on each"),
        (on_host(2, stop_seconds=None), Verdict.PASS, ""),
        (on_host(2, stop_seconds=90.0), Verdict.FAIL, "node 2: systemd kills after 90 s, and a stop may take 330 s"),
        (on_host(2, stop_seconds=WHY), Verdict.UNKNOWN, "node 2"),
    ],
)
def test_a_unit_that_is_killed_too_early_is_named(spoil: Spoil, verdict: Verdict, says: str) -> None:
    seen = spoil(observation(Phase.ZOOKEEPER))
    found = CHECKS["KRB-PRE-126"].run(seen, UNDER_SYSTEMD)
    assert found.verdict is verdict and says in found.evidence and not found.blocks


def test_of_supervisor_it_is_said_that_it_is_not_checked() -> None:
    found = CHECKS["KRB-PRE-126"].run(on_host(2, stop_seconds=None)(observation(Phase.ZOOKEEPER)), SPEC)
    assert found.verdict is Verdict.PASS and "not checked" in found.evidence
