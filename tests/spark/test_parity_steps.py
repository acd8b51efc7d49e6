"""Steps of a comparison that need neither a cluster nor Spark."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from test_workers import no_secret, spec

from kraft_runbook.cluster.observation import ZkMigrationState
from kraft_runbook.errors import Unreachable
from kraft_runbook.io.kafka.metadata_quorum import QuorumDescription
from kraft_runbook.parity.spark import full_comparison, job


def test_controllers_that_do_not_answer_make_it_inconclusive_with_the_way_out() -> None:
    report = full_comparison.run_parity(spec(), secrets=no_secret)
    assert report.verdict == "INCONCLUSIVE"
    assert "controller 101 at 127.0.0.1:4 did not answer" in report.summary
    assert "start the controllers" in report.obstacles[0].way_out


def test_an_unknown_cluster_ends_the_job_with_exit_code_3(tmp_path: object, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--cluster", "nope", "--clusters-dir", str(tmp_path), "--output", f"{tmp_path}/report.json"]
    assert job.main(arguments) == 3
    assert "no cluster named 'nope'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("state", "zookeeper", "said"),
    [
        (None, False, "the cluster file names no ZooKeeper"),
        (ZkMigrationState.POST_MIGRATION, False, "the migration is finalized"),
        (ZkMigrationState.POST_MIGRATION, True, "the migration is finalized"),
        (ZkMigrationState.PRE_MIGRATION, True, "the metadata was not copied yet"),
        (ZkMigrationState.MIGRATION, True, "ZooKeeper went away"),
        (Unreachable("nobody leads", way_out=""), True, "ZooKeeper went away"),
    ],
)
def test_where_the_first_m_can_not_be_had_the_log_may_know_the_better_reason(
    monkeypatch: pytest.MonkeyPatch, state: ZkMigrationState | Unreachable | None, zookeeper: bool, said: str
) -> None:
    def read_cluster_records(*_: object, **__: object) -> object:
        if isinstance(state, Unreachable):
            raise state
        return SimpleNamespace(migration_state_record=state)

    def gone(*_: object, **__: object) -> object:
        raise Unreachable("ZooKeeper went away", way_out="bring it back")

    monkeypatch.setattr(full_comparison, "describe_elected", lambda *_, **__: QuorumDescription(101, 1, 9, ()))
    monkeypatch.setattr(full_comparison, "read_cluster_records", read_cluster_records)
    monkeypatch.setattr(full_comparison, "ZookeeperReader", gone)
    described = spec() if zookeeper else spec().model_copy(update={"zookeeper": None})
    report = full_comparison.run_parity(described, secrets=no_secret)
    assert report.verdict == "INCONCLUSIVE"
    assert report.summary.startswith(f"INCONCLUSIVE: {said}")
