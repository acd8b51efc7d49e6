"""Steps of a comparison that need neither a cluster nor Spark."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from test_sources import no_secret, spec

from kraft_runbook.clients.metadata_quorum import QuorumDescription
from kraft_runbook.observation import MigrationZnode
from kraft_runbook.spark import parity, parity_job
from kraft_runbook.spark.findings import Findings
from kraft_runbook.spark.source_options import Sealed


def alive(offsets: list[int], monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is found when /migration, read again and again, has these offsets (the last one for ever); the comparison began at 5."""
    reads = iter(offsets)
    last = [offsets[0]]

    def read(_: object) -> MigrationZnode:
        last[0] = next(reads, last[0])
        return MigrationZnode(last[0], 101, 1, 1)

    monkeypatch.setattr(parity, "read_migration", read)
    monkeypatch.setattr(parity, "describe_quorum", lambda *_, **__: QuorumDescription(101, 1, 900, ()))
    monkeypatch.setattr(parity, "STANDSTILL", 0.3)
    found = Findings(datetime.now(UTC), start=5)
    parity._is_alive(found, Sealed(spec(), b"salt", {}))
    return [each.problem for each in found.obstacles]


def test_a_frozen_migration_offset_withholds_the_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    (problem,) = alive([5], monkeypatch)
    assert problem == "dual write stands still: /migration stays at offset 5 while the metadata log has reached 899"


def test_an_offset_that_moves_is_alive(monkeypatch: pytest.MonkeyPatch) -> None:
    assert alive([5, 5, 6], monkeypatch) == []


def test_controllers_that_do_not_answer_make_it_inconclusive_with_the_way_out() -> None:
    report = parity.run_parity(spec(), secrets=no_secret)
    assert report.verdict == "INCONCLUSIVE"
    assert "controller 101 at 127.0.0.1:4 did not answer" in report.summary
    assert "start the controllers" in report.obstacles[0].way_out


def test_an_unknown_cluster_ends_the_job_with_exit_code_3(tmp_path: object, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--cluster", "nope", "--clusters-dir", str(tmp_path), "--output", f"{tmp_path}/report.json"]
    assert parity_job.main(arguments) == 3
    assert "no cluster named 'nope'" in capsys.readouterr().err
