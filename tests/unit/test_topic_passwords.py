"""A topic's config that has a password's name: Kafka knows none, but its copy decodes it as it does a broker's, and
dual write encodes it. Both stores are compared by fingerprints of what was decoded, and no report or proof shows it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from metadata_encoding import config, log, partition, topic
from observations import SECRETS, SPEC
from test_proven import HEAD
from test_znode_faults import NAME, WITH_NOW

from kraft_runbook.cluster.spec_types import SecretRef
from kraft_runbook.io.secrets import environment_secrets
from kraft_runbook.metadata.canonical_rows import Fingerprints, Kind, Row
from kraft_runbook.metadata.image.log_replay import LogReplay, Version
from kraft_runbook.metadata.log.log_chunks import Chunk
from kraft_runbook.metadata.znodes.znode_rows import Decoding, rows_of
from kraft_runbook.parity.comparison import ParityReport, Verdict, compare
from kraft_runbook.parity.findings import Findings
from kraft_runbook.parity.log_follower import LogFollower
from kraft_runbook.parity.proven import write_proven
from kraft_runbook.parity.since import compare_since

PATH = "/config/topics/a"
CLEAR = "correct horse"
"""What ``WITH_NOW`` decodes to."""
DECODING = Decoding(Fingerprints(b"salt"), "now")
OPEN = ("retention.ms", "1")


def in_zookeeper(name: str, value: str, decoding: Decoding = DECODING) -> list[Row]:
    return rows_of(PATH, json.dumps({"version": 1, "config": {name: value, OPEN[0]: OPEN[1]}}).encode(), decoding)


def replay(name: str, value: str, *, start: int) -> LogReplay:
    found = LogReplay(start, DECODING.fingerprints, "3.9")
    found.apply(Chunk(log(topic(), partition(), config(*OPEN), config(name, value)), up_to=9))
    return found


def reported(rows: list[Row], versions: Iterator[Version]) -> ParityReport:
    found = Findings(datetime(2026, 1, 1, tzinfo=UTC))
    of_configs = (each for each in versions if each.kind is Kind.TOPIC_CONFIG)
    found.add(compare(rows, of_configs))
    return found.report(SPEC)


def told(report: ParityReport) -> str:
    return f"{report.render_text()}{report.render_markdown()}{json.dumps(report.to_dict())}"


@pytest.mark.parametrize("start", [0, 9], ids=["touched after M", "before M"])
@pytest.mark.parametrize(("name", "stored"), [(NAME, WITH_NOW), ("reporter.api.key", CLEAR)])
def test_the_same_value_in_both_stores_is_a_match_and_another_is_told_without_it(
    start: int, name: str, stored: str
) -> None:
    rows = in_zookeeper(name, stored)
    same = reported(rows, replay(name, CLEAR, start=start).versions_of_topics(["a"]))
    other = reported(rows, replay(name, "battery staple", start=start).versions_of_topics(["a"]))
    assert (same.verdict, same.compared) == (Verdict.MATCH, 2)
    assert (other.verdict, other.differing, other.compared) == (Verdict.MISMATCH, 1, 1)
    assert f"a: {name} (/config/topics/a)" in told(other)
    for clear in (CLEAR, "battery staple", stored):
        assert clear not in told(same) + told(other)


@pytest.mark.parametrize("decoding", [Decoding(Fingerprints(b"salt")), Decoding(Fingerprints(b"salt"), "other")])
@pytest.mark.parametrize("stored", [WITH_NOW, CLEAR])
def test_what_cannot_be_decoded_is_inconclusive_and_not_shown(stored: str, decoding: Decoding) -> None:
    report = reported(in_zookeeper(NAME, stored, decoding), replay(NAME, CLEAR, start=9).versions_of_topics(["a"]))
    assert report.verdict is Verdict.INCONCLUSIVE
    assert CLEAR not in told(report) and stored not in told(report)


def test_a_look_at_what_changed_since_a_proof_knows_the_proof_s_fingerprints(tmp_path: Path) -> None:
    """The proof's state holds them, of what no record has changed since."""
    known = replay(NAME, CLEAR, start=9)
    salt = DECODING.fingerprints.salt
    head = replace(HEAD, cluster=SPEC.name, proven_at=datetime.now(UTC), salt=salt)
    write_proven(tmp_path / "proven", head, [], known.at_start)
    followed: list[LogReplay] = []

    def follow(spec: Any, found: LogReplay, **_: Any) -> LogFollower:
        followed.append(found)
        raise AssertionError("only the replay is looked at")

    spec = SPEC.model_copy(update={"secrets": {"password.encoder.secret": SecretRef(env="NOW")}})
    with pytest.raises(AssertionError):
        compare_since(spec, tmp_path / "proven", secrets=environment_secrets(SECRETS | {"NOW": "now"}), follow=follow)
    same = reported(in_zookeeper(NAME, WITH_NOW), followed[0].versions_of_topics(["a"]))
    assert same.verdict is Verdict.MATCH
