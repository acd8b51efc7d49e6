"""The preview of a level's change where nodes do not answer. The quorum's leader is a fake that accepts."""

from __future__ import annotations

from dataclasses import replace

import pytest
from feature_looks import in_log, kafka3, kafka4, look, registered
from observations import SPEC

from kraft_runbook.cluster.feature_levels import METADATA_VERSION, Answer
from kraft_runbook.cluster.observation import Unread
from kraft_runbook.errors import Refused
from kraft_runbook.procedures import preview_levels
from kraft_runbook.procedures.preview_levels import preview_change

DOWN = Unread("broker 3 at b3:9092 did not answer")


@pytest.fixture(autouse=True)
def leader_accepts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preview_levels, "update_feature", lambda *_, **__: Answer(0, "", {}, True))


def nobody(*_: object, **__: object) -> str:
    raise AssertionError("no secret is asked for")


def test_a_broker_that_is_down_stands_in_the_way_with_what_it_registered_with() -> None:
    seen = look(kafka4())
    seen = replace(seen, brokers={**seen.brokers, 3: DOWN})
    seen = in_log(seen, brokers={1: registered(1, kafka4()), 2: registered(2, kafka4()), 3: registered(3, kafka3())})
    preview = preview_change(SPEC, seen, METADATA_VERSION, "22", secrets=nobody)  # type: ignore[arg-type]
    said = preview.render_text()
    assert not preview.may_go and preview.answer is not None and preview.answer.accepted
    assert "metadata.version 21 -> 22 (4.0-IV0), by the table of Kafka 4.1.1" in said
    assert f"broker 3 could not be asked: {DOWN.reason}" in said
    assert "broker 3 is registered, not running, supports metadata.version 1-21, not 22. Start it" in said


def test_where_no_node_answers_nothing_is_planned() -> None:
    seen = look(kafka4())
    silent = replace(seen, brokers=dict.fromkeys(seen.brokers, DOWN), controllers=dict.fromkeys(seen.controllers, DOWN))
    with pytest.raises(Refused, match="could not be asked"):
        preview_change(SPEC, silent, METADATA_VERSION, "22", secrets=nobody)  # type: ignore[arg-type]
