"""The picture of a plan, as Airflow's API server gives it to the page of a gate."""

from __future__ import annotations

from pathlib import Path

import pytest
from fastapi import HTTPException
from fastapi.testclient import TestClient

from kraft_runbook.io.private_file import write_private
from kraft_runbook.steps.reassignment.files import RunFiles, files_of_all
from kraft_runbook_airflow.base.journal import run_file_name
from kraft_runbook_airflow.reassignment.pictures import PREFIX, _application, _picture, picture_url

DAG, RUN = "reassign_partitions__lab", "manual__2026-01-02T03:04:05+00:00"
DIGEST = "ab12" * 16


@pytest.fixture(autouse=True)
def drawn(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("KRAFT_RUNBOOK_STATE", str(tmp_path))
    files = RunFiles(files_of_all(tmp_path) / run_file_name(DAG, RUN))
    write_private(files.picture(DIGEST), "<svg/>")
    write_private(files.picture(DIGEST, narrow=True), "<svg id='n'/>")


def test_nobody_sees_a_picture_who_has_not_logged_in() -> None:
    url = picture_url(DAG, RUN, DIGEST)
    assert url.startswith(f"{PREFIX}/reassignments/{DAG}/manual__2026-01-02T03%3A04%3A05%2B00%3A00/")
    assert TestClient(_application()).get(url.removeprefix(PREFIX)).status_code == 401


def test_a_picture_is_an_image_in_which_nothing_is_run() -> None:
    answer = _picture(DAG, RUN, DIGEST)
    assert (answer.body, answer.media_type) == (b"<svg/>", "image/svg+xml")
    assert _picture(DAG, RUN, DIGEST, narrow=True).body == b"<svg id='n'/>"
    assert "default-src 'none'" in answer.headers["content-security-policy"]


@pytest.mark.parametrize("digest", ["cd34" * 16, "../../saved", "..", "ä" * 16])
def test_of_another_plan_there_is_no_picture_and_no_other_file_is_read(digest: str) -> None:
    with pytest.raises(HTTPException) as error:
        _picture(DAG, RUN, digest)
    assert error.value.status_code == 404
