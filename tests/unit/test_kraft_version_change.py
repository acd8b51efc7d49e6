"""kraft.version, which makes a static quorum a dynamic one for good: where it does something, and at which addresses
Kafka then has the voters.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from feature_looks import in_log, kafka3, kafka4, look
from observations import SPEC
from test_level_changes import ways

from kraft_runbook.cluster.feature_levels import (
    KRAFT_VERSION,
    METADATA_VERSION,
    Answer,
    FeatureObservation,
    LevelsInLog,
    NodeFeatures,
    WrittenLevel,
)
from kraft_runbook.cluster.observation import Unread
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.levels.preview import Preview
from kraft_runbook.procedures.preview_levels import preview_change


@pytest.mark.parametrize(("software", "said"), [(kafka3, "KAFKA-18979"), (kafka4, None)])
def test_kraft_version_is_refused_where_kafka_would_accept_a_record_that_does_nothing(
    software: object, said: str | None
) -> None:
    found = ways(look(software()), "1", feature="kraft.version")  # type: ignore[operator]
    assert [said in each for each in found] == ([True] if said else [])


def test_kraft_version_is_never_lowered() -> None:
    seen = look(kafka4(), levels={"kraft.version": 1})
    assert ways(seen, "0", feature="kraft.version") == [
        "kraft.version can't be lowered, by any release. Leave it as it is."
    ]


def test_the_level_of_kraft_version_is_what_the_leader_shows_and_not_a_record_of_3_9() -> None:
    """4.x keeps it in control records; 3.9 writes a FeatureLevelRecord that does nothing, and 4.1 goes over that."""
    raised, left_over = look(kafka4()), look(kafka4())
    leader = raised.controllers[101]
    assert isinstance(leader, NodeFeatures)
    shows = replace(leader, finalized={**leader.finalized, "kraft.version": 1})
    raised = replace(raised, controllers={**raised.controllers, 101: shows})
    assert (raised.level("kraft.version"), look(kafka4()).level("kraft.version")) == (1, 0)
    assert isinstance(left_over.log, LevelsInLog)
    written = (*left_over.log.written, WrittenLevel("kraft.version", 1, 40))
    assert in_log(left_over, written=written).level("kraft.version") == 0
    unread = Unread("no answer")
    assert replace(raised, controllers={**raised.controllers, 101: unread}).level("kraft.version") == unread
    assert raised.level(METADATA_VERSION) == 21


ADDRESSES = {each.id: f"CONTROLLER://{each.address}" for each in SPEC.controllers}


def previewed(
    seen: FeatureObservation, feature: str = KRAFT_VERSION, wanted: str = "1", spec: ClusterSpec = SPEC
) -> Preview:
    """By a leader that accepts it."""
    accepts = Answer(0, "", {feature: (0, "")})
    return preview_change(spec, seen, feature, wanted, secrets=lambda _: "", ask=lambda *_, **__: accepts)


def test_kraft_version_is_not_raised_while_a_controller_is_registered_at_another_address() -> None:
    """KAFKA-20380: a listener without a host is registered at the machine's own name."""
    seen = look(kafka4())
    assert previewed(seen).may_go and isinstance(seen.log, LevelsInLog)
    away = replace(seen.log.controllers[103], endpoints=("CONTROLLER://localhost:9093",))
    wrong = in_log(seen, controllers={**seen.log.controllers, 103: away})
    (found,) = previewed(wrong).obstacles
    assert "would write voter 103 into the metadata log at CONTROLLER://localhost:9093, and" in found.problem
    assert f"the cluster file has it at {ADDRESSES[103]}" in found.problem and "restart it; or" in found.way_out
    assert "if every controller reaches it there, write that host and port into the cluster file" in found.way_out
    assert previewed(wrong, METADATA_VERSION, "22").may_go, "of kraft.version alone"
    without = {i: each for i, each in seen.log.controllers.items() if i != 103}
    (found,) = previewed(in_log(seen, controllers=without)).obstacles
    assert "has not registered" in found.problem


@pytest.mark.parametrize(
    ("declared", "registered", "same"),
    [
        ("kafka-3", "KAFKA-3", True),
        ("2001:db8::4", "[2001:DB8:0:0:0:0:0:4]", True),
        ("kafka-3", "kafka-3.example.com", False),
    ],
)
def test_the_spelling_of_a_host_does_not_count(declared: str, registered: str, same: bool) -> None:
    spec = SPEC.model_copy(
        update={"controllers": tuple(each.model_copy(update={"host": declared}) for each in SPEC.controllers)}
    )
    at = (f"CONTROLLER://{registered}:{SPEC.controllers[0].port}",)
    seen = look(kafka4())
    assert isinstance(seen.log, LevelsInLog)
    seen = in_log(seen, controllers={i: replace(each, endpoints=at) for i, each in seen.log.controllers.items()})
    assert previewed(seen, spec=spec).may_go is same


def test_kraft_version_is_not_raised_where_no_controller_registers() -> None:
    (found,) = previewed(in_log(look(kafka4(), 14), controllers={})).obstacles
    assert found.unknown and "voters are not known: controllers register from metadata.version 15 on" in found.problem
    assert found.way_out == "raise metadata.version to 15 or higher first"


def test_the_addresses_that_kraft_version_writes_are_shown() -> None:
    shown = previewed(look(kafka4())).render_text()
    for node_id, address in ADDRESSES.items():
        assert f"the metadata log will have voter {node_id} at {address}" in shown
    assert "will have voter" not in previewed(look(kafka4()), METADATA_VERSION, "22").render_text()
