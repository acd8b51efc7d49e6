"""What a throwaway cluster lays out before anything is started, and how its ladder goes on or ends."""

from __future__ import annotations

import dataclasses
import stat
import threading
import time
import xmlrpc.client
from pathlib import Path, PurePosixPath
from types import SimpleNamespace
from typing import Any

import pytest
from asked_java import ask_java
from kafka_jars import kafka_jar
from observations import SPEC, observation
from recording import RecordingCluster
from znodes_in_memory import InMemory, Tree, read_snapshot

from kraft_runbook.cluster.cluster_file import load_cluster
from kraft_runbook.cluster.observation import was_read
from kraft_runbook.cluster.phases import Phase
from kraft_runbook.cluster.rehearsal_settings import Rehearsal
from kraft_runbook.errors import Refused, StepFailed
from kraft_runbook.io.kafka.stand_ins import Told, told_file
from kraft_runbook.io.local import supervision
from kraft_runbook.io.local.layout import zookeeper_servers
from kraft_runbook.io.zookeeper.snapshot_file import ZOOKEEPERS_OWN, encoded, snapshot_file
from kraft_runbook.parity.parity_report import Verdict as Parity
from kraft_runbook.procedures.print_tree import print_tree
from kraft_runbook.procedures.throwaway_cluster import CHATTY, STAND_INS, ThrowawayCluster, Watch, installed_jars
from kraft_runbook.rehearsal.kafka_said import fatal_of
from kraft_runbook.rehearsal.throwaway import heaps, throwaway_of
from kraft_runbook.rehearsal.tree_prints import TreePrint
from kraft_runbook.rehearsal.verdict import MISMATCH, TREE_CHANGED, Finding, Verdict
from kraft_runbook.steps.back import SET_ASIDE
from kraft_runbook.steps.forward import TO_HYBRID
from kraft_runbook.steps.judged_gates import JudgedPorts
from kraft_runbook.steps.ladder import LEAVE, TRIES, Ladder, RungEnded
from lab.trial import free_network

SECRETS = {
    "KRB_REHEARSAL_PASSWORD_ENCODER_SECRET": "planted-1",
    "KRB_REHEARSAL_DELEGATION_TOKEN_SECRET_KEY": "planted-2",
}


@pytest.fixture
def throwaway(tmp_path: Path) -> ThrowawayCluster:
    directory = tmp_path / "t"
    directory.mkdir(mode=0o700)
    spec = throwaway_of(
        SPEC,
        Rehearsal(network=free_network()),
        PurePosixPath(directory),
        cluster_id="dGhyb3dhd2F5LWNsdXN0ZQ",
        source_cluster_id="c291cmNlLWNsdXN0ZXItaQ",
        broker_ids=(1, 2, 3),
        configured_ids=(),
        partitions=9,
    ).spec
    return ThrowawayCluster(spec, SECRETS, heaps(SPEC, spec, 512), lambda line: None)


@pytest.fixture
def prepared(throwaway: ThrowawayCluster, tmp_path: Path) -> ThrowawayCluster:
    home = tmp_path / "kafka-home"
    (home / "libs").mkdir(parents=True)
    (home / "libs" / f"kafka_2.13-{SPEC.kafka.version}.jar").touch()
    (home / "agent").mkdir()
    (home / "agent" / "jmx_prometheus_javaagent.jar").touch()
    settings = Rehearsal(kafka_home=str(home))
    throwaway.zookeeper_data.parent.mkdir()
    throwaway.prepare(installed_jars(SPEC, settings))
    return throwaway


def test_its_cluster_file_is_one_that_the_stand_ins_can_read(prepared: ThrowawayCluster) -> None:
    assert load_cluster(prepared.spec.name, directory=prepared.clusters, environment={}) == prepared.spec


def test_secrets_are_in_one_file_of_their_owners_alone(prepared: ThrowawayCluster) -> None:
    held = [
        path
        for path in prepared.here.directory.rglob("*")
        if path.is_file() and not path.is_symlink() and b"planted" in path.read_bytes()
    ]
    assert [str(each) for each in held] == [prepared.spec.secrets_file]
    assert stat.S_IMODE(held[0].stat().st_mode) == 0o600


def test_every_file_that_it_writes_is_its_owners_alone(prepared: ThrowawayCluster) -> None:
    here, spec = prepared.here, prepared.spec
    written = [here.supervisor_config, zookeeper_servers(spec)[0].config, prepared.clusters / f"{spec.name}.yaml"]
    written += [Path(seat.config_file) for seat in spec.brokers]
    assert {stat.S_IMODE(each.stat().st_mode) for each in written} == {0o600}


def test_a_supervisor_that_starts_the_lease_by_itself_and_nothing_else(prepared: ThrowawayCluster) -> None:
    programs = prepared.here.supervisor_config.read_text().split("[program:")[1:]
    services = {each.partition("]")[0]: each for each in programs}
    assert [name for name, each in services.items() if "autostart=true" in each] == ["lease"]
    assert services.keys() >= {"zookeeper", "stand-ins", "broker-9001", "broker-9002", "controller-101"}
    assert 'KAFKA_HEAP_OPTS="-Xmx512m -Djute.maxbuffer=4194304",MALLOC_ARENA_MAX="1"' in services["controller-101"]


def test_a_log_since_the_last_start_alone(prepared: ThrowawayCluster) -> None:
    log = prepared.here.logs / "broker-9001.log"
    log.write_text(
        "run-service.sh: broker-9001 starts as pid 1\nold\nrun-service.sh: broker-9001 starts as pid 2\nnew\n"
    )
    assert prepared.log_of("broker-9001")[1:] == ["new"]
    assert prepared.log_of("broker-9002") == []


ASK = """
public class Ask {
  public static void main(String[] given) throws Exception {
    System.setProperty("kafka.logs.dir", given[1]);
    org.apache.log4j.PropertyConfigurator.configure(given[0]);
    var log = org.slf4j.LoggerFactory.getLogger("org.apache.kafka.controller.ReplicationControlManager");
    for (var line : new String(System.in.readAllBytes()).split("\\n")) log.info("[QuorumController id=9] " + line);
  }
}
"""


def test_a_controller_logs_what_ends_it_and_not_each_record_that_it_replays(
    prepared: ThrowawayCluster, tmp_path: Path
) -> None:
    (tmp_path / "Ask.java").write_text(ASK)
    kept = ["Fencing broker 7 because its session has timed out.", "Replayed initial RegisterBrokerRecord for broker 7"]
    lines = [*(f"{each} of it" for each in CHATTY), *kept]
    log4j = prepared.here.kafka_home / "config" / "log4j.properties"
    jars = kafka_jar("kafka_2.13").parent
    said = ask_java(tmp_path / "Ask.java", log4j, tmp_path, jars=jars, given="\n".join(lines)).splitlines()
    assert [each.partition("id=9] ")[2].partition(" (org.")[0] for each in said] == kept


def test_a_log_that_supervisor_set_aside_in_part_is_read_whole(throwaway: ThrowawayCluster) -> None:
    """Of a copy with many partitions, the file began anew between its start and its end."""
    here, service = throwaway.here, throwaway.spec.controllers[0].service
    here.logs.mkdir()
    here.starts_log.write_text(f"1.0 {service} 7\n")
    started = f"run-service.sh: {service} starts as pid 7"
    files = [
        ("log.2", ["[1] INFO of an earlier start", started, "[1] INFO a"]),
        ("log.1", ["[1] ERROR Terminating the copy", "java.lang.RuntimeException: /config/topics/bad"]),
        ("log", ["[1] ERROR Encountered fatal fault: Aborting the ZK migration (org.x)"]),
    ]
    for name, lines in files:
        (here.logs / f"{service}.{name}").write_text("".join(f"{line}\n" for line in lines))
    found = throwaway.lines_of_start(service, 1)
    assert found == [started, "[1] INFO a", *files[1][1], *files[2][1]] == throwaway.log_of(service)
    said = fatal_of(found)
    assert said is not None and said.znode == "/config/topics/bad"
    assert dict(throwaway.logs()) == {service: [line for _, lines in files for line in lines]}


def test_what_says_that_this_machine_stood_still(prepared: ThrowawayCluster) -> None:
    """Of a seat that is restarted it says nothing: a seat leads no partition."""
    here, service = prepared.here, prepared.spec.controllers[1].service
    fences = "[1] INFO [QuorumController id=9003] Fencing broker {} because its session has timed out. (org.x)\n"
    log = here.logs / f"{service}.log"
    log.write_text(fences.format(prepared.spec.broker_ids[0]))
    (here.logs / f"{prepared.spec.brokers[0].service}.log").write_text(fences.format(2))
    assert prepared.stood_still() == ""
    log.with_name(f"{log.name}.1").write_text(fences.format(2) + fences.format(1))
    assert prepared.stood_still() == "the quorum fenced brokers 1, 2"
    Told(mode="zookeeper", anew=3).save(told_file(here.directory / STAND_INS))
    assert prepared.stood_still() == "the quorum fenced brokers 1, 2, and znodes of brokers made anew: 3"


def test_its_zookeeper_takes_no_copied_znode_for_that_of_a_session(prepared: ThrowawayCluster) -> None:
    """It has no sessions at its start, and would delete that znode."""
    container, ttl = -(2**63), -(2**56) + 86_400_000
    znodes = {"/": InMemory(), "/config": InMemory(owner=container, created=3), "/config/x": InMemory(owner=ttl)}
    tree = Tree(znodes)
    with snapshot_file(prepared.zookeeper_data) as snapshot:
        for path, znode in znodes.items():
            raw = b"\xff" * 4 if znode.data is None else b"\0" * 4
            snapshot.write(encoded(path.encode() if path != "/" else b"", raw, tree.stat(path)))
            snapshot.write([ZOOKEEPERS_OWN] if path == "/" else [])
    assert snapshot.path is not None
    nodes = read_snapshot(snapshot.path.read_bytes())
    assert [nodes[path].owner for path in ("/config", "/config/x")] == [container, ttl]
    config = zookeeper_servers(prepared.spec)[0].config
    assert "maxSessionTimeout=120000" in config.read_text(), (
        "a session outlives a machine that stands still for a minute"
    )
    program = Path(__file__).with_name("AskEphemeralTypes.java")
    told = ask_java(program, config, snapshot.path.parent, jars=kafka_jar("kafka_2.13").parent)
    assert told.splitlines() == ["containers [/config]", "ttls [/config/x]", "sessions []"]


def test_the_lease_is_renewed_after_an_error_of_the_watch(throwaway: ThrowawayCluster) -> None:
    """A supervisor that answers with a fault must not have the throwaway ended under the steps."""
    renewed: list[Path] = []

    def renew(directory: Path) -> None:
        renewed.append(directory)
        if len(renewed) == 3:
            watch.stop.set()
        if len(renewed) == 2:
            raise RuntimeError("anything")

    def processes(_: Any) -> Any:
        raise xmlrpc.client.Fault(1, "SHUTDOWN_STATE")

    watch = Watch(throwaway, time.monotonic() + 60, renew, processes, every=0.0)
    watch.run()
    assert renewed == [throwaway.here.directory] * 3


# -- the ladder --------------------------------------------------------------------------------------------------------


class AtOnce(Ladder):
    """Waits for nothing; ``lags``: how often it was asked to wait until dual write lags by nothing."""

    lags = 0

    def await_a_controller(self) -> None:
        pass

    def await_no_lag(self) -> None:
        self.lags += 1


def ladder(
    throwaway: ThrowawayCluster,
    tmp_path: Path,
    *seen: Any,
    compare: Any = None,
    kind: type[Ladder] = Ladder,
    **how: Any,
) -> Any:
    cluster = RecordingCluster(*seen or (observation(Phase.HYBRID),), spec=throwaway.spec)
    found = kind(throwaway, cluster, compare or (lambda *_, **__: None), tmp_path / "evidence", **how)
    found._ports = JudgedPorts(cluster, tmp_path / "evidence", "forward and back")
    return found


def report(verdict: Parity) -> SimpleNamespace:
    return SimpleNamespace(
        verdict=verdict,
        digest="d",
        migration_offset=7,
        to_dict=lambda: {"digest": "d", "verdict": verdict.value},
        render_text=lambda: "what differs",
    )


@pytest.mark.parametrize(
    ("parity", "verdict"), [(Parity.MISMATCH, Verdict.FAILED), (Parity.INCONCLUSIVE, Verdict.INCONCLUSIVE)]
)
def test_a_comparison_that_does_not_match_ends_it(
    throwaway: ThrowawayCluster, tmp_path: Path, parity: Parity, verdict: Verdict
) -> None:
    climb = ladder(throwaway, tmp_path)
    vars(climb.cluster)["answers"] = {climb.compare: report(parity)}
    with pytest.raises(RungEnded) as ended:
        climb.parity("parity_in_hybrid")
    assert [(each.verdict, "what differs" in each.what, each.code) for each in ended.value.found] == [
        (verdict, True, MISMATCH)
    ]


def test_a_tree_that_is_not_as_it_was_ends_it(throwaway: ThrowawayCluster, tmp_path: Path) -> None:
    climb = ladder(throwaway, tmp_path)
    climb.before = {"/config/topics/a": TreePrint(b"a", b"a", 0)}
    vars(climb.cluster)["answers"] = {print_tree: {"/config/topics/a": TreePrint(b"b", b"b", 0)}}
    with pytest.raises(RungEnded) as ended:
        climb.same_tree()
    (found,) = ended.value.found
    assert (found.verdict, found.code) == (Verdict.FAILED, TREE_CHANGED) and "/config/topics/a" in found.what


def test_one_that_matches_is_on_record_for_the_way_back(throwaway: ThrowawayCluster, tmp_path: Path) -> None:
    climb = ladder(throwaway, tmp_path)
    vars(climb.cluster)["answers"] = {climb.compare: report(Parity.MATCH)}
    climb.parity("parity_before_leaving")
    assert climb._ports is not None
    (record,) = climb._ports.records()
    assert (record.body["task"], record.body["digest"], record.body["offset"]) == ("parity_before_leaving", "d", 7)


def test_partitions_that_were_out_of_sync_end_it_before_anything_is_waited_for(
    throwaway: ThrowawayCluster, tmp_path: Path
) -> None:
    """No stand-in comes back into an ISR: the copy would be waited for until its deadline."""
    found = (Finding(Verdict.FAILED, "2 partitions are under-replicated", "KRB-PRE-029"),)
    climb = ladder(throwaway, tmp_path, kind=AtOnce, judge=lambda *_: found)
    vars(climb.cluster)["answers"] = {print_tree: {}}
    with pytest.raises(RungEnded):
        climb.forward()
    assert climb.found == list(found)
    assert climb.cluster.did == []


@pytest.mark.parametrize(("state", "ends"), [("EXITED", True), ("FATAL", True), ("RUNNING", False), ("STOPPED", False)])
def test_a_seat_that_ended_by_itself_is_named_at_once_with_what_it_said(
    throwaway: ThrowawayCluster, tmp_path: Path, state: str, ends: bool
) -> None:
    """Nobody becomes the controller then: its settings, or the copied configs, are wrong for it."""
    throwaway.here.logs.mkdir()
    (throwaway.here.logs / "broker-9002.log").write_text("Exiting Kafka due to fatal exception: requirement failed")
    process = supervision.Process("broker-9002", state, 0, 0.0)
    services = [seat.service for seat in throwaway.spec.brokers]
    asked: list[list[str]] = []

    def require_running(given: Any) -> None:
        asked.append(list(given))
        throwaway.require_running(services, processes=lambda _: {"broker-9002": process})
        raise KeyError("it goes on")

    climb = ladder(SimpleNamespace(spec=throwaway.spec, require_running=require_running), tmp_path)  # type: ignore[arg-type]
    with pytest.raises(StepFailed if ends else KeyError) as error:
        climb.await_a_controller()
    assert asked == [services]
    assert ("broker-9002 has ended" in str(error.value) and "requirement failed" in str(error.value)) is ends


def leave(times: int) -> Any:
    left = [times]

    def act(*_: Any, **__: Any) -> dict[str, Any]:
        if left[0]:
            left[0] -= 1
            raise StepFailed("the fence was lifted again", way_out="try again")
        return {"window_seconds": 1.5, "elected_at": "2026-03-04T10:00:00+00:00"}

    return act


def test_a_fence_that_was_lifted_is_tried_again_and_the_tries_are_told(
    throwaway: ThrowawayCluster, tmp_path: Path
) -> None:
    climb = ladder(throwaway, tmp_path, kind=AtOnce, leave=leave(2))
    climb._leave()
    assert (climb.measured.tries, climb.measured.window, climb.lags) == (3, 1.5, 3), "no lag is awaited before each"
    assert climb._ports is not None and climb._ports.answers[LEAVE]["window_seconds"] == 1.5


def test_after_five_tries_it_ends(throwaway: ThrowawayCluster, tmp_path: Path) -> None:
    climb = ladder(throwaway, tmp_path, kind=AtOnce, leave=leave(TRIES))
    with pytest.raises(StepFailed, match="lifted again"):
        climb._leave()
    assert (climb.lags, climb.measured.tries) == (TRIES, None)


def lagging(lag: int | None) -> Any:
    seen = observation(Phase.HYBRID)
    active = seen.active_controller
    assert active is not None and was_read(active.metrics)
    metrics = dataclasses.replace(active.metrics, zk_write_behind_lag=lag)
    return dataclasses.replace(
        seen, controllers={**seen.controllers, active.id: dataclasses.replace(active, metrics=metrics)}
    )


def test_kraft_is_not_left_while_dual_write_lags(throwaway: ThrowawayCluster, tmp_path: Path) -> None:
    looks = [lagging(7), lagging(0), lagging(3), lagging(0), lagging(0), lagging(0)]
    climb = ladder(throwaway, tmp_path, *looks)
    climb.await_no_lag()
    assert len(climb.cluster.looks) == 6, "three looks in a row without a lag"


@pytest.mark.parametrize("lag", [5, None])
def test_a_lag_that_stays_or_is_not_shown_ends_it(throwaway: ThrowawayCluster, tmp_path: Path, lag: int | None) -> None:
    with pytest.raises(StepFailed, match=f"ZkWriteBehindLag is {lag}"):
        ladder(throwaway, tmp_path, lagging(lag)).await_no_lag()


def test_the_programs_of_this_package_have_no_secret_in_their_environment(prepared: ThrowawayCluster) -> None:
    text = supervision.python_program(prepared.here, "x", ("kraft_runbook.io.local.lease",))
    assert "planted" not in text and "PYTHONPATH" in text


@pytest.mark.parametrize("refusals", range(TRIES + 1))
def test_a_step_that_a_guard_refuses_is_taken_again_and_not_for_ever(
    throwaway: ThrowawayCluster, tmp_path: Path, refusals: int
) -> None:
    taken: list[int] = []

    def take(_: Any, __: Any, node: int) -> None:
        taken.append(node)
        if len(taken) <= refusals:
            raise Refused("no broker answered Metadata", way_out="x")

    climbing = ladder(throwaway, tmp_path, take=take)
    if refusals < TRIES:
        climbing._take(TO_HYBRID, 9001)
        assert taken == [9001] * (refusals + 1)
    else:
        with pytest.raises(Refused, match="no broker answered"):
            climbing._take(TO_HYBRID, 9001)
        assert taken == [9001] * TRIES


def test_a_step_that_failed_is_not_taken_again(throwaway: ThrowawayCluster, tmp_path: Path) -> None:
    taken: list[int] = []

    def take(*_: Any) -> None:
        taken.append(1)
        raise StepFailed("the play failed", way_out="x")

    with pytest.raises(StepFailed):
        ladder(throwaway, tmp_path, take=take)._take(TO_HYBRID, 9001)
    assert taken == [1]


def test_controllers_are_set_aside_at_once_each_on_record_by_its_own_task(
    throwaway: ThrowawayCluster, tmp_path: Path
) -> None:
    """They are stopped by then, and each has directories of its own."""
    together, taken = threading.Barrier(3, timeout=30), list[tuple[str, int]]()

    def take(run: Any, step: Any, node: int) -> None:
        together.wait()
        taken.append((run.journal.task, node))
        if node == throwaway.spec.controller_ids[0]:
            raise StepFailed("the play failed", way_out="x")

    climb = ladder(throwaway, tmp_path, take=take)
    with pytest.raises(StepFailed, match="the play failed"):
        climb._take_at_once(SET_ASIDE, throwaway.spec.controller_ids)
    assert sorted(taken) == [(f"{SET_ASIDE.step}.{node}", node) for node in throwaway.spec.controller_ids]


def test_the_second_climb_prints_no_tree_since_nothing_is_compared_with_it(
    throwaway: ThrowawayCluster, tmp_path: Path
) -> None:
    class Printing(Ladder):
        def await_a_controller(self) -> None:
            pass

        def _forward(self, climb: str) -> None:
            pass

        def to_kraft(self) -> None:
            pass

    climb = ladder(throwaway, tmp_path, kind=Printing)
    vars(climb.cluster)["answers"] = {print_tree: {"/config": TreePrint(b"", b"", 0)}}
    climb.forward_again()
    assert climb.before == {}
    climb.forward()
    assert set(climb.before) == {"/config"}


def test_the_lines_of_one_start_are_never_those_of_an_earlier_one(throwaway: ThrowawayCluster) -> None:
    """The supervisor writes what a process says later than its launcher says that it starts."""
    here, service = throwaway.here, throwaway.spec.controllers[0].service
    here.logs.mkdir()
    log = here.logs / f"{service}.log"
    assert throwaway.starts(service) == 0 and throwaway.lines_of_start(service, 1) == []
    first = f"run-service.sh: {service} starts as pid 7\nEncountered fatal fault: x (org.y)\n"
    here.starts_log.write_text(f"1.0 {service} 7\n1.0 {service}-other 8\n")
    assert throwaway.lines_of_start(service, 1) == [], "it has said nothing yet"
    log.write_text(first)
    assert throwaway.lines_of_start(service, 1) == first.splitlines()
    here.starts_log.write_text(f"1.0 {service} 7\n2.0 {service} 9\n")
    assert throwaway.starts(service) == 2 and throwaway.lines_of_start(service, 2) == []
    log.write_text(f"{first}run-service.sh: {service} starts as pid 9\nnew\n")
    assert throwaway.lines_of_start(service, 2) == [f"run-service.sh: {service} starts as pid 9", "new"]
    assert throwaway.lines_of_start(service, 1) == [], "another start came meanwhile"
