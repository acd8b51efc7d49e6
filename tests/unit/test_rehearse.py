"""A rehearsal that ends early: whose fault it is, and that nothing is left."""

from __future__ import annotations

import subprocess
import time
import xmlrpc.client
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from observations import SPEC
from py4j.protocol import Py4JNetworkError
from pyspark.errors import PySparkRuntimeError
from rehearsing import asking, made_up, raising, rehearsed, short_directory, source_in, throwaway_in

from kraft_runbook.cluster.rehearsal_settings import Rehearsal
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.errors import Refused, StepFailed, Unreachable
from kraft_runbook.evidence.kinds import Canary
from kraft_runbook.io.local.cores import Processors, Quota
from kraft_runbook.io.local.usage import Look
from kraft_runbook.procedures.throwaway_cluster import ThrowawayCluster
from kraft_runbook.procedures.throwaway_place import own_directory
from kraft_runbook.rehearsal.as_copied import assigned_brokers
from kraft_runbook.rehearsal.halving import Culprits, Search
from kraft_runbook.rehearsal.kafka_said import KafkaSaid
from kraft_runbook.rehearsal.suspects import Halved
from kraft_runbook.rehearsal.verdict import MISMATCH, TREE_CHANGED, Finding, Rung, Verdict
from kraft_runbook.steps import rehearse as steps_rehearse
from kraft_runbook.steps.ladder import COPY, WINDOW, Ladder, RungEnded
from kraft_runbook.steps.rehearse import (
    METADATA_ERRORS,
    Climb,
    SourceAtWork,
    _blame,
    _narrowed,
    _note_ladder,
    _note_usage,
    rehearse,
)

tmp_path = pytest.fixture(short_directory)


NO_GATEWAY = PySparkRuntimeError(errorClass="JAVA_GATEWAY_EXITED", messageParameters={})


@pytest.fixture
def source(tmp_path: Path) -> ClusterSpec:
    return source_in(tmp_path)


@pytest.mark.parametrize(
    ("error", "verdict", "why"),
    [
        (Unreachable("ZooKeeper does not answer", way_out="x"), "INCONCLUSIVE", "ZooKeeper does not answer"),
        (StepFailed("a wait ran out", way_out="x"), "INCONCLUSIVE", "a wait ran out"),
        (OSError(28, "No space left on device"), "INCONCLUSIVE", "No space left"),
        (MemoryError(), "INCONCLUSIVE", "this machine: MemoryError"),
        (subprocess.TimeoutExpired("ansible", 300), "INCONCLUSIVE", "this machine: TimeoutExpired"),
        (xmlrpc.client.Fault(1, "SHUTDOWN_STATE"), "INCONCLUSIVE", "SHUTDOWN_STATE"),
        (Py4JNetworkError("the JVM is gone"), "INCONCLUSIVE", "the JVM is gone"),
        (RuntimeError("can't start new thread"), "INCONCLUSIVE", "this machine: RuntimeError: can't start new thread"),
        (NO_GATEWAY, "INCONCLUSIVE", "JAVA_GATEWAY_EXITED"),
        (RuntimeError("cannot schedule new futures"), "FAILED", "this tool failed: RuntimeError"),
        (PySparkRuntimeError("a bug"), "FAILED", "this tool failed: PySparkRuntimeError"),
        (KeyboardInterrupt(), "INCONCLUSIVE", "it was interrupted"),
        (KeyError("a bug"), "FAILED", "this tool failed: KeyError"),
    ],
)
def test_whose_fault_it_is_and_nothing_is_left(
    source: ClusterSpec, error: BaseException, verdict: str, why: str
) -> None:
    told = rehearsed(source, raising(error))
    assert told.verdict == verdict
    assert any(why in each for each in told.reasons), told.reasons
    assert any("not reached" in each for each in told.reasons)
    assert source.rehearsal is not None
    assert not own_directory(source.rehearsal, source.name).exists()


class TimeIsOver(BaseException):
    """As Airflow's time-out: no Exception."""


def test_it_is_on_record_once_it_has_begun_and_with_its_verdict_before_anything_is_removed(source: ClusterSpec) -> None:
    assert source.rehearsal is not None
    place = own_directory(source.rehearsal, source.name)
    kept: list[tuple[str, tuple[str, ...], bool]] = []

    def copy(*_: Any, **__: Any) -> Any:
        assert [each[0] for each in kept] == ["INCONCLUSIVE"], "a rehearsal that is killed has this record alone"
        raise KeyError("a bug")

    told = rehearsed(source, copy, record=lambda told: kept.append((told.verdict, told.reasons, place.exists())))
    assert kept[0] == ("INCONCLUSIVE", ("INCONCLUSIVE: it has not ended: it is under way, or it was killed",), True)
    assert kept[1:] == [(told.verdict, told.reasons, True)] and told.verdict == "FAILED"
    assert not place.exists()


def test_each_record_names_those_that_lay_in_the_future_when_it_was_written(source: ClusterSpec) -> None:
    """The clock may be corrected meanwhile."""
    kept: list[Canary] = []
    seen = iter([("sun/0",), ("sun/0", "mon/0")])
    rehearsed(source, raising(Unreachable("x", way_out="x")), record=kept.append, ahead=lambda: next(seen))
    assert [each.ahead for each in kept] == [("sun/0",), ("sun/0", "mon/0")]


def test_what_ends_the_task_is_on_record_and_is_raised_again(source: ClusterSpec) -> None:
    kept: list[Canary] = []
    with pytest.raises(TimeIsOver):
        rehearsed(source, raising(TimeIsOver("2 h")), record=kept.append)
    assert [each.verdict for each in kept] == ["INCONCLUSIVE", "INCONCLUSIVE"]
    assert kept[1].reasons[0] == "INCONCLUSIVE: it was ended from outside: TimeIsOver: 2 h"
    assert source.rehearsal is not None and not own_directory(source.rehearsal, source.name).exists()


@pytest.mark.parametrize("error", [StepFailed("pid 7 can't be ended", way_out="end it"), OSError("pid 7 is there")])
def test_a_removal_that_fails_is_told_and_does_not_replace_the_verdict(source: ClusterSpec, error: Exception) -> None:
    def remove(_: Path) -> Any:
        raise error

    kept: list[Canary] = []
    lines: list[str] = []
    ask = asking(copy=raising(KeyError("a bug")), record=kept.append, remove=remove)
    told = rehearse(source, secrets=lambda ref: "", tell=lines.append, ask=ask)
    assert told.verdict == "FAILED" and kept[-1] == told
    assert "is not removed" in lines[-1] and "pid 7" in lines[-1] and "What to do" in lines[-1]


def test_where_it_can_not_be_put_on_record_it_does_not_begin_and_nothing_is_left(source: ClusterSpec) -> None:
    def record(_: Canary) -> None:
        raise OSError("a full disk")

    with pytest.raises(OSError, match="a full disk"):
        rehearsed(source, raising(AssertionError("it began")), record=record)
    assert source.rehearsal is not None and not own_directory(source.rehearsal, source.name).exists()


def test_one_that_is_being_migrated_is_not_rehearsed_and_nothing_is_on_record(source: ClusterSpec) -> None:
    """A verdict on half of a migration would hide an earlier one that PASSED, and tell nothing."""
    kept: list[Canary] = []
    with pytest.raises(SourceAtWork, match="while it is migrated or changed: run sun holds it; /controller names"):
        rehearsed(
            source,
            raising(AssertionError("it began")),
            record=kept.append,
            at_work=lambda *_, **__: ("run sun holds it", "/controller names 101"),
        )
    assert kept == [] and source.rehearsal is not None
    assert not own_directory(source.rehearsal, source.name).exists()


def test_that_the_source_does_not_answer_is_on_record(source: ClusterSpec) -> None:
    def no_answer(*_: Any, **__: Any) -> Any:
        raise Unreachable("ZooKeeper does not answer", way_out="x")

    kept: list[Canary] = []
    rehearsed(source, raising(Unreachable("no answer", way_out="x")), record=kept.append, at_work=no_answer)
    assert [each.verdict for each in kept] == ["INCONCLUSIVE", "INCONCLUSIVE"]


def test_the_source_is_named_only_once_it_was_read(source: ClusterSpec) -> None:
    told = rehearsed(source, raising(Unreachable("no", way_out="x")))
    assert (told.source, told.kept, told.measured["copy"]) == ("", {}, None)


COPIED = SimpleNamespace(
    snapshot=None,
    source_cluster_id="c291cmNl",
    kept=SimpleNamespace(to_dict=dict),
    why_not_whole=(),
    live_brokers=frozenset({1}),
    assigned_brokers=frozenset({1, 2}),
    partitions=5,
    topics=1,
    znodes=20,
    seconds=4000.0,
    cpu_seconds=3.25,
    configured_brokers=frozenset({9001}),
    left_out_told=("/config/brokers/<default>, metric.reporters: classes that may send to other servers",),
)


def throwaways(monkeypatch: pytest.MonkeyPatch, **acts: Any) -> None:
    """Those that act so, and keep no copied tree."""
    for owner, name, act in [(steps_rehearse, "keep_tree", lambda *_: None)] + [
        (ThrowawayCluster, name, act) for name, act in acts.items()
    ]:
        monkeypatch.setattr(owner, name, act)


def climbed(source: ClusterSpec, monkeypatch: pytest.MonkeyPatch, **copied: Any) -> Canary:
    """One of which every rung is climbed, with this of the copied tree."""

    def nothing(*_: Any, **__: Any) -> None:
        pass

    whole = {"seconds": 0.5, "live_brokers": frozenset({1, 2, 3})}
    tree = SimpleNamespace(**vars(COPIED) | whole | copied)
    throwaways(
        monkeypatch,
        prepare=nothing,
        start_zookeeper=nothing,
        znodes=lambda _: tree.znodes,
        start_brokers=nothing,
    )
    return rehearsed(source, lambda *_, **__: tree, ladder=made_up())


def limited(source: ClusterSpec, **limits: float) -> ClusterSpec:
    settings = Rehearsal.model_validate(source.rehearsal.model_dump() | {"limits": limits} if source.rehearsal else {})
    return source.model_copy(update={"rehearsal": settings})


def test_one_of_which_all_was_seen_and_every_limit_holds_passes(
    source: ClusterSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = climbed(limited(source, copy=6.1, window=1.6), monkeypatch)
    assert (told.verdict, told.reasons) == ("PASSED", ())


def test_a_znode_that_could_not_be_read_is_inconclusive_though_all_else_is_well(
    source: ClusterSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = climbed(source, monkeypatch, why_not_whole=("/config/users/x could not be read: no permission",))
    assert told.verdict == "INCONCLUSIVE"
    assert told.reasons == ("INCONCLUSIVE: /config/users/x could not be read: no permission",)


def test_a_limit_that_does_not_hold_fails_though_all_else_is_well(
    source: ClusterSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = climbed(limited(source, copy=5.9), monkeypatch)
    assert told.verdict == "FAILED"
    assert told.reasons == ("FAILED: the metadata copy took 6.0 s; the limit is 5.9 s",)


def test_the_time_limit_is_of_the_whole_rehearsal_and_nothing_is_started_after_it(
    source: ClusterSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert source.rehearsal is not None
    limited = source.model_copy(update={"rehearsal": source.rehearsal.model_copy(update={"time_limit": 0.05})})

    def slow(*_: Any, **__: Any) -> Any:
        time.sleep(0.1)
        return COPIED

    seats: list[int] = []
    throwaways(monkeypatch, prepare=lambda self, *_, **__: seats.extend(self.spec.broker_ids))
    told = rehearsed(limited, slow)
    assert seats == [9002, 9003], "broker 9001 was removed, and left a config"
    assert told.verdict == "INCONCLUSIVE"
    assert any("reached before anything was started: the tree took 4000 s to read" in each for each in told.reasons)
    assert "/config/brokers/<default>, metric.reporters: classes that may send to other servers" in told.left_out


def test_a_broker_that_was_dead_when_the_tree_was_copied_is_found_though_a_stand_in_revives_it(
    source: ClusterSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ended(*_: Any, **__: Any) -> None:
        raise RungEnded()

    copied = SimpleNamespace(**{**vars(COPIED), "assigned_brokers": frozenset({1, 2, 77})})
    throwaways(monkeypatch, prepare=ended)
    told = rehearsed(source, lambda *_, **__: copied)
    assert told.verdict == "FAILED" and "KRB-PRE-028: partitions are assigned to broker 77, which" in told.reasons[0]
    assert any(
        each.startswith("INCONCLUSIVE: KRB-PRE-004: brokers 2, 3 of the cluster file were not live")
        for each in told.reasons
    )


def test_a_file_without_a_rehearsal_is_refused() -> None:
    with pytest.raises(Refused, match="has no 'rehearsal'"):
        rehearse(SPEC.model_copy(update={"rehearsal": None}), secrets=lambda ref: "", tell=lambda line: None)


@pytest.mark.parametrize("missing", ["libs/kafka_2.13-{}.jar", "agent/jmx_prometheus_javaagent.jar"])
def test_a_machine_without_kafka_or_the_exporter_is_refused(source: ClusterSpec, missing: str) -> None:
    assert source.rehearsal is not None and source.rehearsal.kafka_home is not None
    (Path(source.rehearsal.kafka_home) / missing.format(source.kafka.version)).unlink()
    with pytest.raises(Refused, match=r"on this machine|exporter is not in"):
        rehearsed(source, raising(AssertionError()))


@pytest.mark.parametrize(
    ("done", "verdict"),
    [([], Verdict.INCONCLUSIVE), ([Rung.FORWARD], Verdict.FAILED)],
    ids=["at the first start gate", "once Kafka copied"],
)
def test_an_isr_that_was_short_when_the_tree_was_copied_is_no_fault_of_the_metadata(
    done: list[Rung], verdict: Verdict
) -> None:
    short = Finding(Verdict.FAILED, "gate start: KRB-PRE-029", "KRB-PRE-029")
    nothing: Any = None
    ladder = Ladder(nothing, nothing, nothing, nothing, done=done, found=[short], refused=["try 1 of 5"])
    climb = Climb()
    _note_ladder(climb, ladder, assigned_brokers({1}, live={1}, declared={1}))
    assert [each.verdict for each in climb.found] == [verdict]
    assert climb.done == done and climb.measured.refused == ("try 1 of 5",)


# -- whose fault an error is -------------------------------------------------------------------------------------------


ERROR = StepFailed("a wait ran out", way_out="x")


def blamed(*logs: tuple[str, list[str]], **how: Any) -> list[tuple[str, str]]:
    """What is found where the climb ended so, as ``ending`` has it."""
    return [(found.verdict.value, found.what) for found in ending(*logs, **how)[0].found]


def ending(
    *logs: tuple[str, list[str]],
    out_of_time: bool = False,
    heap: str | None = None,
    error: Exception = ERROR,
    before: tuple[Finding, ...] = (),
    stood_still: str = "",
    rung: Rung = Rung.FORWARD,
    seats: tuple[str, ...] = (),
) -> tuple[Climb, KafkaSaid | None]:
    """A climb that ended so, with these logs of the throwaway's services, and what is to be halved. ``before``: what
    gates had found. ``seats``: their services.
    """
    brokers = tuple(SPEC.brokers[0].model_copy(update={"service": each}) for each in seats)
    throwaway: Any = SimpleNamespace(
        logs=lambda: logs,
        stood_still=lambda: stood_still,
        spec=SPEC.model_copy(update={"controller_heap": heap, "brokers": brokers}),
        heaps={service: "512m" for service in ("broker-9001", "zookeeper", SPEC.controllers[0].service)},
    )
    watch: Any = SimpleNamespace(out_of_time=out_of_time)
    climb = Climb(found=list(before))
    source = SPEC.model_copy(update={"rehearsal": Rehearsal()})
    return climb, _blame(climb, error, rung, throwaway, watch, source)


@pytest.mark.parametrize("code", [TREE_CHANGED, MISMATCH])
def test_what_was_compared_after_this_machine_stood_still_is_no_fault_of_the_metadata(code: str) -> None:
    """Fenced brokers lose their leaders, which changes every partition that they lead."""
    wrong = RungEnded(Finding(Verdict.FAILED, "4,123 znodes changed", code))
    assert blamed(error=wrong) == [("FAILED", "4,123 znodes changed")]
    (found,) = blamed(error=wrong, stood_still="the quorum fenced broker 7")
    assert found == ("INCONCLUSIVE", "this machine stood still (the quorum fenced broker 7): 4,123 znodes changed")
    another = RungEnded(Finding(Verdict.FAILED, "gate start: KRB-PRE-022", "KRB-PRE-022"))
    assert blamed(error=another, stood_still="the quorum fenced broker 7")[0][0] == "FAILED", "it was so in the copy"


FAULT = [
    "[1] ERROR Encountered fatal fault: Error in MigrateMetadataEvent (org.x)",
    "java.lang.RuntimeException: /feature",
]


def test_a_controller_that_ended_in_its_copy_is_the_metadatas_fault() -> None:
    (found,) = blamed(("controller-101", FAULT), ("broker-9001", ["[1] INFO fine"]))
    assert found[0] == "FAILED" and "MigrateMetadataEvent" in found[1] and "RuntimeException: /feature" in found[1]


RAFT = [
    "[1] ERROR Encountered fatal fault: Unexpected error in raft IO thread (org.x)",
    "java.lang.IllegalStateException: x",
]
COPY_CUT_SHORT = [
    "[1] ERROR [KRaftMigrationDriver id=101] Aborting the metadata migration from ZooKeeper to KRaft. (org.x)",
    "java.lang.RuntimeException: java.util.concurrent.ExecutionException",
    "Caused by: org.apache.kafka.common.errors.NotControllerException: No controller appears to be active.",
    "[1] ERROR Encountered fatal fault: Aborting the ZK migration (org.x)",
]


@pytest.mark.parametrize("rung", [Rung.FORWARD, Rung.BACK, Rung.FINALIZE])
@pytest.mark.parametrize("log", [RAFT, COPY_CUT_SHORT], ids=["raft", "an election in the copy"])
def test_a_controller_that_ended_of_its_quorum_is_no_fault_of_the_metadata(log: list[str], rung: Rung) -> None:
    """A machine that stands still brings elections; a log directory that is slow ends the raft thread."""
    ended = Finding(Verdict.FAILED, "gate rollback: controller 101 does not run", "KRB-PRE-004")
    gate, found = blamed(("controller-101", log), rung=rung, error=RungEnded(ended))
    assert gate[0] == "INCONCLUSIVE", "of what runs, as where the machine ended it"
    assert found[0] == "INCONCLUSIVE" and f"a controller had ended when '{rung}' did" in found[1]


def test_what_the_metadata_ended_is_told_beside_a_fault_of_the_quorum() -> None:
    (found,) = blamed(("controller-101", RAFT), ("controller-102", FAULT))
    assert found[0] == "FAILED" and "Kafka's own copy ended its controllers: Error in MigrateMetadataEvent" in found[1]


UNABLE = [
    "[1] ERROR Encountered fatal fault: Unable to apply ConfigRecord record at offset 7 on standby controller (org.x)"
]


@pytest.mark.parametrize(("rung", "halved"), [(Rung.FORWARD, True), (Rung.FORWARD_AGAIN, False), (Rung.BACK, False)])
def test_a_controller_that_the_metadata_ended_is_told_by_its_rung_and_the_first_copy_alone_is_halved(
    rung: Rung, halved: bool
) -> None:
    (found,) = blamed(("controller-101", UNABLE), rung=rung)
    copied = rung in (Rung.FORWARD, Rung.FORWARD_AGAIN)
    said = "Kafka's own copy ended its controllers" if copied else "a controller had ended when 'back to ZooKeeper' did"
    assert found[0] == "FAILED" and found[1].startswith(f"{said}: Unable to apply ConfigRecord")
    assert (ending(("controller-101", UNABLE), rung=rung)[1] is not None) is halved


def test_a_machine_without_memory_is_the_machines_though_a_controller_ended() -> None:
    (found,) = blamed(("broker-9001", ["java.lang.OutOfMemoryError: Metaspace"]), ("controller-101", FAULT))
    assert found[0] == "INCONCLUSIVE" and "this machine is at fault, says broker-9001" in found[1]


@pytest.mark.parametrize("service", ["broker-9001", "zookeeper"])
def test_a_full_heap_that_the_rehearsal_chose_is_not_the_machines_fault(service: str) -> None:
    said = "Terminating due to java.lang.OutOfMemoryError: Java heap space"
    (found,) = blamed((service, [said]), ("controller-101", FAULT), heap="1g")
    assert found == (
        "INCONCLUSIVE",
        f"the heap that the rehearsal chose for {service}, 512m, is too small: it says: {said}",
    )


@pytest.mark.parametrize("said", ["Java heap space", "GC overhead limit exceeded"])
def test_a_controllers_heap_that_is_full_is_the_cluster_files_fault(said: str) -> None:
    """The real controllers have the same heap, and the same metadata."""
    service, line = SPEC.controllers[0].service, f"Terminating due to java.lang.OutOfMemoryError: {said}"
    (found,) = blamed(("broker-9001", ["bind: Address already in use"]), (service, [*FAULT, line]), heap="512m")
    assert found[0] == "FAILED" and "controller_heap, 512m, is too small" in found[1] and said in found[1]
    (found,) = blamed((service, [line]))
    assert found[0] == "INCONCLUSIVE", "the file gives no heap: the rehearsal's own estimate was too small"
    assert f"the heap that the rehearsal chose for {service}, 512m, is too small" in found[1]


@pytest.mark.parametrize("said", ["unable to create native thread", "Cannot allocate memory"])
def test_memory_that_the_machine_lacks_is_the_machines_fault_also_in_a_controller(said: str) -> None:
    service = SPEC.controllers[0].service
    (found,) = blamed((service, [*FAULT, f"java.lang.OutOfMemoryError: {said}"]), heap="512m")
    assert found[0] == "INCONCLUSIVE" and f"this machine is at fault, says {service}" in found[1]


def test_a_time_limit_that_was_reached_is_nobodys() -> None:
    (found,) = blamed(("controller-101", FAULT), out_of_time=True)
    assert found[0] == "INCONCLUSIVE" and "time limit of 7200 s was reached" in found[1]


def test_what_no_log_explains_is_no_pass() -> None:
    assert blamed(("controller-101", [])) == [("INCONCLUSIVE", "a wait ran out")]


KILLED = "2026-11-27 04:00:00,001 WARN exited: broker-9001 (terminated by SIGKILL; not expected)"
STOPPED = "2026-11-27 04:00:00,001 WARN stopped: broker-9001 (terminated by SIGKILL)"
GATE = (
    Finding(Verdict.FAILED, "gate dual_write: broker 9001 does not run", "KRB-PRE-004"),
    Finding(Verdict.FAILED, "gate dual_write: a topic is on one side alone", "KRB-GATE-004"),
)


@pytest.mark.parametrize("error", [ERROR, RungEnded()], ids=["a wait", "a gate"])
@pytest.mark.parametrize("log", [("supervisord", [KILLED]), ("broker-9001", ["IOException: No space left on device"])])
def test_what_a_gate_finds_of_a_process_that_the_machine_ended_is_no_fault_of_the_metadata(
    error: StepFailed | RungEnded, log: tuple[str, list[str]]
) -> None:
    runs, tree, machine = blamed(log, error=error, before=GATE)
    assert (runs[0], tree[0], machine[0]) == ("INCONCLUSIVE", "FAILED", "INCONCLUSIVE")
    assert machine[1] == f"this machine is at fault, says {log[0]}: {log[1][0]}"


def test_a_gate_that_ends_a_rung_is_asked_for_the_machines_fault(
    source: ClusterSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    def prepare(throwaway: ThrowawayCluster, *_: Any, **__: Any) -> None:
        throwaway.here.logs.mkdir(parents=True)
        (throwaway.here.logs / "supervisord.log").write_text(KILLED)

    def ended(*_: Any) -> None:
        raise RungEnded()

    throwaways(monkeypatch, prepare=prepare, start_zookeeper=ended)
    told = rehearsed(source, lambda *_, **__: COPIED)
    assert told.measured["tree_cpu"] == 3.25
    rungs = told.measured["rungs"]
    assert list(rungs) == ["copy the tree", "start the throwaway"], "with the one that ended it"
    assert rungs["copy the tree"]["cpu"] == 3.25 and rungs["start the throwaway"]["load"] is not None
    assert f"INCONCLUSIVE: this machine is at fault, says supervisord: {KILLED}" in told.reasons


def test_the_copy_and_the_window_have_what_was_waited_for_in_them(tmp_path: Path) -> None:
    throwaway, climb = throwaway_in(tmp_path), Climb()
    usage = throwaway.usage
    usage.processors = Processors(64, 64, (Quota(2.0, tmp_path / "none"),))
    usage.looks += [Look(10, 1.0, 0.0, 0.0), Look(20, 1.5, 4.0, 8.0), Look(30, 0.5, 5.0, 8.0)]
    usage.spans |= {Rung.COPY_THE_TREE: (1, 2), COPY: (10, 20), WINDOW: (20, 30)}
    _note_usage(climb, throwaway)
    found = climb.measured
    assert (found.copy_cpu, found.copy_load, found.copy_throttled) == (4.0, 1.5, 0.4)
    assert (found.window_cpu, found.window_load, found.window_throttled) == (1.0, 1.5, 0.0)


@pytest.mark.parametrize(
    ("held", "why"),
    [
        (19, "20 znodes were copied, and the ZooKeeper that was started on them holds 19: this tool's snapshot"),
        (21, "holds 21"),
        (None, "ZooKeeper does not say how many znodes it holds: 20 were copied"),
        (20, "it goes on"),
    ],
)
def test_a_znode_that_was_lost_on_the_way_into_zookeeper_ends_it_before_a_broker_is_started(
    source: ClusterSpec, monkeypatch: pytest.MonkeyPatch, held: int | None, why: str
) -> None:
    """The tree is compared with what it was once a controller served: what was lost before that nobody would miss."""

    def prepare(throwaway: ThrowawayCluster, *_: Any, **__: Any) -> None:
        throwaway.here.logs.mkdir(parents=True)

    def start_brokers(_: Any) -> None:
        raise StepFailed("it goes on", way_out="x")

    throwaways(
        monkeypatch,
        prepare=prepare,
        start_zookeeper=lambda _: None,
        znodes=lambda _: held,
        start_brokers=start_brokers,
    )
    told = rehearsed(source, lambda *_, **__: COPIED)
    assert told.verdict == "INCONCLUSIVE"
    assert [why in each for each in told.reasons if "it goes on" in each or "znodes" in each] == [True]


@pytest.mark.parametrize("error", [KeyError("a part that is gone"), NO_GATEWAY], ids=["a bug", "no JVM"])
def test_an_error_of_this_tool_is_asked_for_the_machines_fault_and_kafkas_first(error: Exception) -> None:
    """What was ended under the steps is no answer that they know."""
    machine, tool = blamed(("supervisord", [KILLED]), error=error)
    assert machine == ("INCONCLUSIVE", f"this machine is at fault, says supervisord: {KILLED}")
    assert tool[0] == "INCONCLUSIVE" and f"then this tool ended with {type(error).__name__}" in tool[1]
    kafka, _ = blamed(("controller-101", FAULT), error=error)
    assert kafka[0] == "FAILED" and "Kafka's own copy" in kafka[1]
    (alone,) = blamed(error=error)
    assert alone[0] == ("INCONCLUSIVE" if error is NO_GATEWAY else "FAILED")


def test_any_error_of_a_climb_is_so_asked(source: ClusterSpec, monkeypatch: pytest.MonkeyPatch) -> None:
    def prepare(throwaway: ThrowawayCluster, *_: Any, **__: Any) -> None:
        throwaway.here.logs.mkdir(parents=True)
        (throwaway.here.logs / "supervisord.log").write_text(KILLED)

    throwaways(monkeypatch, prepare=prepare, start_zookeeper=lambda *_: {}["gone"])
    told = rehearsed(source, lambda *_, **__: COPIED)
    assert told.verdict == "INCONCLUSIVE" and any(each.endswith(KILLED) for each in told.reasons), told.reasons


def test_what_a_gate_finds_once_the_time_is_over_is_nobodys() -> None:
    """The watch has ended every process."""
    runs, _, over = blamed(error=RungEnded(), before=GATE, out_of_time=True)
    assert runs[0] == over[0] == "INCONCLUSIVE" and "time limit" in over[1]


def test_a_gate_that_no_log_explains_is_the_metadatas_and_one_that_a_fault_explains_is_told_so() -> None:
    assert [verdict for verdict, _ in blamed(("supervisord", [STOPPED]), error=RungEnded(), before=GATE)] == [
        "FAILED",
        "FAILED",
    ]
    *_, heap = blamed(
        (SPEC.controllers[0].service, ["OutOfMemoryError: Java heap space"]), error=RungEnded(), before=GATE, heap="1g"
    )
    assert heap[0] == "FAILED" and "controller_heap, 1g, is too small" in heap[1]


def test_what_a_controller_could_not_apply_is_told_beside_the_gate_that_counts_it() -> None:
    """It ended nobody, so no suspects are halved. What ended the climb stands before it; the metadata is at fault
    where a gate counted it.
    """
    log = ["ERROR Encountered metadata publishing fault: Uncaught exception (org.apache.kafka.server.fault.X)"]
    name = SPEC.controllers[0].service
    said = f"{name} could not apply what it had copied: Uncaught exception"
    counted = Finding(Verdict.FAILED, "controller 101 counts 1", METADATA_ERRORS)
    assert blamed((name, log), error=RungEnded(counted))[-1] == ("FAILED", said)
    late = StepFailed("the deadline of 3600 s has passed", way_out="wait")
    assert blamed((name, log), error=late) == [("INCONCLUSIVE", late.problem), ("INCONCLUSIVE", said)]
    no_snapshot = ["ERROR Encountered metadata publishing fault: KRaft snapshot file generation error (org.apache.X)"]
    assert blamed((name, no_snapshot), error=late) == [("INCONCLUSIVE", late.problem)]


def test_a_comparison_that_does_not_match_is_told_first_and_once() -> None:
    own = Finding(Verdict.FAILED, "parity_in_hybrid is MISMATCH")
    assert blamed(error=RungEnded(own)) == [("FAILED", own.what)]
    assert [verdict for verdict, _ in blamed(("supervisord", [KILLED]), error=RungEnded(own))] == [
        "FAILED",
        "INCONCLUSIVE",
    ]


# -- which znode it was ------------------------------------------------------------------------------------------------

DIED = KafkaSaid("Aborting the ZK migration", ("java.lang.IllegalArgumentException: requirement failed",))


def narrowed(halve: Any) -> tuple[str, str]:
    throwaway: Any = SimpleNamespace(tell=lambda line: None)
    found = _narrowed(halve, throwaway, Path("copied-tree"), DIED)
    return found.verdict.value, found.what


def test_what_halving_the_suspects_finds_is_a_reason_of_its_own() -> None:
    culprit = Culprits(("/delegation_token/tokens/x",), True)
    verdict, what = narrowed(lambda *_: Halved(3, Search((culprit,), 4, others=False), {}))
    assert verdict == "FAILED" and "/delegation_token/tokens/x alone; without it the copy is done" in what


@pytest.mark.parametrize("error", [StepFailed("no ZooKeeper", way_out="x"), OSError("no ZooKeeper")])
def test_a_search_that_fails_takes_nothing_from_the_verdict(error: Exception) -> None:
    def halve(*_: Any) -> Any:
        raise error

    verdict, what = narrowed(halve)
    assert verdict == "FAILED" and what.endswith("which znode, is not known: no ZooKeeper")
