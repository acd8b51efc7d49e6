"""A cluster with TLS, logins and ACLs everywhere, by the DAGs of a real Airflow: into dual write, back to ZooKeeper,
forward again and to its end, under one workload. On the brokers this tool is a user with the rights that read, as the
table has them, and no other; on the controllers it is a super user, since they know no ACL before the copy.
"""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from labs import Lab
from rights_asked import Grants, remove_what_everybody_may, write_limited_cluster_file
from stage import MIGRATION, ROLLBACK, Stage, a_stage, at_work

from kraft_runbook.cluster.phases import Phase, detect_phase
from kraft_runbook.procedures.observe import observe
from kraft_runbook.runbook.rights import acls

pytestmark = [pytest.mark.long, pytest.mark.timeout(3600)]


@pytest.fixture(scope="module")
def stage(secured: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    clusters = write_limited_cluster_file(tmp_path_factory.mktemp("clusters"))
    remove_what_everybody_may(secured)
    Grants(secured).only(acls(changes=False))
    with a_stage(secured, tmp_path_factory.mktemp("airflow"), clusters=clusters) as opened:
        yield opened


def phase(lab: Lab) -> Phase:
    return detect_phase(observe(lab.spec, secrets=lab.secrets)).phase


def answer(stage: Stage, run_id: str, gate: str, word: str, *, seen: Phase | None = None) -> None:
    stage.wait(MIGRATION, run_id, gate, {"awaiting_input"})
    assert seen is None or phase(stage.lab) is seen
    stage.client.answer(MIGRATION, run_id, gate, word)


def test_a_secured_cluster_goes_forward_back_forward_and_to_its_end(stage: Stage, tmp_path: Path) -> None:
    lab, report = stage.lab, tmp_path / "account.json"
    with at_work(lab, report) as workload:
        first = stage.start(MIGRATION, soak_minutes=0.1)
        for gate in ("start", "dual_write"):
            answer(stage, first, f"gate_{gate}.approve", "Approve")
        answer(stage, first, "gate_finalize.approve", "Reject", seen=Phase.DUAL_WRITE)
        assert stage.run_to_its_end(MIGRATION, first) == "failed"
        back = stage.start(ROLLBACK)
        assert stage.run_to_its_end(ROLLBACK, back) == "success", stage.failures(ROLLBACK, back)
        assert phase(lab) is Phase.ZOOKEEPER
        again = stage.start(MIGRATION, soak_minutes=0.1)
        assert stage.run_to_its_end(MIGRATION, again) == "success", stage.failures(MIGRATION, again)
        workload.send_signal(signal.SIGTERM)
        assert workload.wait(timeout=180) == 0
    assert phase(lab) is Phase.FINALIZED
    account = json.loads(report.read_text())
    print(f"the workload: {account}")
    assert account["acknowledged"] > 0
    assert (account["lost"], account["duplicated"]) == (0, 0)
    no_secret_is_in_what_airflow_keeps(stage)


def no_secret_is_in_what_airflow_keeps(stage: Stage) -> None:
    secrets = [v.encode() for k, v in stage.lab.environment.items() if k.endswith(("_PASSWORD", "_SECRET", "_LOGIN"))]
    assert len(secrets) >= 6
    leaks = [str(f) for f in stage.airflow.home.rglob("*") if f.is_file() and any(s in f.read_bytes() for s in secrets)]
    assert leaks == []
