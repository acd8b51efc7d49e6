"""Every check passes on a healthy cluster, fails on its trap, and is UNKNOWN when what it needs was not read."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest
from failing_checks import (
    FAILS,
)
from kept_observations import end_untold
from observations import (
    NOW,
    SPEC,
    WHY,
    Spoil,
    a_controller,
    both,
    broker,
    config,
    dual_writing,
    later,
    observation,
    on_host,
    part,
    topics,
    tree,
    with_quorum,
    zookeeper,
)
from spoilt_clusters import (
    KAFKA_4,
    NO_HOSTS,
    NO_QUORUM,
    NO_TREE,
    NO_ZOOKEEPER,
    WITHOUT_ID,
    WITHOUT_ZOOKEEPER,
    Case,
    D,
    F,
    H,
    P,
    Z,
    faults,
    replicas,
    spec_with,
)
from unknown_checks import (
    BY_THE_FILE,
    ELSEWHERE,
    NEVER_FAIL,
    NEVER_UNKNOWN,
    UNKNOWNS,
)

from kraft_runbook.cluster.approvals import GateName
from kraft_runbook.cluster.controller_settings import MIN_BATCH_SIZE
from kraft_runbook.cluster.copy_groups import CopyGroups
from kraft_runbook.cluster.node_properties import MIGRATION_FLAG, controller_properties
from kraft_runbook.cluster.observation import NO_ZOOKEEPER as NONE_IN_THE_FILE
from kraft_runbook.cluster.observation import (
    BrokerMetrics,
    BrokerMode,
    ClusterObservation,
    Consequence,
    ControllerMode,
    ControllerZnode,
    Found,
    MigrationZnode,
    ZkMigrationState,
)
from kraft_runbook.cluster.phases import Phase
from kraft_runbook.cluster.replica_directories import GoneStray, GoneTopic, IdsApart
from kraft_runbook.cluster.sensitive import is_sensitive
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.migration.checks import CHECKS, CheckResult, ChecksReport, Severity, Verdict
from kraft_runbook.migration.checks.liveness import dual_write_liveness
from kraft_runbook.migration.controller_files import lacking_migration_mode
from kraft_runbook.migration.copy_tuning import LARGE
from kraft_runbook.operations import OPERATIONS, render_checks
from kraft_runbook.runbook.checklist import Needs
from kraft_runbook.runbook.differing_files import differing_keys
from kraft_runbook.runbook.versions import java_release


def answer(
    code: str, seen: ClusterObservation, phase: Phase, gate: str | None, spec: ClusterSpec = SPEC
) -> CheckResult:
    (result,) = [r for r in CHECKS.run(seen, spec, phase, gate=gate, earlier=seen).results if r.code == code]
    return result


def test_every_check_has_a_failure_and_an_unknown_in_these_tables() -> None:
    assert FAILS.keys() | BY_THE_FILE.keys() | NEVER_FAIL | ELSEWHERE == CHECKS.keys()
    assert UNKNOWNS.keys() | NEVER_UNKNOWN == CHECKS.keys()


@pytest.mark.parametrize(
    ("phase", "gate"),
    [
        (Z, None),
        (Z, "start"),
        (P, None),
        (H, None),
        (H, "dual_write"),
        (D, None),
        (D, "finalize"),
        (D, "soak"),
        (H, "soak"),
    ],
)
def test_a_healthy_cluster_passes_every_check_that_applies(phase: Phase, gate: str | None) -> None:
    report = CHECKS.run(observation(phase), SPEC, phase, gate=gate, earlier=observation(phase))
    assert [r for r in report.results if not r.passed] == []
    assert len(report.results) > 10
    assert report.verdict is Verdict.PASS


def test_a_way_back_that_restarts_no_broker_asks_nothing_of_the_znodes() -> None:
    seen = faults(Consequence.BROKER_STAYS_DOWN, "/config/users/u (b)")(observation(Z))
    assert answer("KRB-GATE-012", seen, Z, "rollback").passed


@pytest.mark.parametrize(("code", "case"), [(code, case) for code, cases in FAILS.items() for case in cases])
def test_fails_on_its_trap(code: str, case: Case) -> None:
    phase, gate, spoil, evidence = case
    result = answer(code, spoil(observation(phase)), phase, gate)
    assert result.verdict is Verdict.FAIL
    assert evidence in result.evidence
    assert result.fix


@pytest.mark.parametrize("code", BY_THE_FILE)
def test_fails_on_a_cluster_file_that_does_not_fit(code: str) -> None:
    spec, evidence = BY_THE_FILE[code]
    result = answer(code, tree(partitions=5_000)(observation(Z)), Z, None, spec)
    assert result.verdict is Verdict.FAIL
    assert evidence in result.evidence


def test_a_protocol_version_that_kafka_does_not_know_is_unknown_with_what_to_set() -> None:
    spec = spec_with(kafka=SPEC.kafka.model_copy(update={"inter_broker_protocol_version": "9.9"}))
    result = CHECKS["KRB-PRE-019"].run(observation(P), spec)
    assert (result.verdict, result.evidence) == (
        Verdict.UNKNOWN,
        "inter.broker.protocol.version 9.9 is not one that Kafka knows (up to 4.4)",
    )
    assert result.fix.startswith("set kafka.inter_broker_protocol_version in the cluster file")


@pytest.mark.parametrize("spec", [WITHOUT_ZOOKEEPER, KAFKA_4])
@pytest.mark.parametrize("phase", [F, Phase.KRAFT, Phase.UNKNOWN])
def test_a_cluster_without_zookeeper_is_refused_by_checks_and_none_of_them_breaks(
    phase: Phase, spec: ClusterSpec
) -> None:
    seen = part(zookeeper=NONE_IN_THE_FILE)(observation(Phase.KRAFT if phase is Phase.UNKNOWN else phase))
    report = CHECKS.run(part(quorum=WHY)(seen) if phase is Phase.UNKNOWN else seen, spec, phase)
    failed = {each.code for each in report.blocking if each.verdict is Verdict.FAIL}
    assert "KRB-PRE-080" in failed
    assert ("KRB-PRE-002" in failed) == (phase is not Phase.UNKNOWN)
    assert ("KRB-PRE-081" in failed) == (spec is KAFKA_4 and phase is not F)


@pytest.mark.parametrize(("enabled", "told"), [({1, 2, 3}, None), ({1, 3}, "broker 2 would not start")])
def test_topics_in_remote_storage_are_in_order_where_every_broker_has_it(enabled: set[int], told: str | None) -> None:
    brokers = tuple(
        b.model_copy(
            update={"properties": {"remote.log.storage.system.enable": " True " if b.id in enabled else "false"}}
        )
        for b in SPEC.brokers
    )
    result = answer(
        "KRB-PRE-061",
        tree(tiered_topics=Found(1, ("cold",)))(observation(Z)),
        Z,
        None,
        SPEC.model_copy(update={"brokers": brokers}),
    )
    assert (result.verdict is Verdict.PASS) if told is None else (told in result.evidence and "cold" in result.evidence)


@pytest.mark.parametrize("code", UNKNOWNS)
def test_is_unknown_where_what_it_needs_was_not_read(code: str) -> None:
    phase, gate, spoil, evidence = UNKNOWNS[code]
    result = answer(code, spoil(observation(phase)), phase, gate)
    assert result.verdict is Verdict.UNKNOWN
    assert evidence in result.evidence
    assert result.fix
    assert result.blocks == (result.severity is Severity.BLOCKING)


def test_with_everything_unread_no_check_passes_but_those_of_the_file() -> None:
    seen = part(zookeeper=WHY, quorum=WHY, topics=WHY, topics_apart=WHY, hosts=WHY, replicas=WHY, consumer_groups=WHY)(
        observation(D)
    )
    for i in (1, 2, 3):
        seen = broker(i, running=WHY, mode=WHY, metrics=WHY, software_version=WHY, advertised_cluster_id=WHY)(seen)
    for i in (101, 102, 103):
        seen = a_controller(i, running=WHY, mode=WHY, metrics=WHY)(seen)
    passing = {
        r.code
        for phase in Phase
        for gate in (None, "dual_write", "finalize")
        for r in CHECKS.run(seen, SPEC, phase, gate=gate).results
        if r.passed
    }
    assert passing == NEVER_UNKNOWN


def test_the_soak_needs_neither_a_deep_read_nor_hosts() -> None:
    seen = both(NO_TREE, NO_HOSTS, zookeeper(connections=WHY))(observation(D))
    report = CHECKS.run(seen, SPEC, D, gate="soak", earlier=seen)
    assert report.verdict is Verdict.PASS
    assert all(CHECKS[r.code].needs is Needs.LIVE for r in report.results)


def test_a_fresh_migration_znode_is_not_stale_and_neither_is_the_living_one() -> None:
    blank = zookeeper(migration=MigrationZnode(-1, -1, -1, -1))(observation(P))
    assert answer("KRB-PRE-021", blank, P, None).passed
    just_copied = both(
        zookeeper(migration=MigrationZnode(300, 101, 4, 4), controller=ControllerZnode(101, 4)),
        with_quorum(migration_state_record=ZkMigrationState.MIGRATION),
    )(observation(P))
    assert answer("KRB-PRE-021", just_copied, P, None).passed


def test_a_controller_without_a_file_is_fine_only_while_it_does_not_run() -> None:
    unprovisioned = both(on_host(103, config=None), a_controller(103, running=False))
    for phase in (P, H, D):
        assert answer("KRB-PRE-047", unprovisioned(observation(phase)), phase, None).passed
        assert not answer("KRB-PRE-047", on_host(103, config=None)(observation(phase)), phase, None).passed


def test_a_controller_s_file_that_differs_warns_without_showing_a_secret() -> None:
    result = answer(
        "KRB-PRE-053", config(102, ssl__key__password="hunter2", log__dirs="/elsewhere")(observation(H)), H, None
    )
    assert result.severity is Severity.WARNING and result.verdict is Verdict.FAIL
    assert "ssl.key.password (only in the file)" in result.evidence and "log.dirs (file: /elsewhere" in result.evidence
    assert "hunter2" not in result.evidence


def test_the_alarm_says_what_is_lost_what_does_not_help_and_the_way_forward() -> None:
    result = answer("KRB-GATE-007", broker(2, mode=BrokerMode.HYBRID)(observation(F)), F, None)
    assert result.blocks
    assert result.evidence.startswith(
        "THE MIGRATION WAS FINALIZED TOO EARLY: ZkMigrationState is 3 (POST_MIGRATION) on controller 101, controller"
        " 102, controller 103"
    )
    assert "Putting the migration flag back does not help" in result.fix
    assert "in KRaft mode now" in result.fix


def test_the_hosts_and_the_checks_ask_the_same_of_a_controller_s_file() -> None:
    flag = MIGRATION_FLAG
    whole = {flag: "true", "zookeeper.connect": "a:1", "process.roles": "controller"}
    samples: list[dict[str, str]] = [
        whole,
        {},
        {**whole, flag: " TRUE "},
        {**whole, flag: ""},
        {**whole, flag: "${file:/x:y}"},
        {**whole, "zookeeper.connect": " "},
    ]
    samples += [{k: v for k, v in whole.items() if k != key} for key in whole] + [{**whole, "process.roles": "broker"}]
    tuned = controller_properties(SPEC, SPEC.controller(101), ControllerMode.MIGRATION, also=LARGE.properties)
    samples += [tuned, {k: v for k, v in tuned.items() if k != flag}]
    program = (
        "import json, sys; from migration_mode import lacking; print(json.dumps([lacking(each) for each in"
        " json.load(sys.stdin)]))"
    )
    on_the_host = Path(__file__).resolve().parents[2] / "playbooks" / "module_utils"
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=on_the_host,
        input=json.dumps(samples),
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout) == [list(lacking_migration_mode(each)) for each in samples]
    assert [lacking_migration_mode(each) == () for each in (*samples[:3], *samples[-2:])] == [
        True,
        False,
        True,
        True,
        False,
    ]


def test_one_zookeeper_server_of_three_may_be_down_and_is_named_two_may_not() -> None:
    servers = ("10.0.0.1:2181", "10.0.0.2:2181", "10.0.0.3:2181")
    three = SPEC.model_copy(update={"zookeeper": SPEC.zookeeper.model_copy(update={"servers": servers})})
    one, two = (
        answer("KRB-PRE-051", on_host(101, unreachable_addresses=servers[:lost])(observation(Z)), Z, None, three)
        for lost in (1, 2)
    )
    assert (
        one.passed
        and "a majority of ZooKeeper's servers; controller 101's host does not reach 10.0.0.1:2181" in one.evidence
    )
    assert two.blocks and "controller 101's host does not reach 10.0.0.1:2181, 10.0.0.2:2181" in two.evidence
    both = answer(
        "KRB-PRE-051",
        on_host(101, unreachable_addresses=(servers[0], "127.10.0.12:9092"))(observation(Z)),
        Z,
        None,
        three,
    )
    assert both.blocks and both.evidence.startswith("controller 101's host does not reach 127.10.0.12:9092")


def test_a_copy_larger_than_any_measured_is_unknown_however_long_its_deadline() -> None:
    patient = SPEC.model_copy(update={"deadlines": SPEC.deadlines.model_copy(update={"metadata_copy": 86_400})})
    result = answer("KRB-PRE-054", tree(partitions=50_000_000)(observation(Z)), Z, None, patient)
    assert result.verdict is Verdict.UNKNOWN and not result.blocks
    assert "measure a copy of that size" in result.fix


HEAVY_TREE = tree(partitions=2_100, copied=CopyGroups(3_500, 11_430_000, 16_500, ((2_800, 4_050.0), (700, 120.0))))


@pytest.mark.parametrize(
    ("value", "phase", "told"),
    [
        (None, Z, "with zookeeper.metadata.migration.min.batch.size=1000 a batch may have up to 4,062,511 bytes"),
        ("200", Z, "=200 a batch may have up to 822,511 bytes"),
        ("5000", Z, "=5000 a batch may have up to 11,430,061 bytes; Kafka accepts 8,388,608"),
        ("5000", P, "=5000 a batch may have up to 11,430,061 bytes; Kafka accepts 8,388,608"),
    ],
)
def test_a_batch_of_the_copy_is_as_large_as_its_setting_allows(value: str | None, phase: Phase, told: str) -> None:
    """In PRE_MIGRATION the controllers' own files count; before, what is going to be rendered."""
    own = {} if value is None else {MIN_BATCH_SIZE: value}
    spec = spec_with(controller_properties={**SPEC.controller_properties, **own})
    seen = HEAVY_TREE(observation(phase, spec))
    if phase is P:
        spec = SPEC  # the files are by another hand
    result = answer("KRB-PRE-089", seen, phase, None, spec)
    assert (result.passed, told in result.evidence) == (value != "5000", True), result.evidence
    if value == "5000":
        assert "min.batch.size: '2000' in controller_properties" in result.fix
    if phase is P:
        unread = answer("KRB-PRE-089", on_host(102, config=WHY)(HEAVY_TREE(observation(phase))), phase, None)
        assert (unread.verdict, unread.blocks) == (Verdict.UNKNOWN, True)


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        (lambda s: s, "(Metadata names none of them: the broker has not heard what the others know"),
        (tree(under_replicated=("a-0", "b-1"), under_replicated_count=7), "(by ZooKeeper 7: a-0, b-1, …)"),
        (
            topics(under_replicated=("m-1",), under_replicated_count=1),
            "under-replicated: 1: m-1; broker 2 leads 7 under",
        ),
    ],
)
def test_where_only_a_gauge_counts_them_the_partitions_are_named(spoil: Spoil, told: str) -> None:
    seen = spoil(broker(2, metrics=BrokerMetrics(7))(observation(Z)))
    assert told in answer("KRB-PRE-029", seen, Z, None).evidence
    named = broker(2, metrics=BrokerMetrics(2, under_replicated=("g-0", "g-1")))(observation(Z))
    assert answer("KRB-PRE-029", named, Z, None).evidence == (
        "broker 2 leads 2 under-replicated partitions (2: g-0, g-1)"
    )


def test_where_no_batch_is_small_enough_the_configs_are_too_long() -> None:
    heavy = tree(copied=CopyGroups(3, 10_000_000, 10_000_000, ((3, 3_333_334.0),)))
    result = answer("KRB-PRE-089", heavy(observation(Z)), Z, None)
    assert result.blocks and result.fix.startswith("no batch size is small enough: shorten")


def test_a_controllers_file_with_the_copys_tuning_is_as_rendered_and_with_half_of_it_is_not() -> None:
    tuned = {
        i: controller_properties(SPEC, SPEC.controller(i), ControllerMode.MIGRATION, also=LARGE.properties)
        for i in SPEC.controller_ids
    }
    seen = both(
        *(on_host(i, config={k: "<set>" if is_sensitive(k) else v for k, v in tuned[i].items()}) for i in tuned)
    )(observation(H))
    assert answer("KRB-PRE-053", seen, H, None).passed
    assert answer("KRB-PRE-047", seen, H, None).passed
    half = config(102, zookeeper__max__in__flight__requests=None)(seen)
    assert (
        "controller 102: zookeeper.metadata.migration.min.batch.size (only in the file)"
        in answer("KRB-PRE-053", half, H, None).evidence
    )


def test_what_the_file_says_of_controllers_settles_a_disagreement_of_brokers() -> None:
    seen = config(3, default__replication__factor="2")(observation(Z))
    assert not answer("KRB-PRE-070", seen, Z, None).passed
    assert answer(
        "KRB-PRE-070", seen, Z, None, spec_with(controller_properties={"default.replication.factor": "3"})
    ).passed
    for_each = tuple(c.model_copy(update={"properties": {"default.replication.factor": "3"}}) for c in SPEC.controllers)
    assert answer("KRB-PRE-070", seen, Z, None, spec_with(controllers=for_each)).passed
    assert not answer("KRB-PRE-070", seen, Z, None, spec_with(controllers=(*for_each[:2], SPEC.controllers[2]))).passed


def test_a_password_on_which_brokers_disagree_never_shows() -> None:
    for_broker_3 = SPEC.broker(3).model_copy(update={"properties": {"password.encoder.secret": "${file:/hunter2:x}"}})
    result = answer("KRB-PRE-070", observation(Z), Z, None, spec_with(brokers=(*SPEC.brokers[:2], for_broker_3)))
    assert "password.encoder.secret (brokers 1, 2: value 1, not shown; broker 3: value 2, not shown)" in result.evidence
    assert "hunter2" not in result.evidence


def test_zookeepers_leftovers_in_a_kraft_brokers_file_are_no_difference() -> None:
    rendered_before = config(2, password__encoder__secret="<set>", zookeeper__session__timeout__ms="18000")
    assert answer("KRB-PRE-046", rendered_before(observation(D)), D, None).passed
    assert not answer("KRB-PRE-046", config(2, further="1")(observation(D)), D, None).passed


def test_declared_znode_acls_are_fine() -> None:
    declared = SPEC.model_copy(
        update={"zookeeper": SPEC.zookeeper.model_copy(update={"properties": {"zookeeper.set.acl": "true"}})}
    )
    assert answer("KRB-PRE-035", tree(znode_acl_restricted=True)(observation(Z)), Z, None, declared).passed


BOUND = "PLAINTEXT://:9092,SASL://0.0.0.0:9094"


def binding(plaintext: str | None, sasl: str | None) -> ClusterSpec:
    """The lab, whose brokers bind to these."""
    data = SPEC.model_dump()
    for each in data["brokers"]:
        each["listeners"][0]["bind_host"], each["listeners"][1]["bind_host"] = plaintext, sasl
    return ClusterSpec.model_validate(data)


def test_brokers_that_bind_to_every_address_can_be_declared() -> None:
    seen = observation(Z)
    for i in (1, 2, 3):
        seen = config(i, listeners=BOUND)(seen)
    assert answer("KRB-PRE-046", seen, Z, None, binding("", "0.0.0.0")).passed
    refused = answer("KRB-PRE-046", seen, Z, None)
    assert refused.verdict is Verdict.FAIL
    assert "bind_host: '' at PLAINTEXT, bind_host: '0.0.0.0' at SASL" in refused.fix


@pytest.mark.parametrize(
    "listeners", ["PLAINTEXT://:9093,SASL://:9094", "PLAINTEXT://:9092", "OTHER://:9092,SASL://:9094", ""]
)
def test_listeners_that_differ_in_more_than_their_address_are_no_matter_of_binding(listeners: str) -> None:
    result = answer("KRB-PRE-046", config(1, listeners=listeners)(observation(Z)), Z, None)
    assert result.verdict is Verdict.FAIL
    assert "bind_host" not in result.fix


def test_differences_never_show_a_secret() -> None:
    found = differing_keys(
        {"ssl.keystore.password": "hunter2", "a": "1", "x.secret": "s", "delegation.token.master.key": "hunter2"},
        {"ssl.keystore.password": "other", "a": "2", "delegation.token.master.key": "other"},
    )
    assert found == ("a (file: 1, rendered: 2)", "x.secret (only in the file)")


@pytest.mark.parametrize(
    ("version", "release"), [("1.8.0_402", 8), ("17.0.9", 17), ("21", 21), ("11.0.2+9", 11), ("none", 0)]
)
def test_java_releases(version: str, release: int) -> None:
    assert java_release(version) == release


def test_the_list_in_the_docs_is_current() -> None:
    """Run `kraft-runbook checks --markdown > docs/checks.md`."""
    assert (Path(__file__).resolve().parents[2] / "docs" / "checks.md").read_text() == render_checks()


def test_every_check_says_why_and_what_to_do() -> None:
    for operation in OPERATIONS.values():
        assert all(each.why and each.fix and not each.title.endswith(".") for each in operation.checks.values())


def test_a_code_has_one_meaning_whichever_operation_checks_it() -> None:
    by_code: dict[str, object] = {}
    for operation in OPERATIONS.values():
        for code, each in operation.checks.items():
            assert by_code.setdefault(code, each.function) is each.function, code


def test_each_gate_of_each_operation_can_have_a_number_of_signatures_of_its_own() -> None:
    """And no other name can: a misspelt gate would have fewer signatures than its owner believes."""
    gates = {str(terms.name) for each in OPERATIONS.values() for terms in each.table.gates}
    assert gates == set(get_args(GateName))


# -- the report --------------------------------------------------------------------------------------------------------

FAILED = CheckResult("KRB-X-1", "a | b", Severity.BLOCKING, Verdict.FAIL, "seen", "do this")
UNSURE = CheckResult("KRB-X-2", "c", Severity.BLOCKING, Verdict.UNKNOWN, "unread", "read it")
WARNED = CheckResult("KRB-X-3", "d", Severity.WARNING, Verdict.FAIL, "odd", "look")
FINE = CheckResult("KRB-X-4", "e", Severity.BLOCKING, Verdict.PASS, "good")


def test_an_unknown_blocks_and_a_warning_does_not() -> None:
    assert ChecksReport((FAILED, UNSURE, WARNED, FINE)).blocking == (FAILED, UNSURE)
    assert ChecksReport((WARNED, FINE)).verdict is Verdict.PASS
    assert ChecksReport((UNSURE, FINE)).verdict is Verdict.UNKNOWN
    assert ChecksReport((UNSURE, FAILED)).verdict is Verdict.FAIL
    assert ChecksReport((WARNED, FINE)).warnings == (WARNED,)


def test_a_report_shows_what_blocks_first_with_its_fix() -> None:
    report = ChecksReport((FINE, WARNED, UNSURE, FAILED))
    assert report.render_markdown().splitlines()[2] == "| `KRB-X-1` a \\| b | BLOCKING | FAIL | seen |"
    assert "- `KRB-X-1`: do this" in report.render_markdown()
    assert report.render_text().endswith("1 passed, 2 failed, 1 unknown: FAIL")
    assert [CheckResult.from_dict(r) for r in report.to_dict()["results"]] == list(report.results)


# -- dual write --------------------------------------------------------------------------------------------------------


def offsets(migration: int, high_watermark: int) -> Spoil:
    return both(zookeeper(migration=MigrationZnode(migration, 101, 4, 4)), with_quorum(high_watermark=high_watermark))


@pytest.mark.parametrize(
    ("before", "after", "seconds", "verdict"),
    [
        ((998, 1000), (1004, 1006), 3.0, Verdict.PASS),
        ((998, 1000), (998, 1006), 3.0, Verdict.FAIL),
        ((998, 1000), (998, 1006), 1.0, Verdict.UNKNOWN),
        ((998, 1000), (1000, 1006), 0.4, Verdict.PASS),
        ((998, 1005), (1000, 1006), 0.4, Verdict.UNKNOWN),
        ((999, 1000), (999, 1000), 0.4, Verdict.UNKNOWN),
        ((500, 5000), (1500, 5006), 3.0, Verdict.PASS),
        ((999, 1000), (999, 1000), 60.0, Verdict.PASS),
        ((999, 1000), (999, 1012), 6.0, Verdict.FAIL),
        ((-1, 1000), (-1, 1006), 3.0, Verdict.FAIL),
    ],
)
def test_dual_write_is_alive_when_its_offset_keeps_up(
    before: tuple[int, int], after: tuple[int, int], seconds: float, verdict: Verdict
) -> None:
    earlier, now = offsets(*before)(observation(D)), later(offsets(*after)(observation(D)), seconds)
    assert dual_write_liveness(earlier, now).verdict is verdict


def test_a_dead_dual_write_is_explained_though_every_metric_looks_healthy() -> None:
    result = dual_write_liveness(offsets(998, 1000)(observation(D)), later(offsets(998, 1010)(observation(D)), 5.0))
    assert "has stood at offset 998 for 5.0 s while the metadata log went on to 1009" in result.evidence
    assert "/brokers/topics/<topic>/partitions/<partition>/state" in result.fix
    assert result.blocks
    assert observation(D).controllers[101].metrics.zk_write_behind_lag == 0  # type: ignore[union-attr]


@pytest.mark.parametrize("code", ["KRB-GATE-012", "KRB-PRE-061"])
def test_a_deletion_that_kafka_does_not_write_to_zookeeper_comes_with_its_cure(code: str) -> None:
    assert (
        "last quota of a client id, of an IP or of a user's client id in ZooKeeper when it is deleted in dual write"
        in CHECKS[code].fix
    )
    assert "Restart the active controller with its migration flag" in CHECKS[code].fix


def test_a_copy_whose_end_was_never_written_is_no_missing_state_znode() -> None:
    result = dual_write_liveness(end_untold(), dual_writing(end_untold(), 3, dead=True))
    assert result.blocks and "no controller writes to ZooKeeper" in result.evidence
    assert result.fix.startswith("give /migration an offset by hand, then restart the active controller")


@pytest.mark.parametrize("moves_to", [50_000, 50_004])
def test_a_migration_beyond_the_log_is_of_another_log_and_no_dual_write(moves_to: int) -> None:
    """Controllers that came back with older disks, or a quorum of the same ids that was formed anew."""
    result = dual_write_liveness(
        offsets(50_000, 1000)(observation(D)), later(offsets(moves_to, 1010)(observation(D)), 5.0)
    )
    assert result.blocks and "reached only 1009 since: it is of another log" in result.evidence
    assert "restart no controller" in result.fix
    written = offsets(1009, 1000)(observation(D))  # read after the quorum was asked
    assert dual_write_liveness(written, later(offsets(1020, 1010)(observation(D)), 5.0)).verdict is Verdict.PASS


@pytest.mark.parametrize("spoil", [NO_ZOOKEEPER, NO_QUORUM])
def test_dual_write_is_unknown_when_either_side_is_unread(spoil: Spoil) -> None:
    good = observation(D)
    assert dual_write_liveness(spoil(good), later(good, 3)).verdict is Verdict.UNKNOWN
    assert dual_write_liveness(good, later(spoil(good), 3)).verdict is Verdict.UNKNOWN


def test_dual_write_without_migration_znode_fails_and_after_finalization_passes() -> None:
    gone = zookeeper(migration=None)(observation(D))
    assert dual_write_liveness(gone, later(gone, 3)).verdict is Verdict.FAIL
    final = observation(F)
    assert dual_write_liveness(final, later(final, 3)).verdict is Verdict.PASS
    assert final.observed_at == NOW


def test_a_migration_that_one_look_lacks_or_that_holds_no_copy_is_no_dual_write() -> None:
    good = offsets(990, 1000)(observation(D))
    gone = zookeeper(migration=None)
    assert dual_write_liveness(good, later(gone(good), 3)).verdict is Verdict.FAIL
    assert dual_write_liveness(gone(good), later(good, 3)).verdict is Verdict.FAIL
    copying = both(
        zookeeper(migration=MigrationZnode(-1, 101, -1, 4)),
        with_quorum(migration_state_record=ZkMigrationState.PRE_MIGRATION),
    )
    blank = dual_write_liveness(copying(good), later(copying(good), 3))
    assert blank.verdict is Verdict.FAIL and "has no offset: the metadata has not been copied" in blank.evidence
    first = zookeeper(migration=MigrationZnode(-1, -1, -1, -1))(good)
    assert dual_write_liveness(first, later(zookeeper(migration=MigrationZnode(-1, -1, -1, -1))(good), 1)).verdict is (
        Verdict.FAIL
    ), "whatever lies between the looks"


def test_an_empty_directory_is_no_matter_to_a_broker_that_formats_it() -> None:
    seen = on_host(2, unformatted_dirs={"/disk2": "it is empty"})(observation(H))
    assert answer("KRB-PRE-087", seen, H, None).passed
    restarts = OPERATIONS["rolling_restart"].checks
    assert restarts["KRB-PRE-087"].run(seen, SPEC).passed
    assert restarts["KRB-PRE-087"].run(broker(2, mode=BrokerMode.KRAFT)(seen), SPEC).blocks


@pytest.mark.parametrize("operation", ["rolling_restart", "upgrade_software"])
def test_no_node_is_restarted_beside_a_full_disk(operation: str) -> None:
    full = on_host(2, free_bytes={"/disk1": 2**20})(observation(F))
    found = OPERATIONS[operation].checks["KRB-PRE-124"].run(full, SPEC)
    assert found.blocks and "node 2 has 1 MiB free at /disk1" in found.evidence


@pytest.mark.parametrize(("phase", "node"), [(D, 2), (F, 2), (D, 103), (F, 103)])
def test_a_node_that_is_down_since_its_directory_is_not_formatted_is_named(phase: Phase, node: int) -> None:
    down = broker(2, running=False, mode=WHY) if node == 2 else a_controller(103, running=False, mode=WHY)
    seen = both(down, on_host(node, unformatted_dirs={"/disk2": "it is empty"}))(observation(phase))
    found = OPERATIONS["rolling_restart"].checks["KRB-PRE-087"].run(seen, SPEC)
    assert found.verdict is Verdict.FAIL
    assert f"node {node} would not start: /disk2: it is empty" in found.evidence


def test_controllers_that_do_not_exist_yet_need_no_formatted_directory() -> None:
    seen = both(*(on_host(i, unformatted_dirs={"/c": "it does not exist"}) for i in SPEC.node_ids))(observation(Z))
    assert OPERATIONS["rolling_restart"].checks["KRB-PRE-087"].run(seen, SPEC).passed


def test_what_needs_controller_deleted_is_not_advised_where_the_copy_may_be_done() -> None:
    """One hybrid broker down is enough for the phase to be UNKNOWN."""
    seen = replicas(apart=(IdsApart("orders", "new", {"old": (1,)}),), apart_count=1)(observation(H))
    asked = {each.code for each in CHECKS.run(seen, SPEC, Phase.UNKNOWN).results}
    assert not {"KRB-PRE-026", "KRB-PRE-084"} & asked
    assert {"KRB-PRE-085", "KRB-PRE-086"} <= asked


def test_strays_of_gone_topics_and_those_that_a_move_left_are_named_and_pass() -> None:
    gone = GoneTopic("G", "gone", (GoneStray(2, "/d/gone-0.ab-stray", 0),), 7)
    seen = replicas(left_over=("broker 3: /d/t-0.ab-stray",), strays_left_over=2, strays_of_gone=7, gone=(gone,))(
        observation(H)
    )
    found = answer("KRB-PRE-086", seen, H, "dual_write")
    assert found.passed
    assert found.evidence == (
        "none of 132 replicas; of topics that are gone 7: broker 2: /d/gone-0.ab-stray, …;"
        " of partitions that the broker does not have 2: broker 3: /d/t-0.ab-stray, …"
    )


@pytest.mark.parametrize(("phase", "out", "told"), [(Z, 3, False), (H, 3, True), (H, 2, False)])
def test_a_directory_without_an_id_is_the_cause_only_after_the_copy_and_of_its_own_broker(
    phase: Phase, out: int, told: bool
) -> None:
    """Other replicas may be out of sync for other reasons, so the usual way out stays."""
    lost = topics(under_replicated=("a-0",), under_replicated_count=1, out_of_sync_by_broker={out: 1})
    found = answer("KRB-PRE-029", both(WITHOUT_ID, lost)(observation(phase)), phase, "dual_write")
    assert ("On broker 3 replicas lack partition.metadata: 1: /d/gone-0." in found.evidence) is told
    assert found.fix.startswith("bring the replicas back into sync first")
    assert ("KRB-PRE-085" in found.fix) is told
