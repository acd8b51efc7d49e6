"""What a step that writes the secrets would make of those on the hosts."""

from __future__ import annotations

import pytest
from observations import SPEC, WHY, Spoil, a_controller, both, observation, on_host
from spoilt_clusters import WITHOUT_SECRETS

from kraft_runbook.cluster.phases import Phase
from kraft_runbook.cluster.secrets_seen import SecretsSeen
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.cluster.spec_parts import Reach
from kraft_runbook.cluster.stores import StoreSeen
from kraft_runbook.cluster.unread import Unread
from kraft_runbook.quorum.care import care_for
from kraft_runbook.quorum.care_rules import Care
from kraft_runbook.restart.files import Files
from kraft_runbook.restart.operation import restarts_with
from kraft_runbook.runbook.check_results import Verdict
from kraft_runbook.runbook.host_checks import HOST_CHECKS
from kraft_runbook.runbook.operation import Operation
from kraft_runbook.runbook.secret_checks import CODES, READABLE, STORES_OPEN, THE_SAME
from kraft_runbook.software.operation import SOFTWARE

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


@pytest.mark.parametrize(
    ("operation", "asked"),
    [
        (SOFTWARE, CODES),
        (restarts_with(Files.ADDRESSES), CODES),
        (restarts_with(Files.AS_THEY_ARE), (READABLE,)),
        (care_for(Care.LOST_DISK), CODES),
        (care_for(Care.ADD), CODES),
        (care_for(Care.LEADERSHIP), (READABLE,)),
        (care_for(Care.REMOVE), (READABLE,)),
    ],
)
def test_each_operation_that_writes_the_secrets_compares_them_first(
    operation: Operation, asked: tuple[str, ...]
) -> None:
    assert {each for each in operation.checks if each in CODES} == {*asked}


def holding(**of_key: bool | Unread) -> SecretsSeen:
    return SecretsSeen(as_on_host={key.replace("__", "."): same for key, same in of_key.items()})


def test_a_running_controllers_file_is_compared_too() -> None:
    spoil = both(*(on_host(i, secrets=holding(ssl__key__password=False)) for i in (2, 101, 102)))
    seen = a_controller(102, running=False)(spoil(observation(Phase.DUAL_WRITE)))
    told = HOST_CHECKS[THE_SAME].run(seen, SPEC)
    assert told.verdict is Verdict.FAIL
    hosts = f"{SPEC.broker(2).host}, {SPEC.controller(101).host}"
    assert told.evidence == f"ssl.key.password of broker 2, controller 101 ({hosts}) has another value in its file"


def test_once_the_migration_is_final_nothing_of_zookeepers_is_looked_at() -> None:
    store = StoreSeen("zookeeper.ssl.keystore.location", "/z.p12", wrong="it is not there")
    spoil = both(
        on_host(2, secrets=holding(zookeeper__ssl__keystore__password=WHY, password__encoder__secret=WHY)),
        on_host(2, stores=(store,)),
    )
    for phase, verdicts in (
        (Phase.DUAL_WRITE, (Verdict.UNKNOWN, Verdict.FAIL)),
        (Phase.FINALIZED, (Verdict.PASS, Verdict.PASS)),
    ):
        seen = spoil(observation(phase))
        assert tuple(HOST_CHECKS[each].run(seen, SPEC).verdict for each in (THE_SAME, STORES_OPEN)) == verdicts
