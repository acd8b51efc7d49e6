"""Sensors in a real Airflow: they live in the triggerer, say who is missing, and give up at their deadline."""

from __future__ import annotations

ENDED = {"success", "failed"}


def test_a_sensor_gives_up_at_its_deadline_and_names_who_is_missing(scene):
    run_id = scene.start("wait")
    assert scene.wait("wait", run_id, "quorum_ready", {"deferred"}) == "deferred"
    assert scene.wait("wait", run_id, "quorum_ready", ENDED) == "failed"
    log = scene.log("wait", run_id, "quorum_ready")
    assert "controller 101" in log


def test_a_dry_run_says_what_it_would_wait_for(scene):
    run_id = scene.start("wait", dry_run=True)
    assert scene.wait("wait", run_id, "quorum_ready", ENDED) == "success"
    assert "Not waiting (a dry run, or a step that this run leaves out): up to 3 s" in scene.log("wait", run_id, "quorum_ready")
