"""What a throwaway cluster lays out before anything is started, and what its logs say."""

from __future__ import annotations

import ctypes
import stat
import subprocess
import sys
import time
import xmlrpc.client
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from asked_java import ask_java
from kafka_jars import kafka_jar
from observations import SPEC
from rehearsing import throwaway_in
from znodes_in_memory import InMemory, Tree, read_snapshot

from kraft_runbook.cluster.cluster_file import load_cluster
from kraft_runbook.cluster.rehearsal_settings import Rehearsal
from kraft_runbook.errors import StepFailed
from kraft_runbook.io.kafka.stand_ins import Told, told_file
from kraft_runbook.io.local import supervision
from kraft_runbook.io.local.garbage import collect, trim
from kraft_runbook.io.local.layout import zookeeper_servers
from kraft_runbook.io.local.supervision import Process
from kraft_runbook.io.zookeeper.servers import ServerStatus
from kraft_runbook.io.zookeeper.snapshot_file import ZOOKEEPERS_OWN, encoded, snapshot_file
from kraft_runbook.procedures.throwaway_cluster import CHATTY, STAND_INS, ThrowawayCluster, Watch, installed_jars
from kraft_runbook.rehearsal.kafka_said import fatal_of
from kraft_runbook.rehearsal.throwaway import FULLY_COMPILED, LARGE, TIGHT, java_options


@pytest.fixture
def throwaway(tmp_path: Path) -> ThrowawayCluster:
    return throwaway_in(tmp_path)


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


def test_a_large_one_has_more_options_and_gives_back_what_a_burst_left(throwaway: ThrowawayCluster) -> None:
    """Only what was told to be tight, and runs. A small one is asked nothing."""
    asked: list[list[int]] = []
    states = {"controller-101": ("RUNNING", 7), "broker-9001": ("EXITED", 0), "zookeeper": ("RUNNING", 9)}
    found = {
        name: Process(name, state, pid, 1.0) for name, (state, pid) in (states | {"lease": ("RUNNING", 8)}).items()
    }
    throwaway.give_back(lambda _: found, lambda pids: asked.append(list(pids)))
    assert asked == []
    large = replace(throwaway, options=java_options(throwaway.spec, LARGE))
    assert java_options(throwaway.spec, LARGE - 1) == {}
    large.give_back(lambda _: found, lambda pids: asked.append(list(pids)))
    assert asked == [[7, 9]]
    large.zookeeper_data.parent.mkdir()
    large.prepare(())
    text = large.here.supervisor_config.read_text()
    assert f'-Djute.maxbuffer=4194304 {TIGHT} {FULLY_COMPILED}"' in text.partition("[program:controller-101]")[2]
    seat = text.partition("[program:broker-9001]")[2].partition("[program:")[0]
    assert TIGHT in seat and FULLY_COMPILED not in seat


def test_a_jvm_collects_its_garbage_where_java_has_a_jcmd(tmp_path: Path) -> None:
    ran: list[list[str]] = []

    def run(command: list[str], **_: object) -> None:
        ran.append(command)
        raise subprocess.TimeoutExpired(command, 60)

    collect([7, 8], run=run, java=lambda: tmp_path / "java")
    (tmp_path / "jcmd").touch()
    collect([7, 8], run=run, java=lambda: tmp_path / "java")
    assert ran == [[str(tmp_path / "jcmd"), str(pid), "GC.run"] for pid in (7, 8)]
    trim()


MAPPED = """
import ctypes
from kraft_runbook.io.local.garbage import keep_little
class Info(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in "arena ordblks smblks hblks hblkhd a b c d e".split()]
library = ctypes.CDLL(None)
library.malloc.restype, library.free.argtypes, library.mallinfo2.restype = ctypes.c_void_p, [ctypes.c_void_p], Info
{first}
before = library.mallinfo2().hblks
library.free(library.malloc(16 * 1024 * 1024))
block = library.malloc(4 * 1024 * 1024)
print(library.mallinfo2().hblks - before)
"""


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallinfo2"), reason="this C library is not glibc 2.33 or newer")
@pytest.mark.parametrize(("first", "apart"), [("", "0"), ("keep_little()", "1")])
def test_a_large_block_is_memory_of_its_own_once_little_is_kept(first: str, apart: str) -> None:
    ran = subprocess.run([sys.executable, "-c", MAPPED.format(first=first)], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == apart


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


def test_of_the_znodes_that_zookeeper_counts_its_own_are_none_of_the_copied_ones(throwaway: ThrowawayCluster) -> None:
    def refused(*_: Any, **__: Any) -> ServerStatus:
        raise ConnectionRefusedError

    for answer in ("Mode: standalone\nNode count: 27\n", "zk_server_state\tstandalone\nzk_znode_count\t27\n"):
        assert throwaway.znodes(lambda *_, answer=answer, **__: ServerStatus(answer)) == 23
    assert throwaway.znodes(lambda *_, **__: ServerStatus("Mode: standalone\n")) is None
    assert throwaway.znodes(refused) is None


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


def test_a_lease_that_supervisor_gave_up_is_started_again_and_told_once_until_it_runs(
    throwaway: ThrowawayCluster,
) -> None:
    """Nothing would end the throwaway of a worker that is killed."""
    lines: list[str] = []
    seen: list[str] = []
    started: list[str] = []
    states = ["FATAL", "BACKOFF", "EXITED", "STARTING", "RUNNING", "STOPPED"]

    def renews(_: Any) -> None:
        seen.append(states[len(seen)])
        if seen == states:
            watch.stop.set()

    def starts(_: Any, service: str) -> None:
        started.append(service)
        raise xmlrpc.client.Fault(60, "ALREADY_STARTED")

    def processes(_: Any) -> dict[str, Process]:
        return {"lease": Process("lease", seen[-1], 0, 0.0)}

    asked = replace(throwaway, tell=lines.append)
    watch = Watch(asked, time.monotonic() + 60, renews, processes, every=0.0, starts=starts)
    watch.run()
    assert started == ["lease"] * 3
    assert lines == [
        f"the lease's process does not run ({state}): it is started again" for state in ("FATAL", "STOPPED")
    ]


@pytest.mark.parametrize("state", ["FATAL", "BACKOFF", "EXITED", None])
def test_without_a_lease_that_runs_nothing_else_is_started(throwaway: ThrowawayCluster, state: str | None) -> None:
    throwaway.here.logs.mkdir()
    (throwaway.here.logs / "lease.log").write_text("ModuleNotFoundError: kraft_runbook")
    states = iter(["STARTING", state])

    def processes(_: Any) -> dict[str, Process]:
        now = next(states, state)
        return {} if now is None else {"lease": Process("lease", now, 0, 0.0)}

    with pytest.raises(StepFailed, match="waiting for lease to run, which ends the throwaway") as error:
        throwaway.start_zookeeper(lambda _: None, processes)
    assert "ModuleNotFoundError" in str(error.value)


def test_a_lease_that_starts_is_waited_for(throwaway: ThrowawayCluster) -> None:
    asked: list[str] = []
    states = iter(["STARTING", "STARTING", "STARTING"])

    class Started(ThrowawayCluster):
        def await_zookeeper(self) -> None:
            asked.append("zookeeper")

    def processes(_: Any) -> dict[str, Process]:
        asked.append(next(states, "RUNNING"))
        return {"lease": Process("lease", asked[-1], 7, 0.0)}

    Started(**vars(throwaway)).start_zookeeper(lambda _: None, processes)
    assert asked[-2:] == ["RUNNING", "zookeeper"]


def test_the_programs_of_this_package_have_no_secret_in_their_environment(prepared: ThrowawayCluster) -> None:
    text = supervision.python_program(prepared.here, "x", ("kraft_runbook.io.local.lease",))
    assert "planted" not in text and "PYTHONPATH" in text


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
