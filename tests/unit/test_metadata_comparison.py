"""The argument: each znode's value is one that the log gave its key at M or later. And what the report makes of it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraft_runbook.metadata import canonical_rows
from kraft_runbook.metadata.canonical_rows import Kind, Row
from kraft_runbook.metadata.image.log_replay import Version
from kraft_runbook.parity.comparison import (
    Comparison,
    Difference,
    Obstacle,
    ParityReport,
    Verdict,
    compare,
    make_report,
)
from kraft_runbook.parity.second_look import keys_in_question, look_again

CONFIG = canonical_rows.topic_config("a", "retention.ms", "1")


def versions(row: Row, *values: object, start: int = 100) -> list[Version]:
    """The values that a key had, oldest first."""
    found = [
        Version(
            row.kind, row.key, None if v is None else canonical_rows.canonical(v), start + at, at == len(values) - 1
        )
        for at, v in enumerate(values)
    ]
    return found[::-1]


def with_value(value: object) -> Row:
    return replace(CONFIG, value=canonical_rows.canonical(value))


@pytest.mark.parametrize("zookeeper", ["1", "2", "3"])
def test_a_touched_key_may_have_any_of_its_values_since_m(zookeeper: str) -> None:
    found = compare([with_value(zookeeper)], versions(CONFIG, "1", "2", "3"))
    assert found == Comparison(Counter({Kind.TOPIC_CONFIG: 1}))


def test_a_touched_key_may_not_have_any_other_value() -> None:
    (difference,) = compare([with_value("0")], versions(CONFIG, "1", "2", "3")).differences
    assert (difference.side, difference.zookeeper, difference.kraft) == ("differ", '"0"', '"3"')


def test_a_key_made_after_m_may_be_missing_in_zookeeper_and_one_removed_may_still_be_there() -> None:
    assert not compare([], versions(CONFIG, None, "1")).differences
    assert not compare([CONFIG], versions(CONFIG, "1", None)).differences
    assert not compare([], versions(CONFIG, "1", None)).differences


def test_a_key_that_was_there_all_the_time_may_not_be_missing() -> None:
    (difference,) = compare([], versions(CONFIG, "1", "2")).differences
    assert difference.side == "only in KRaft"


def test_a_key_that_the_log_never_had_is_only_in_zookeeper() -> None:
    (difference,) = compare([CONFIG], []).differences
    assert difference.side == "only in ZooKeeper"
    (difference,) = compare([CONFIG], versions(CONFIG, None)).differences
    assert difference.side == "only in ZooKeeper"


def test_what_could_not_be_decoded_is_no_difference_and_no_agreement() -> None:
    row = canonical_rows.broker_config("1", "ssl.key.password", canonical_rows.undecoded("no secret"))
    found = compare([row], versions(row, "fingerprint:1"))
    assert not found.both[Kind.BROKER_CONFIG] and not found.differences
    assert "no secret" in str(found.undecoded[0])
    (difference,) = compare([row], []).differences
    assert difference.side == "only in ZooKeeper"


def test_one_key_in_two_znodes_is_a_difference_whatever_they_say() -> None:
    one, other = replace(CONFIG, path="/config/topics/a"), replace(CONFIG, path="/config/topics/%61")
    (difference,) = compare([one, other], versions(CONFIG, "1")).differences
    assert difference.paths == ("/config/topics/%61", "/config/topics/a")
    assert "ZooKeeper has it 2 times: /config/topics/%61 (1), /config/topics/a (1); KRaft has 1" in str(difference)


# -- a later look at suspects ------------------------------------------------------------------------------------------


def suspect(row: Row, kraft: object = None) -> Difference:
    return Difference(
        row.kind, row.key, row.value, None if kraft is None else canonical_rows.canonical(kraft), (row.path,)
    )


SEEN = replace(CONFIG, path="/config/topics/a")


def test_a_suspect_that_agrees_once_is_cleared_and_one_that_does_not_persists() -> None:
    again = look_again([suspect(SEEN, "2")], [SEEN], versions(CONFIG, "1"), set())
    assert (again.suspects, again.vanished, again.rows, again.agreed) == ((), (), (SEEN,), {(CONFIG.kind, CONFIG.key)})
    again = look_again([suspect(SEEN, "2")], [SEEN], versions(CONFIG, "2"), set())
    assert again.suspects == (suspect(SEEN, "2"),) and not again.agreed


def test_what_was_seen_and_is_gone_is_cleared_only_where_the_log_removed_it() -> None:
    again = look_again([suspect(SEEN)], [], versions(CONFIG, None), set())
    assert (again.suspects, again.agreed) == ((), frozenset()) and again.vanished == (suspect(SEEN),)
    assert "gone from /config/topics/a" in again.obstacles[0].problem
    assert look_again([suspect(SEEN)], [], versions(CONFIG, None), {(CONFIG.kind, CONFIG.key)}).agreed
    missing = Difference(CONFIG.kind, CONFIG.key, None, '"1"')
    assert not look_again([missing], [], versions(CONFIG, None), set()).vanished, "ZooKeeper never had it"


def test_what_could_not_be_read_at_first_is_compared_as_soon_as_it_can() -> None:
    (garbled,) = compare([canonical_rows.unreadable("/config/topics/a", "empty")], []).differences
    assert keys_in_question([garbled], [SEEN]) == {garbled.identity, (CONFIG.kind, CONFIG.key)}
    again = look_again([garbled], [SEEN], versions(CONFIG, "2"), set())
    assert [each.kind for each in again.suspects] == [Kind.TOPIC_CONFIG] and garbled.identity in again.agreed
    (vanished,) = look_again([garbled], [], [], set()).vanished
    assert vanished == garbled
    session = replace(garbled, key='["/brokers/ids/1"]', paths=("/brokers/ids/1",))
    assert not look_again([session], [], [], set()).vanished, "brokers come and go"


def test_what_can_not_be_decoded_at_the_second_look_is_not_cleared() -> None:
    row = canonical_rows.broker_config("1", "ssl.key.password", canonical_rows.undecoded("no secret"))
    missing = Difference(row.kind, row.key, None, '"fingerprint:1"')
    again = look_again([missing], [row], versions(row, "fingerprint:1"), set())
    assert not again.agreed and [each.reason for each in again.undecoded] == ["no secret"]


@given(st.lists(st.sampled_from(["1", "2", "3", None]), min_size=1, max_size=6), st.data())
def test_whatever_the_churn_a_value_from_m_on_never_differs_and_a_foreign_one_always_does(
    history: list[str | None], data: st.DataObject
) -> None:
    seen = data.draw(st.sampled_from(history))
    rows = [] if seen is None else [with_value(seen)]
    assert not compare(rows, versions(CONFIG, *history)).differences
    assert compare([with_value("foreign")], versions(CONFIG, *history)).differences


# -- the report --------------------------------------------------------------------------------------------------------


def report(
    both: dict[Kind, int] | None = None,
    differences: Sequence[Difference] = (),
    obstacles: Sequence[Obstacle] = (),
    **changes: Any,
) -> ParityReport:
    found = {Kind.TOPIC: 1} if both is None else both
    times = {"started_at": datetime(2026, 1, 1, tzinfo=UTC), "finished_at": datetime(2026, 1, 1, 0, 0, 5, tzinfo=UTC)}
    plain: dict[str, Any] = {
        "cluster": "c",
        "against": "ZooKeeper",
        "undecoded": (),
        "migration_offset": 5,
        "end_offset": 9,
        "migration_epoch": 1,
        "leader_id": 101,
        "leader_epoch": 1,
        "rounds": 1,
        **times,
        **changes,
    }
    return make_report(both=found, differences=differences, obstacles=obstacles, **plain)


DIFFERENCE = Difference(Kind.TOPIC, '["a"]', None, '{"topic_id":"x"}')
OBSTACLE = Obstacle("the log is gone", "raise the retention")


def test_equal_is_a_match() -> None:
    assert report().verdict is Verdict.MATCH


def test_zero_rows_are_never_a_match() -> None:
    for both in ({}, {Kind.CLUSTER_ID: 1, Kind.CONTROLLER: 2, Kind.BROKER: 3, Kind.METADATA_VERSION: 1}):
        found = report(both)
        assert found.verdict is Verdict.INCONCLUSIVE
        assert "nothing was compared" in found.summary


def test_an_obstacle_withholds_a_match_and_a_difference_is_proof_in_spite_of_it() -> None:
    assert report(obstacles=[OBSTACLE]).verdict is Verdict.INCONCLUSIVE
    assert "raise the retention" in report(obstacles=[OBSTACLE]).render_text()
    assert report(differences=[DIFFERENCE], obstacles=[OBSTACLE]).verdict is Verdict.MISMATCH


@pytest.mark.parametrize("against", ["ZooKeeper", "ZooKeeper, as far as it was touched since a proof"])
def test_a_quota_that_zookeeper_alone_has_comes_with_its_cure(against: str) -> None:
    quota = canonical_rows.client_quota([("client-id", "app")], "producer_byte_rate", 1024.0)
    left = Difference(quota.kind, quota.key, quota.value, None)
    found = replace(report(differences=[left]), against=against)
    assert found.verdict is Verdict.MISMATCH
    for text in (found.render_text(), found.render_markdown()):
        assert "A client quota that ZooKeeper alone has: Kafka leaves the last quota of a client id" in text
        assert "Restart the active controller with its migration flag" in text
    for other in (
        report(differences=[replace(left, zookeeper=None, kraft=quota.value)]),
        report(differences=[DIFFERENCE]),
        replace(found, against="the baseline 0123"),
    ):
        assert other.cures == () and "Restart the active controller" not in other.render_text()


def test_samples_are_capped_and_counts_are_not() -> None:
    found = report(differences=[replace(DIFFERENCE, key=f'["t{n}"]') for n in range(50)])
    assert len(found.samples) == 20
    assert found.counts[0].only_kraft == found.differing == 50


def test_a_report_reads_back_with_the_same_digest_and_a_changed_one_is_refused() -> None:
    found = report(differences=[DIFFERENCE], obstacles=[OBSTACLE])
    plain = json.loads(json.dumps(found.to_dict()))
    assert ParityReport.from_dict(plain) == found
    assert ParityReport.from_dict(plain).digest == found.digest
    plain["verdict"] = "MATCH"
    with pytest.raises(ValueError, match="changed after it was written"):
        ParityReport.from_dict(plain)


def test_the_digest_covers_the_offsets_and_the_time() -> None:
    digests = {
        report().digest,
        report(end_offset=10).digest,
        report(finished_at=datetime(2026, 1, 2, tzinfo=UTC)).digest,
    }
    assert len(digests) == 3


def test_names_from_the_cluster_do_not_become_markup() -> None:
    evil = replace(DIFFERENCE, key='["<img src=x>|`a`"]')
    rendered = report(differences=[evil]).render_markdown()
    assert "<img" not in rendered.replace("\\<img", "")
    assert "\\|\\`a\\`" in rendered
