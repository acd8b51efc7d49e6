"""What a step that writes the secrets would make of those on the hosts."""

from __future__ import annotations

import pytest
from observations import SPEC, WHY, Spoil, both, observation, on_host
from spoilt_clusters import WITHOUT_SECRETS

from kraft_runbook.cluster.phases import Phase
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.cluster.spec_parts import Reach
from kraft_runbook.runbook.check_results import Verdict
from kraft_runbook.runbook.host_checks import HOST_CHECKS
from kraft_runbook.runbook.secret_checks import READABLE

PAIRS = SPEC.model_copy(
    update={
        "reach": Reach(kind="ssh"),
        "brokers": tuple(b.model_copy(update={"host": f"h{b.id}"}) for b in SPEC.brokers),
        "controllers": tuple(c.model_copy(update={"host": f"h{c.id - 100}"}) for c in SPEC.controllers),
    }
)
"""A broker and a controller on each of three hosts."""
DIFFER = both(on_host(1, runs_as=1001), on_host(101, runs_as=1002), on_host(2, runs_as=1003))


@pytest.mark.parametrize(
    ("spec", "spoil", "verdict", "says"),
    [
        (
            PAIRS,
            DIFFER,
            Verdict.FAIL,
            f"node 1 runs as user 1001, node 101 runs as user 1002 on one host, and {SPEC.secrets_file} can belong to",
        ),
        (PAIRS, both(on_host(1, runs_as=1001), on_host(101, runs_as=1001), on_host(2, runs_as=1003)), Verdict.PASS, ""),
        (PAIRS, both(on_host(1, runs_as=1001), on_host(101, runs_as=None)), Verdict.PASS, ""),
        (PAIRS, both(on_host(1, runs_as=1001), on_host(101, runs_as=WHY)), Verdict.UNKNOWN, "node 101"),
        (WITHOUT_SECRETS, DIFFER, Verdict.PASS, ""),
    ],
)
def test_services_of_one_host_share_the_secrets_file_so_they_run_as_one_user(
    spec: ClusterSpec, spoil: Spoil, verdict: Verdict, says: str
) -> None:
    told = HOST_CHECKS[READABLE].run(spoil(observation(Phase.ZOOKEEPER)), spec)
    assert told.verdict is verdict and says in told.evidence
