"""Steps of a comparison that need neither a cluster nor Spark."""

from __future__ import annotations

import pytest
from test_workers import no_secret, spec

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
