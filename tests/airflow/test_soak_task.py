"""What the soak makes of its watch: it ends on what broke, compares after each stretch, and ends well only behind its
time.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from acted import FORWARD, Acted
from airflow.sdk.exceptions import AirflowFailException, TaskDeferred
from observations import observation

from kraft_runbook.cluster.phases import Phase


class Soak:
    """``compared``: whether each comparison may be the last."""

    def __init__(self, acted: Acted, monkeypatch: pytest.MonkeyPatch) -> None:
        self._acted, self.compared = acted, list[bool]()
        task = acted.dags[FORWARD].get_task("soak")

        def compare(soak: Any, *_: Any) -> dict[str, Any]:
            self.compared.append(soak.is_final())
            return {"verdict": "MATCH", "final": soak.is_final()}

        monkeypatch.setattr(type(task), "compare", compare)

    def come_back(self, event: dict[str, Any], left: float) -> Any:
        """The watch ended, so many seconds before the soak's end."""
        ends_at = datetime.now(UTC) + timedelta(seconds=left)
        return self._acted.resume("soak", event, method="after_watch", ends_at=ends_at.isoformat())


@pytest.fixture
def acted(acted: Acted) -> Acted:
    acted.begin()
    acted.seen = observation(Phase.DUAL_WRITE)
    return acted


@pytest.fixture
def soak(acted: Acted, monkeypatch: pytest.MonkeyPatch) -> Soak:
    return Soak(acted, monkeypatch)


def test_it_begins_in_the_triggerer(acted: Acted, soak: Soak) -> None:
    with pytest.raises(TaskDeferred):
        acted.run("soak", soak_minutes=10)
    assert soak.compared == []


@pytest.mark.parametrize("left", [600, -1])
def test_what_the_watch_found_fails_it_and_nothing_is_compared(acted: Acted, soak: Soak, left: float) -> None:
    with pytest.raises(AirflowFailException, match="the soak found the cluster unhealthy: KRB-DW-001"):
        soak.come_back({"broken": "KRB-DW-001 ZooKeeper is no longer written"}, left)
    assert soak.compared == []
    assert acted.outcomes("soak") == ["failed"]


def test_before_its_end_it_compares_and_watches_on(soak: Soak) -> None:
    with pytest.raises(TaskDeferred):
        soak.come_back({"broken": None}, 600)
    assert soak.compared == [False]


def test_the_comparison_behind_its_end_is_the_last(soak: Soak) -> None:
    assert soak.come_back({"broken": None}, -1)["final"] is True
    assert soak.compared == [True]


def test_a_finalized_cluster_has_nothing_left_to_soak(acted: Acted, soak: Soak) -> None:
    acted.seen = observation(Phase.FINALIZED)
    assert acted.run("soak", soak_minutes=10) is None


def test_a_rehearsal_waits_for_nothing(acted: Acted, soak: Soak) -> None:
    assert acted.run("soak", soak_minutes=10, dry_run=True) is None
