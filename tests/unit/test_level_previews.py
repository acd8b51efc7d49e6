"""The preview of a level's change where nodes do not answer. The quorum's leader is a fake that accepts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from feature_looks import in_log, kafka3, kafka4, look, registered
from observations import SPEC, nobody

from kraft_runbook.cluster.feature_levels import (
    METADATA_VERSION,
    Answer,
    FeatureObservation,
    FeatureTable,
    Level,
    Range,
    SoftwareLevels,
)
from kraft_runbook.cluster.observation import Unread
from kraft_runbook.errors import Refused
from kraft_runbook.levels.overview import overview
from kraft_runbook.levels.preview import Preview
from kraft_runbook.procedures.preview_levels import preview_change

DOWN = Unread("broker 3 at b3:9092 did not answer")


def preview_of(seen: FeatureObservation, wanted: str, feature: str = METADATA_VERSION) -> Preview:
    """Of a leader that accepts it."""
    accepts = Answer(0, "", {})
    secrets: Any = nobody
    return preview_change(SPEC, seen, feature, wanted, secrets=secrets, ask=lambda *_, **__: accepts)


def test_a_broker_that_is_down_stands_in_the_way_with_what_it_registered_with() -> None:
    seen = look(kafka4())
    seen = replace(seen, brokers={**seen.brokers, 3: DOWN})
    seen = in_log(seen, brokers={1: registered(1, kafka4()), 2: registered(2, kafka4()), 3: registered(3, kafka3())})
    preview = preview_of(seen, "22")
    said = preview.render_text()
    assert not preview.may_go and preview.answer is not None and preview.answer.accepted
    assert "metadata.version 21 -> 22 (4.0-IV0), by the table of Kafka 4.1.1" in said
    assert f"broker 3 could not be asked: {DOWN.reason}" in said
    assert "broker 3 is registered, not running, supports metadata.version 1-21, not 22. Start it" in said


def test_where_no_node_answers_nothing_is_planned() -> None:
    seen = look(kafka4())
    silent = replace(seen, brokers=dict.fromkeys(seen.brokers, DOWN), controllers=dict.fromkeys(seen.controllers, DOWN))
    with pytest.raises(Refused, match="could not be asked"):
        preview_of(silent, "22")


# -- a level whose records this tool can't read -----------------------------------------------------------------------

LATER = "9.9.9"


def later(records: dict[str, int] | Unread) -> SoftwareLevels:
    """A Kafka that is newer than this tool: two levels more than it knows, the first of which changes metadata."""
    table = kafka4().features[METADATA_VERSION]
    more = [Level(at, f"{at}-IV", "9.9", at == 34) for at in range(table.levels[-1].number + 1, 36)]
    features = {
        **kafka4().features,
        METADATA_VERSION: FeatureTable(Range(7, 35), (*table.levels, *more)),
    }
    return SoftwareLevels(LATER, features, records)


def read_so_far() -> dict[str, int]:
    records = kafka4().records
    assert not isinstance(records, Unread)
    return dict(records)


def asked(software: SoftwareLevels, wanted: str, feature: str = METADATA_VERSION) -> Preview:
    return preview_of(look(software, 33), wanted, feature)


def test_a_level_whose_records_this_tool_can_t_read_is_refused_though_the_leader_accepts() -> None:
    """Measured with 29 -> 30 on 4.4.0: right after the raise this tool could read nothing of the cluster any more."""
    preview = asked(later({**read_so_far(), "RegisterBrokerRecord": 9, "AnotherRecord": 0}), "34")
    assert preview.answer is not None and preview.answer.accepted and not preview.may_go
    said = preview.render_text()
    assert "metadata.version 34 is beyond what this tool knows (Kafka up to 4.4)" in said
    assert "Kafka 9.9.9 has records that it can't read: AnotherRecord, RegisterBrokerRecord version 9" in said
    assert "Use a release of this tool that knows Kafka 9.9.9; until then stay at 33 or below." in said
    assert "34 34-IV, which this tool does not know *" in said


def test_records_that_were_not_read_are_no_records_that_are_known() -> None:
    (found,) = asked(later(Unread("no such jar")), "34").obstacles
    assert found.unknown and "which records it writes was not read: no such jar" in found.problem


def test_a_later_level_that_brings_no_record_may_be_had_and_one_that_is_known_asks_nothing() -> None:
    assert asked(later(read_so_far()), "34").may_go
    of_4 = look(replace(kafka4(), records=Unread("no such jar")), 21)
    assert preview_of(of_4, "27").may_go


def test_another_feature_of_a_later_kafka_is_refused_too_where_a_record_is_not_known() -> None:
    unknown = later({**read_so_far(), "AnotherRecord": 0})
    (found,) = asked(unknown, "1", "group.version").obstacles
    assert "group.version 1 is beyond what this tool knows" in found.problem and "leave it as it is" in found.way_out


def test_where_the_log_can_t_be_read_the_way_out_is_that_of_whoever_could_not() -> None:
    why = Unread("no Kafka up to 4.4 writes it", way_out="use a release of this tool that knows it")
    with pytest.raises(Refused) as told:
        preview_of(replace(look(kafka4()), log=why), "22")
    assert told.value.way_out == why.way_out


def test_a_level_beyond_what_this_tool_knows_is_named_as_such() -> None:
    assert any(
        "metadata.version 35 is beyond what this tool knows (up to 33)" in each
        for each in overview(look(later(read_so_far()), 35)).findings
    )
