"""PASSED, FAILED, INCONCLUSIVE: what is not shown never passes, and the machine's fault is not the metadata's."""

from __future__ import annotations

from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta

import pytest
from observations import WHY, both, observation, part, with_quorum, zookeeper

from kraft_runbook.cluster.phases import Phase
from kraft_runbook.cluster.rehearsal_settings import RehearsalLimits
from kraft_runbook.evidence.kinds import Canary
from kraft_runbook.evidence.rehearsal_record import OnRecord
from kraft_runbook.metadata import canonical_rows
from kraft_runbook.migration.checks.catalogue import CHECKS
from kraft_runbook.migration.checks.liveness import CODE as LIVENESS
from kraft_runbook.rehearsal.kafka_said import UNAPPLIED, fatal_of, place_at_fault
from kraft_runbook.rehearsal.limits import exceeded
from kraft_runbook.rehearsal.tree_prints import PackedPrints, TreePrint, belongs, changes_between, elected, print_of
from kraft_runbook.rehearsal.verdict import NEEDED, SHORT, WHOLE, Finding, Measured, Verdict, judge
from kraft_runbook.rehearsal.whose_fault import (
    BY_AN_ELECTION,
    OF_THE_PLACE,
    OF_WHAT_RUNS,
    beside_an_election,
    election_in,
    of_check,
)
from kraft_runbook.runbook.check_results import CheckResult, Severity
from kraft_runbook.runbook.check_results import Verdict as Answer

GOOD = Measured(
    partitions=500,
    tree_seconds=0.5,
    copy=6.0,
    copy_load=1.0,
    window=1.5,
    window_load=1.0,
    controller_rss=400,
    cpu=120.0,
    load=1.5,
    cores=2,
    tries=1,
)


def test_all_done_and_all_measured_passes() -> None:
    assert judge(WHOLE, WHOLE, (), GOOD) == (Verdict.PASSED, ())
    assert judge(SHORT, SHORT, (), GOOD) == (Verdict.PASSED, ())


@pytest.mark.parametrize("name", NEEDED)
def test_a_missing_number_is_never_a_pass(name: str) -> None:
    verdict, (reason,) = judge(WHOLE, WHOLE, (), replace(GOOD, **{name: None}))
    assert (verdict, reason.what) == (Verdict.INCONCLUSIVE, f"not measured: {name}")


def test_every_needed_number_is_one_that_is_measured() -> None:
    assert set(NEEDED) <= {each.name for each in fields(Measured)}


@pytest.mark.parametrize("rung", WHOLE)
def test_a_rung_that_was_not_reached_is_never_a_pass(rung: object) -> None:
    verdict, reasons = judge(WHOLE, [each for each in WHOLE if each is not rung], (), GOOD)
    assert verdict is Verdict.INCONCLUSIVE and "not reached" in reasons[0].what


def test_one_failure_is_a_failure_and_stands_first() -> None:
    found = [Finding(Verdict.INCONCLUSIVE, "a part unread"), Finding(Verdict.FAILED, "the copy died")]
    verdict, reasons = judge(WHOLE, WHOLE, found, GOOD)
    assert verdict is Verdict.FAILED
    assert [each.what for each in reasons] == ["the copy died", "a part unread"]


# -- whose fault -------------------------------------------------------------------------------------------------------


def of(code: str, *, load: float | None = 1.0, answer: Answer = Answer.FAIL, throttled: float | None = None) -> Finding:
    result = CheckResult(code, "title", Severity.BLOCKING, answer, "what was seen")
    return of_check(result, "start", load=load, cores=2, throttled=throttled)


def test_a_check_that_failed_is_failed_and_one_that_was_not_answered_is_inconclusive() -> None:
    found = of("KRB-PRE-029")
    assert (found.verdict, found.code) == (Verdict.FAILED, "KRB-PRE-029") and "what was seen" in found.what
    assert of("KRB-PRE-029", answer=Answer.UNKNOWN).verdict is Verdict.INCONCLUSIVE
    assert of("KRB-PRE-029", load=90.0).verdict is Verdict.FAILED, "a load explains no wrong metadata"


@pytest.mark.parametrize("code", ["KRB-PRE-015", "KRB-PRE-041", "KRB-PRE-042"])
def test_a_check_that_judges_this_machine_is_inconclusive(code: str) -> None:
    assert of(code).verdict is Verdict.INCONCLUSIVE and "of this machine" in of(code).what


@pytest.mark.parametrize("code", ["KRB-DW-001", "KRB-GATE-003"])
def test_a_check_that_a_busy_machine_fails_is_failed_beside_a_low_load_alone(code: str) -> None:
    assert of(code, load=4.0).verdict is Verdict.FAILED
    assert of(code, load=4.1).verdict is of(code, load=None).verdict is Verdict.INCONCLUSIVE
    assert "(the load then was 9 on 2 cores)" in of(code, load=9.0).what


@pytest.mark.parametrize("code", ["KRB-DW-001", "KRB-GATE-003"])
def test_so_is_one_that_a_cpu_quota_fails(code: str) -> None:
    assert of(code, throttled=1.0).verdict is Verdict.FAILED
    found = of(code, throttled=1.01)
    assert found.verdict is Verdict.INCONCLUSIVE
    assert "(the CPU quota of 2 cores was used up: 101% more was waited for)" in found.what
    assert of("KRB-PRE-029", throttled=2.0).verdict is Verdict.FAILED


def test_an_election_is_seen_by_an_epoch_that_rose() -> None:
    before = observation(Phase.HYBRID)
    assert election_in([before, before]) == ""
    assert election_in([before, with_quorum(leader_epoch=6)(before)]) == "the quorum's epoch rose from 4 to 6"
    both_rose = both(with_quorum(leader_epoch=5), zookeeper(controller_epoch=4))(before)
    assert election_in([part(quorum=WHY)(before), before, part(zookeeper=WHY)(before), both_rose, before]) == (
        "the quorum's epoch rose from 4 to 5 and /controller_epoch rose from 3 to 4"
    )


@pytest.mark.parametrize("code", sorted(BY_AN_ELECTION))
def test_what_fails_for_a_moment_after_an_election_is_inconclusive_beside_one(code: str) -> None:
    found = beside_an_election(of(code), "the quorum's epoch rose from 4 to 5")
    assert found.verdict is Verdict.INCONCLUSIVE and found.what.endswith(
        "(the quorum's epoch rose from 4 to 5 while the gate looked)"
    )


def test_an_election_explains_no_wrong_metadata() -> None:
    assert beside_an_election(of("KRB-PRE-029"), "the quorum's epoch rose from 4 to 5") == of("KRB-PRE-029")


def test_the_codes_of_such_checks_exist() -> None:
    known = {*CHECKS, LIVENESS}
    assert known >= OF_THE_PLACE | OF_WHAT_RUNS | BY_AN_ELECTION


# -- limits ------------------------------------------------------------------------------------------------------------


def earlier(copy: float, *, days: int = 1, **measured: object) -> OnRecord:
    """One that PASSED so many days ago, with a copy of so many seconds."""
    numbers = replace(GOOD, copy=copy).to_dict() | measured
    told = Canary.read({"verdict": "PASSED", "whole": True, "measured": numbers})
    return OnRecord("a-run", datetime(2026, 3, 8, 4, 0, tzinfo=UTC) - timedelta(days=days), told)


def findings(limits: dict[str, float], measured: Measured = GOOD, **given: object) -> list[Finding]:
    how = {"heap_mib": 512, "passed": ()} | given
    return list(exceeded(measured, RehearsalLimits.model_validate(limits), **how))  # type: ignore[arg-type]


def over(
    limits: dict[str, float], measured: Measured = GOOD, *, last_copy: float | None = None, **given: object
) -> list[Verdict]:
    passed = () if last_copy is None else (earlier(last_copy),)
    return [each.verdict for each in findings(limits, measured, passed=passed, **given)]


def test_limits_that_hold_say_nothing() -> None:
    assert over({"copy": 300, "window": 5, "controller_memory": 0.9, "slower": 1.5}, last_copy=5.0) == []
    assert over({}) == []


@pytest.mark.parametrize("limits", [{"copy": 5}, {"window": 1}, {"controller_memory": 0.5}])
def test_one_that_does_not_fails(limits: dict[str, float]) -> None:
    assert over(limits) == [Verdict.FAILED]


def test_slower_than_the_last_one_fails_and_without_a_last_one_there_is_none() -> None:
    assert over({"slower": 1.5}, last_copy=3.0) == [Verdict.FAILED]
    assert over({"slower": 1.5}) == []


@pytest.mark.parametrize(
    "then",
    [{"partitions": 501}, {"partitions": 399}, {"copy_load": 4.1}, {"copy_load": None}, {"copy_throttled": 1.01}],
)
def test_a_copy_is_compared_with_no_other_size_and_with_none_of_a_busy_machine(then: dict[str, object]) -> None:
    assert findings({"slower": 1.5}, passed=(earlier(1.0, **then),)) == []
    (found,) = findings({"slower": 1.5}, passed=(earlier(1.0, **then), earlier(3.0, days=9, partitions=400)))
    assert found.verdict is Verdict.FAILED and found.what == (
        "the metadata copy of 500 partitions (the last to compare with: 3.0 s for 400 partitions on 2026-02-27 04:00"
        " UTC) took 6.0 s; the limit is 4.5 s"
    )


def test_a_copy_is_compared_with_the_newest_that_can_be() -> None:
    assert findings({"slower": 1.5}, passed=(earlier(1.0, days=9), earlier(5.0))) == []


@pytest.mark.parametrize(("load", "compared"), [(4.1, False), (3.9, True)])
def test_a_record_from_before_each_span_had_its_load_is_compared_by_the_highest(load: float, compared: bool) -> None:
    last = earlier(1.0, load=load)
    held = {name: value for name, value in last.told.measured.items() if name not in ("copy_load", "rungs")}
    found = findings({"slower": 1.5}, passed=(replace(last, told=replace(last.told, measured=held)),))
    assert [each.verdict for each in found] == [Verdict.FAILED] * compared


def test_seconds_over_a_load_of_twice_the_cores_are_inconclusive_and_memory_is_not() -> None:
    busy = replace(GOOD, copy_load=4.1, window_load=4.2)
    assert over({"copy": 5}, busy) == over({"window": 1}, busy) == [Verdict.INCONCLUSIVE]
    assert over({"controller_memory": 0.5}, busy) == [Verdict.FAILED]
    assert over({"copy": 5}, replace(GOOD, copy_load=None)) == [Verdict.INCONCLUSIVE]
    assert "but the load then was 4 on 2 cores" in findings({"copy": 5}, busy)[0].what


def test_seconds_under_a_cpu_quota_that_was_used_up_are_inconclusive() -> None:
    """The load average is the host's, and its processes that wait for their quota are not in it."""
    held = replace(GOOD, cores=1.5, copy_throttled=1.26, window_throttled=1.6)
    assert over({"copy": 5}, held) == over({"window": 1}, held) == [Verdict.INCONCLUSIVE]
    assert over({"slower": 1.5}, held, last_copy=3.0) == [Verdict.INCONCLUSIVE]
    assert findings({"window": 1}, held)[0].what == (
        "the window of the way back took 1.5 s; the limit is 1 s, but the CPU quota of 1.5 cores was used up: 160% more"
        " was waited for"
    )
    little = replace(GOOD, copy_throttled=1.0, window_throttled=0.0)
    assert over({"copy": 5}, little) == over({"window": 1}, little) == [Verdict.FAILED]
    assert over({"copy": 5}, replace(GOOD, cores=1.5, copy_load=3.1)) == [Verdict.INCONCLUSIVE]


def test_an_earlier_copy_under_a_quota_that_is_no_whole_number_is_compared() -> None:
    (found,) = findings({"slower": 1.5}, passed=(earlier(3.0, cores=1.5),))
    assert found.verdict is Verdict.FAILED


def test_a_load_of_another_time_excuses_no_seconds() -> None:
    """Parity alone may bring it to that."""
    busy_in_parity = replace(GOOD, load=9.0)
    assert over({"copy": 5}, busy_in_parity) == over({"window": 1}, busy_in_parity) == [Verdict.FAILED]
    assert over({"slower": 1.5}, busy_in_parity, last_copy=3.0) == [Verdict.FAILED]
    assert over({"window": 1}, replace(GOOD, copy_load=9.0)) == [Verdict.FAILED]


def test_a_limit_on_what_was_not_measured_is_inconclusive() -> None:
    assert over({"copy": 5}, replace(GOOD, copy=None)) == [Verdict.INCONCLUSIVE]
    assert over({"controller_memory": 0.5}, replace(GOOD, controller_rss=None)) == [Verdict.INCONCLUSIVE]
    assert over({"controller_memory": 0.5}, heap_mib=None) == [Verdict.INCONCLUSIVE]


# -- Kafka's own words -------------------------------------------------------------------------------------------------

LOG = """\
[2026-11-27 04:00:00,001] INFO [KRaftMigrationDriver id=101] Starting ZK migration (x)
[2026-11-27 04:00:00,100] ERROR Encountered fatal fault: Error when handling migration (org.apache.kafka.server.fault)
org.apache.kafka.common.KafkaException: Failed to parse the ZK producer id block at /latest_producer_id_block
\tat kafka.zk.ProducerIdBlockZNode$.parseProducerIdBlockData(ZkData.scala:888)
Caused by: com.fasterxml.jackson.core.JsonParseException: Unexpected character
\tat com.fasterxml.jackson.core.JsonParser.x(JsonParser.java:1)
[2026-11-27 04:00:00,200] INFO shutting down (x)
""".splitlines()


def test_a_fatal_fault_is_told_with_its_exceptions_and_its_znode() -> None:
    said = fatal_of(LOG)
    assert said is not None
    assert said.fault == "Error when handling migration"
    assert [each.partition(":")[0] for each in said.exceptions] == [
        "org.apache.kafka.common.KafkaException",
        "com.fasterxml.jackson.core.JsonParseException",
    ]
    assert said.where == "/latest_producer_id_block"


AS_3_9_2_LOGS = """\
[2026-11-27 05:00:25,542] ERROR [KRaftMigrationDriver id=101] Aborting the metadata migration from ZooKeeper to KRaft. \
0 records were generated in 591 ms across 0 batches. (org.apache.kafka.metadata.migration.KRaftMigrationDriver)
org.apache.kafka.common.KafkaException: Failed to parse the producerId block json { no JSON
\tat kafka.zk.ProducerIdBlockZNode$.$anonfun$parseProducerIdBlockData$4(ZkData.scala:836)
\tat scala.Option.getOrElse(Option.scala:201)
[2026-11-27 05:00:25,546] ERROR Encountered fatal fault: Aborting the ZK migration \
(org.apache.kafka.server.fault.ProcessTerminatingFaultHandler)
""".splitlines()


def test_a_fault_without_an_exception_has_that_of_the_error_before_it() -> None:
    said = fatal_of(AS_3_9_2_LOGS)
    assert said is not None and said.where == "/latest_producer_id_block"
    assert str(said) == (
        "Aborting the ZK migration: org.apache.kafka.common.KafkaException: Failed to parse the producerId block json"
        " { no JSON (/latest_producer_id_block)"
    )


UNAPPLIED_LOG = """\
[2026-11-30 08:25:04,438] ERROR Encountered metadata publishing fault: Uncaught exception while publishing \
DelegationToken changes from update MetadataDelta up to 239 (org.apache.kafka.server.fault.LoggingFaultHandler)
java.lang.IllegalArgumentException: Invalid key to HMAC computation
\tat kafka.server.DelegationTokenManager.getDelegationToken(DelegationTokenManager.scala:178)
Caused by: java.security.InvalidKeyException: No installed provider supports this key: (null)
""".splitlines()


def test_a_change_that_a_controller_could_not_apply_is_no_end_of_it() -> None:
    """It goes on (``LoggingFaultHandler``): what ends it is told, or nothing."""
    assert fatal_of(UNAPPLIED_LOG) is None
    said = fatal_of([*UNAPPLIED_LOG, *LOG])
    assert said is not None and said.fault == "Error when handling migration"
    unapplied = fatal_of([*LOG, *UNAPPLIED_LOG], fault=UNAPPLIED)
    assert unapplied is not None and "Invalid key to HMAC computation" in str(unapplied)
    assert unapplied.kinds == ("/delegation_token",)


def test_a_snapshot_that_could_not_be_written_is_no_change_that_could_not_be_applied() -> None:
    line = "ERROR Encountered metadata publishing fault: KRaft snapshot file generation error (org.apache.X)"
    assert fatal_of([line], fault=UNAPPLIED) is None


def test_where_the_message_names_no_znode_its_trace_tells_the_kind() -> None:
    log = [*LOG[:2], "java.lang.RuntimeException: no JSON", *LOG[3:]]
    said = fatal_of(log)
    assert said is not None and said.where == "/latest_producer_id_block"


FRAMES = {
    "kafka.zk.ZkMigrationClient.$anonfun$migrateDelegationTokens$2": ("/delegation_token",),
    "kafka.zk.migration.ZkAclMigrationClient.iterateAcls": ("/kafka-acl", "/kafka-acl-extended"),
    "kafka.zk.migration.ZkConfigMigrationClient.$anonfun$iterateClientQuotas$1": (
        "/config/users",
        "/config/clients",
        "/config/ips",
    ),
    "kafka.zk.migration.ZkConfigMigrationClient.iterateBrokerConfigs": ("/config/brokers",),
    "kafka.zk.migration.ZkTopicMigrationClient.iterateTopics": ("/brokers/topics", "/config/topics"),
    "kafka.zk.ZkMigrationClient.readAllMetadata": (),
}


@pytest.mark.parametrize("frame", FRAMES)
def test_where_no_message_names_a_znode_a_frame_tells_the_kinds(frame: str) -> None:
    log = [
        *AS_3_9_2_LOGS[:1],
        "java.lang.IllegalArgumentException: requirement failed",
        f"\tat {frame}(X.scala:304)",
        AS_3_9_2_LOGS[-1],
    ]
    said = fatal_of(log)
    assert said is not None and (said.znode, said.kinds) == ("", FRAMES[frame])
    assert all(kind in str(said) for kind in said.kinds)


def test_a_log_without_a_fault_has_none() -> None:
    assert fatal_of([LOG[0], LOG[-1]]) is None
    assert place_at_fault(LOG) is None


@pytest.mark.parametrize(
    "line",
    [
        "java.lang.OutOfMemoryError: Java heap space",
        "bind: Address already in use",
        "java.io.IOException: Disk quota exceeded",
        "org.apache.kafka.common.KafkaException: Failed to acquire lock on file .lock in /x. A Kafka instance",
    ],
)
def test_what_the_machine_lacks_is_the_machines_fault(line: str) -> None:
    assert place_at_fault([*LOG, line]) == line


def test_an_option_of_the_jvm_is_no_error() -> None:
    assert place_at_fault(["java -XX:+ExitOnOutOfMemoryError kafka.Kafka"]) is None


# -- the tree ----------------------------------------------------------------------------------------------------------

STATE = "/brokers/topics/t/partitions/0/state"


def prints(*znodes: tuple[str, bytes, int]) -> dict[str, TreePrint]:
    rows = {b"a": [canonical_rows.topic("t", "id")], b"a ": [canonical_rows.topic("t", "id")]}
    return {path: print_of(path, data, version, rows.get(data, [])) for path, data, version in znodes}


def test_a_tree_that_is_as_it_was() -> None:
    tree = prints(("/brokers/topics/t", b"a", 3), (STATE, b"s", 7))
    assert changes_between(tree, tree).wrong == ()


@pytest.mark.parametrize("znodes", [(), (("/config/topics/ü", b"c", 0),), ((STATE, b"s", 2**31 - 1), ("/a", b"", 0))])
def test_a_tree_is_kept_packed_and_loses_nothing(znodes: tuple[tuple[str, bytes, int], ...]) -> None:
    tree = prints(*znodes)
    assert (PackedPrints.of(tree).by_path(), len(PackedPrints.of(tree))) == (tree, len(znodes))


def test_each_change_is_told_and_a_respelt_znode_is_none() -> None:
    before = prints(("/brokers/topics/t", b"a", 0), (STATE, b"s", 7), ("/config/topics/t", b"c", 0))
    after = prints(("/brokers/topics/t", b"a ", 1), (STATE, b"s", 6), ("/config/topics/u", b"c", 0))
    found = changes_between(before, after)
    assert found.respelt == ("/brokers/topics/t",) and found.versions == (STATE,)
    assert len(found.wrong) == 3
    assert changes_between(prints((STATE, b"s", 7)), prints((STATE, b"x", 8))).changed == (STATE,)


def test_the_election_that_leaving_kraft_holds_as_a_proof_is_no_change() -> None:
    told = (
        "my-topic-3 was given its first replica, broker 1, as leader, with controller epoch 8; /controller_epoch is 8"
    )
    path = "/brokers/topics/my-topic/partitions/3/state"
    assert elected(told) == path
    assert elected("/controller_epoch is 8. No election was seen") is None
    before, after = prints((path, b"s", 7), (STATE, b"s", 7)), prints((path, b"x", 8), (STATE, b"x", 8))
    assert changes_between(before, after, elected=path).changed == (STATE,)


def test_who_leads_and_notifications_are_no_metadata() -> None:
    for path in ("/controller", "/migration", "/brokers/ids/1", "/config/changes/c_1", "/admin/x", "/controller_epoch"):
        assert not belongs(path), path
    for path in ("/config/topics/controller", "/brokers/topics/migration", "/kafka-acl/Topic/x", "/controllerish"):
        assert belongs(path), path
