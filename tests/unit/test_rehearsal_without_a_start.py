"""A znode or a setting with which no seat or controller starts: FAILED, with its name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from observations import SPEC, tree
from recording import RecordingCluster
from rehearsing import MadeUpLadder, made_up, rehearsed, short_directory, source_in, throwaway_in
from test_rehearsal_throwaway import OWN, SOURCE, answers_with, made, with_settings
from test_rehearse import COPIED, ending, throwaways

from kraft_runbook.cluster.observation import Consequence, Found, StoredPassword
from kraft_runbook.errors import Refused, StepFailed
from kraft_runbook.migration.transitions import Gate
from kraft_runbook.procedures.observe import Scope
from kraft_runbook.procedures.throwaway_cluster import ThrowawayCluster
from kraft_runbook.rehearsal.kafka_said import end_at_start_of
from kraft_runbook.rehearsal.verdict import Finding, Rung, Verdict
from kraft_runbook.rehearsal.whose_fault import of_a_start
from kraft_runbook.steps.judged_gates import OF_A_START, judge_tree
from kraft_runbook.steps.ladder import Ladder

tmp_path = pytest.fixture(short_directory)


def as_copied(_: ThrowawayCluster) -> int:
    return int(COPIED.znodes)


QUOTA = """\
run-service.sh: broker-9001 starts as pid 7
[2026-11-30 08:00:01,000] INFO [Controller id=9001] Ready to serve as the new controller with epoch 4 (kafka.X)
[2026-11-30 08:00:02,000] ERROR [KafkaServer id=9001] Fatal error during KafkaServer startup. Prepare to shutdown \
(kafka.server.KafkaServer)
java.lang.NumberFormatException: For input string: "abc"
\tat java.base/java.lang.Double.parseDouble(Double.java:651)
\tat kafka.server.QuotaConfigHandler.updateQuotaConfig(ConfigHandler.scala:196)
\tat kafka.server.ZkConfigManager.startup(ZkConfigManager.scala:170)
[2026-11-30 08:00:02,100] INFO [KafkaServer id=9001] shutting down (kafka.server.KafkaServer)
[2026-11-30 08:00:03,000] ERROR Exiting Kafka due to fatal exception during startup. (kafka.Kafka$)
java.lang.NumberFormatException: For input string: "abc"
""".splitlines()
OF_TOPICS = """\
[2026-11-30 08:00:02,000] ERROR [KafkaServer id=9001] Fatal error during KafkaServer startup. Prepare to shutdown \
(kafka.server.KafkaServer)
org.apache.kafka.common.config.ConfigException: Invalid value 13 for configuration segment.bytes: Value must be at \
least 14
\tat kafka.log.LogManager.fetchTopicConfigOverrides(LogManager.scala:585)
""".splitlines()
REFUSED = """\
[2026-11-30 12:53:33,826] ERROR Exiting Kafka due to fatal exception (kafka.Kafka$)
org.apache.kafka.common.config.ConfigException: Invalid value abc for configuration num.io.threads: Not a number of \
type INT
\tat org.apache.kafka.common.config.ConfigDef.parseType(ConfigDef.java:776)
""".splitlines()
REQUIRED = [
    REFUSED[0],
    "java.lang.IllegalArgumentException: requirement failed: log.cleaner.threads needs more than"
    " log.cleaner.dedupe.buffer.size",
]
KEYLESS = [
    "[1] ERROR Encountered fatal fault: caught exception (org.apache.kafka.server.fault.X)",
    "java.lang.IllegalArgumentException: Empty key",
]
IN_KRAFT = ["[1] ERROR Encountered fatal fault: Error starting LogManager (org.x)", "java.lang.RuntimeException: x"]
PASSES = [REFUSED[0], "kafka.zookeeper.ZooKeeperClientTimeoutException: Timed out waiting for connection"]


@pytest.mark.parametrize(
    ("log", "where"),
    [
        (QUOTA, "/config/users, /config/clients or /config/ips"),
        (OF_TOPICS, "/config/topics"),
        (REFUSED, ""),
        (KEYLESS, ""),
        (IN_KRAFT, ""),
    ],
    ids=["a quota", "a topic's config", "a setting", "a controller", "a broker in KRaft mode"],
)
def test_what_ends_a_server_at_its_start_is_read_in_its_log(log: list[str], where: str) -> None:
    said = end_at_start_of(log)
    assert said is not None and said.where == where and said.exceptions


def test_an_end_before_the_last_start_is_none() -> None:
    assert end_at_start_of([*QUOTA, "run-service.sh: broker-9001 starts as pid 9", "[1] INFO starting"]) is None
    raft = ["[1] ERROR Encountered fatal fault: Unexpected error in raft IO thread (org.x)"]
    assert end_at_start_of(raft) is None, "it had started"


def test_a_seat_that_ended_at_its_start_is_failed_and_a_moments_cause_is_not() -> None:
    def found(log: list[str]) -> Finding:
        (only,) = ending(("broker-9001", log), rung=Rung.START, seats=("broker-9001",))[0].found
        return only

    assert found(QUOTA).verdict is Verdict.FAILED
    assert "broker-9001 ended at its start: " in found(QUOTA).what
    assert 'NumberFormatException: For input string: "abc" (/config/users,' in found(QUOTA).what
    assert found(PASSES).verdict is Verdict.INCONCLUSIVE
    assert found([REFUSED[0], "java.net.SocketTimeoutException: Read timed out"]).verdict is Verdict.INCONCLUSIVE
    assert found([*QUOTA, "IOException: Too many open files"]).verdict is Verdict.INCONCLUSIVE, "the place comes first"
    assert found([*QUOTA, "run-service.sh: broker-9001 starts as pid 9"]).verdict is Verdict.INCONCLUSIVE


def test_what_ended_an_earlier_life_of_a_controller_says_nothing_of_this_one() -> None:
    controller = SPEC.controllers[0].service
    copied = ["[1] ERROR Encountered fatal fault: Aborting the ZK migration (org.x)", "java.lang.RuntimeException: x"]
    starts = f"run-service.sh: {controller} starts as pid 9"

    def verdicts(*log: str) -> list[Verdict]:
        return [each.verdict for each in ending((controller, [*log]), rung=Rung.FORWARD_AGAIN)[0].found]

    assert verdicts(*copied) == [Verdict.FAILED]
    assert verdicts(*copied, starts, "[1] INFO starting") == [Verdict.INCONCLUSIVE], "nobody knows"
    raft = "[1] ERROR Encountered fatal fault: Unexpected error in raft IO thread (org.x)"
    assert verdicts(raft, starts, *copied) == [Verdict.FAILED]


def test_a_setting_that_is_refused_is_named_where_it_is_the_files() -> None:
    source = with_settings(
        broker_properties={"num.io.threads": "abc", "log.cleaner.threads": "1"},
        controller_properties={"num.io.threads": "0", "threads": "x"},
    )
    spec = made(source).spec
    bad = spec.model_copy(update={"broker_properties": spec.broker_properties | {"num.io.threads": "abc"}})
    seat, controller = spec.brokers[0].service, spec.controllers[0].service

    def what(service: str, log: list[str]) -> str:
        said = end_at_start_of(log)
        assert said is not None
        found = of_a_start(service, said, source, bad)
        assert found.verdict is Verdict.FAILED
        return found.what

    assert what(seat, REFUSED).endswith("of type INT; of the cluster file: broker_properties.num.io.threads")
    assert what(controller, REFUSED).endswith("of type INT; of the cluster file: controller_properties.num.io.threads")
    assert what(seat, REQUIRED).endswith(
        "; of the cluster file: broker_properties.log.cleaner.threads"
        "; the throwaway's own: broker_properties.log.cleaner.dedupe.buffer.size"
    )
    assert what(seat, QUOTA).endswith("/config/ips)"), "a znode is at fault, no setting"


def test_the_tree_is_judged_where_no_gate_was_and_its_findings_stand_beside_what_ended_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def prepare(throwaway: ThrowawayCluster, *_: Any, **__: Any) -> None:
        throwaway.here.logs.mkdir(parents=True)
        (throwaway.here.logs / "broker-9002.log").write_text("\n".join(QUOTA))

    def nothing(*_: Any) -> None:
        pass

    throwaways(monkeypatch, prepare=prepare, start_zookeeper=nothing, start_brokers=nothing, znodes=as_copied)
    znode = Finding(Verdict.FAILED, "gate start: KRB-PRE-061: /config/users/x", "KRB-PRE-061")
    ladder = made_up(StepFailed("broker-9002 has ended", way_out="x"))
    told = rehearsed(source_in(tmp_path), lambda *_, **__: COPIED, ladder=ladder, judge_tree=lambda _: (znode,))
    assert told.verdict == "FAILED"
    kafka, tree_says, *_ = told.reasons
    assert "broker-9002 ended at its start" in kafka and tree_says == f"FAILED: {znode.what}"


def test_a_tree_that_can_not_be_judged_takes_nothing_from_the_verdict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nothing(*_: Any, **__: Any) -> None:
        pass

    def gone(_: Any) -> Any:
        raise Refused("ZooKeeper does not answer", way_out="x")

    throwaways(monkeypatch, prepare=nothing, start_zookeeper=nothing, start_brokers=nothing, znodes=as_copied)
    ladder = made_up(StepFailed("broker-9002 has ended", way_out="x"))
    told = rehearsed(source_in(tmp_path), lambda *_, **__: COPIED, ladder=ladder, judge_tree=gone)
    assert "INCONCLUSIVE: broker-9002 has ended" in told.reasons
    assert not any("does not answer" in each for each in told.reasons), told.reasons


@pytest.mark.parametrize("judged", [True, False])
def test_where_a_gate_was_judged_the_tree_is_not_judged_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, judged: bool
) -> None:
    def nothing(*_: Any, **__: Any) -> None:
        pass

    def ladder(*given: Any) -> MadeUpLadder:
        return MadeUpLadder(*given, ends=StepFailed("a wait ran out", way_out="x"), judged=judged)

    asked: list[Any] = []
    throwaways(monkeypatch, prepare=nothing, start_zookeeper=nothing, start_brokers=nothing, znodes=as_copied)
    rehearsed(source_in(tmp_path), lambda *_, **__: COPIED, ladder=ladder, judge_tree=lambda it: asked.append(it) or ())
    assert len(asked) == (not judged)


def test_a_ladder_knows_whether_a_gate_was_judged(tmp_path: Path) -> None:
    cluster = RecordingCluster(answers_with(OWN), spec=made().spec)
    ladder = Ladder(throwaway_in(tmp_path), cluster, lambda *_, **__: None, tmp_path)  # type: ignore[arg-type, return-value]
    assert not ladder.judged
    _, ports = ladder._begin("forward and back")
    assert not ladder.judged
    ports.judged.add(Gate.START)
    assert ladder.judged


WRONG = {
    "KRB-PRE-058": tree(bad_replica_lists=Found(1, ("t-0 []",))),
    "KRB-PRE-060": tree(faults={Consequence.COPY_FAILS: Found(1, ("/latest_producer_id_block (x)",))}),
    "KRB-PRE-061": tree(faults={Consequence.BROKER_STAYS_DOWN: Found(1, ("/config/users/x (y)",))}),
    "KRB-PRE-062": tree(stored_passwords=(StoredPassword("/config/brokers/1", "a.password", "c", "no"),)),
}


def test_each_check_of_the_tree_alone_is_judged_by_its_znode() -> None:
    assert set(OF_A_START) == set(WRONG)
    spec = made().spec
    for code, spoil in WRONG.items():
        cluster = RecordingCluster(spoil(answers_with(OWN, spec)), spec=spec)
        (found,) = judge_tree(cluster)
        assert (found.code, found.verdict) == (code, Verdict.FAILED)
        assert code != "KRB-PRE-061" or "/config/users/x (y)" in found.what
        assert cluster.looks == [{"scope": Scope.FULL}]
    assert judge_tree(RecordingCluster(answers_with(OWN, spec), spec=spec)) == ()


def test_no_other_clusters_tree_is_judged() -> None:
    spec = made().spec
    with pytest.raises(Refused, match=f"the cluster that answers has the id {SOURCE}"):
        judge_tree(RecordingCluster(answers_with(SOURCE, spec), spec=spec))
