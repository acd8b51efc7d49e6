"""Two runs that change one cluster, whichever DAGs they are, in a real Airflow."""

from __future__ import annotations

ENDED = {"success", "failed"}


def test_a_second_run_is_refused_by_name_until_the_first_has_ended(scene):
    first = scene.start("claim_forward")
    assert scene.wait("claim_forward", first, "claim", ENDED) == "success"
    second = scene.start("claim_back")
    assert scene.wait("claim_back", second, "claim", ENDED) == "failed"
    assert f"run {first} of claim_forward" in scene.log("claim_back", second, "claim")

    assert scene.wait("claim_forward", first, "hold", ENDED) == "failed"
    scene.until_ended("claim_forward", first)
    third = scene.start("claim_back")
    assert scene.wait("claim_back", third, "claim", ENDED) == "success"
    scene.wait("claim_back", third, "hold", ENDED)


def test_the_claim_of_a_run_that_succeeded_is_free(scene):
    for _ in range(2):
        run_id = scene.start("claim_brief")
        assert scene.wait("claim_brief", run_id, "claim", ENDED) == "success"
        scene.until_ended("claim_brief", run_id)
