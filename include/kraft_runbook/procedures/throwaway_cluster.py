"""A rehearsal's throwaway cluster on this machine: made, started, watched and ended."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from kraft_runbook.cluster.distributions import distribution_of
from kraft_runbook.cluster.naming import nodes
from kraft_runbook.cluster.node_properties import broker_properties
from kraft_runbook.cluster.observation import BrokerMode
from kraft_runbook.cluster.properties_text import render_properties, render_secrets
from kraft_runbook.cluster.rehearsal_settings import Rehearsal
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.errors import Refused, StepFailed
from kraft_runbook.io.kafka.stand_ins import Told, mode_file, told, told_file
from kraft_runbook.io.local import supervision
from kraft_runbook.io.local.garbage import collect, trim
from kraft_runbook.io.local.installation import java, lay_out
from kraft_runbook.io.local.layout import ZOOKEEPER, Layout, layout, zookeeper_servers
from kraft_runbook.io.local.lease import LEASE_SECONDS, renew
from kraft_runbook.io.local.ports import addresses, require_free
from kraft_runbook.io.local.remains import end_remains
from kraft_runbook.io.local.usage import Usage
from kraft_runbook.io.local.zookeeper_files import zookeeper_properties
from kraft_runbook.io.private_file import write_private
from kraft_runbook.io.secrets import Secrets, environment_secrets
from kraft_runbook.io.zookeeper.servers import ServerStatus, ask_server, server_mode
from kraft_runbook.io.zookeeper.snapshot_file import COUNTED_BESIDE
from kraft_runbook.procedures.throwaway_place import Tell
from kraft_runbook.rehearsal.kafka_said import fenced_in

STAND_INS, LEASE = "stand-ins", "lease"
JUTE_MAXBUFFER = 64 * 1024 * 1024
"""The longest packet that the throwaway's ZooKeeper and seats take. Controllers have the file's own."""
OF_ITS_ZOOKEEPER = {
    "extendedTypesEnabled": "true",
    "maxSessionTimeout": "120000",
}
"""Without the first a copied znode with a time to live counts as that of a session, and is deleted when ZooKeeper
starts. Without the second no session outlives 40 s in which this machine stands still.
"""
CHATTY = (
    *(
        f"Replayed {each}"
        for each in (
            *("TopicRecord", "RemoveTopicRecord", "PartitionRecord", "partition", "ConfigRecord", "ClientQuotaRecord"),
            *("AccessControlEntryRecord", "RemoveAccessControlEntryRecord", "UserScramCredentialRecord"),
        )
    ),
    "fails to send request",
)
"""What would push all else out of the files that supervisor keeps (3.9.2): what a controller logs of each record that
it replays, with 200,000 partitions 98 MB at each start; and each request that a ZooKeeper-mode controller could not
send, with all its partitions, 50 MB and more (``RequestSendThread.doWork``). That it reconnects, another line says.
"""
LOADING = 900.0
"""Seconds that ZooKeeper may take over its snapshot (a million partitions: 35 s, measured)."""
COUNT_WITHIN = 10.0
"""Seconds in which ZooKeeper says how many znodes it holds, which it has at hand."""
RENEW_EVERY = 2.0
LEASE_WITHIN = 60.0
"""Seconds in which the lease must run: it takes two, on a busy machine many."""
ENDED = ("EXITED", "FATAL", "BACKOFF")
"""The supervisor's words for a process that has ended by itself."""
LEFT = ("EXITED", "FATAL", "STOPPED")
"""Those for one that does not run. One that ended at once four times, FATAL, it never starts again by itself."""
Processes = Callable[[Layout], Mapping[str, supervision.Process]]


def without_lines(texts: Iterable[str]) -> str:
    """What a log4j file that has an appender ``stdout`` needs more, so that no line with one of these is written."""
    deny, lines = "log4j.appender.stdout.filter.{}", list[str]()
    for number, text in enumerate(texts, 1):
        name = deny.format(number)
        lines += [f"{name}=org.apache.log4j.varia.StringMatchFilter", f"{name}.StringToMatch={text}"]
        lines.append(f"{name}.AcceptOnMatch=false")
    return "".join(f"{line}\n" for line in lines)


def installed_jars(source: ClusterSpec, settings: Rehearsal) -> tuple[Path, ...]:
    """Kafka's jars on this machine, and the metrics exporter's. Raises Refused where they are not there, or of another
    version.
    """
    home = Path(settings.kafka_home or source.kafka.home)
    libs = home / distribution_of(source.kafka.version).jars
    jars = tuple(sorted(libs.glob("*.jar")))
    if not any(libs.glob(f"kafka_2.*-{source.kafka.version}.jar")):
        raise Refused(
            f"{home} on this machine holds no Kafka {source.kafka.version}"
            f" ({libs.relative_to(home)}/kafka_2.*-{source.kafka.version}.jar)",
            way_out="install it here, and name its directory under rehearsal.kafka_home in the cluster file",
        )
    agent = Path(settings.metrics_agent) if settings.metrics_agent else home / "agent" / "jmx_prometheus_javaagent.jar"
    if not agent.is_file():
        raise Refused(
            f"the JMX Prometheus exporter is not in {agent}: every gate depends on its gauges",
            way_out="put its jar on this machine, and name it under rehearsal.metrics_agent in the cluster file",
        )
    return (*jars, agent)


@dataclass
class ThrowawayCluster:
    """``spec``: its cluster file. ``values``: its secrets, by the environment variables that the file names. ``heaps``:
    -Xmx by service, ``options``: what its JVM is told beside it.
    """

    spec: ClusterSpec
    values: Mapping[str, str]
    heaps: Mapping[str, str]
    tell: Tell
    lease: float = LEASE_SECONDS
    usage: Usage = field(default_factory=Usage)
    options: Mapping[str, str] = field(default_factory=dict)

    @property
    def here(self) -> Layout:
        return layout(self.spec)

    @property
    def secrets(self) -> Secrets:
        return environment_secrets(self.values)

    @property
    def clusters(self) -> Path:
        return self.here.directory / "clusters"

    @property
    def zookeeper_data(self) -> Path:
        """ZooKeeper's ``dataDir``, for the snapshot."""
        return zookeeper_servers(self.spec)[0].data

    def prepare(self, jars: tuple[Path, ...], *, class_archive: Path | None = None) -> None:
        """Lay out everything but the snapshot. ``class_archive``: of these very jars, where one was made. Raises
        RunbookError: no Java, or an address that is taken.
        """
        require_free(addresses(self.spec) | {STAND_INS: self._stand_in_sockets()})
        here, (server,) = self.here, zookeeper_servers(self.spec)
        lay_out(here.kafka_home, jars=jars, java_command=java(), class_archive=class_archive or here.directory / "none")
        log4j = here.kafka_home / "config" / "log4j.properties"
        log4j.write_text(log4j.read_text() + without_lines(CHATTY))
        for directory in (here.logs, server.directory, here.directory / STAND_INS, self.clusters):
            directory.mkdir(mode=0o700, exist_ok=True)
        text = yaml.safe_dump(self.spec.model_dump(mode="json", by_alias=True, exclude_none=True), sort_keys=False)
        write_private(self.clusters / f"{self.spec.name}.yaml", text)
        if self.spec.secrets_file:
            held = {key: self.values[ref.env or ""] for key, ref in self.spec.secrets.items()}
            write_private(Path(self.spec.secrets_file), render_secrets(held))
        write_private(
            server.config,
            render_properties(
                zookeeper_properties(server, [server]) | OF_ITS_ZOOKEEPER, header="A rehearsal's ZooKeeper"
            ),
        )
        for seat in self.spec.brokers:
            Path(seat.config_file).parent.mkdir(mode=0o700)
            text = render_properties(
                broker_properties(self.spec, seat, BrokerMode.ZOOKEEPER),
                header=f"Broker {seat.id} of cluster {self.spec.name}",
            )
            write_private(Path(seat.config_file), text)
        for controller in self.spec.controllers:
            Path(controller.config_file).parent.mkdir(mode=0o700)
        programs = (
            supervision.python_program(
                here,
                STAND_INS,
                (
                    "kraft_runbook.io.kafka.stand_ins",
                    str(self.clusters),
                    self.spec.name,
                    str(here.directory / STAND_INS),
                ),
            ),
            supervision.python_program(
                here,
                LEASE,
                ("kraft_runbook.io.local.lease", str(here.directory), f"{self.lease:g}"),
                starts_itself=True,
                comes_back=True,
            ),
        )
        options = {
            service: " ".join((heap, f"-Djute.maxbuffer={self._jute(service)}", *self.options.get(service, "").split()))
            for service, heap in self.heaps.items()
        }
        text = supervision.render_configuration(self.spec, heaps=options, also=programs)
        write_private(here.supervisor_config, text)

    def _jute(self, service: str) -> int:
        is_controller = any(each.service == service for each in self.spec.controllers)
        return self.spec.controller_jute_maxbuffer if is_controller else JUTE_MAXBUFFER

    def _stand_in_sockets(self) -> tuple[tuple[str, int], ...]:
        return tuple((each.host, each.port) for each in self.spec.rehearses.stand_ins) if self.spec.rehearses else ()

    # -- starting ------------------------------------------------------------------------------------------------------

    def start_zookeeper(
        self,
        launch: Callable[[Layout], None] = supervision.launch,
        processes: Processes = supervision.processes,
    ) -> None:
        """The supervisor, and the lease until it runs: without it nothing else is started, since nothing would end that
        if this worker were killed. Then ZooKeeper with the snapshot, until it serves. Raises StepFailed.
        """
        renew(self.here.directory)
        launch(self.here)

        def runs() -> bool:
            lease = processes(self.here).get(LEASE)
            return lease is not None and lease.state == "RUNNING"

        self._await(runs, LEASE, LEASE_WITHIN, "to run, which ends the throwaway if nobody else does", processes)
        self.await_zookeeper()

    def await_zookeeper(self) -> None:
        """Start ZooKeeper, and wait until it serves. Raises StepFailed."""
        supervision.begin_start(self.here, ZOOKEEPER)
        self._await(
            lambda: server_mode(zookeeper_servers(self.spec)[0].address) is not None,
            ZOOKEEPER,
            LOADING,
            "to load the copied tree",
        )

    def znodes(self, ask: Callable[..., ServerStatus] = ask_server) -> int | None:
        """How many znodes its ZooKeeper holds without its own; None where it does not say so."""
        with contextlib.suppress(OSError):
            counted = ask(zookeeper_servers(self.spec)[0].address, timeout=COUNT_WITHIN).znodes
            return None if counted is None else counted - COUNTED_BESIDE
        return None

    def start_brokers(self) -> None:
        """Stand-ins first, so that the seat that becomes the controller finds every leader alive. Raises StepFailed."""
        self.let_stand_ins_be(BrokerMode.ZOOKEEPER)
        for seat in self.spec.brokers:
            supervision.begin_start(self.here, seat.service)

    def _await(
        self,
        done: Callable[[], bool],
        service: str,
        within: float,
        what: str,
        processes: Processes = supervision.processes,
    ) -> None:
        deadline = time.monotonic() + within
        while not done():
            process = processes(self.here).get(service)
            late = time.monotonic() > deadline
            if late or process is None or process.state in ENDED:
                why = f"it did not within {within:g} s" if late else "it has ended"
                raise StepFailed(
                    f"waiting for {service} {what}: {why}; its log ends:\n{supervision.log_tail(self.here, service)}",
                    way_out="see what its log says; the rehearsal can be begun again",
                )
            time.sleep(0.1)

    def ended(
        self,
        services: Iterable[str],
        *,
        processes: Processes = supervision.processes,
    ) -> tuple[str, ...]:
        """Those of these that have ended by themselves."""
        running = processes(self.here)
        return tuple(each for each in services if (process := running.get(each)) and process.state in ENDED)

    def require_running(
        self,
        services: Iterable[str],
        *,
        processes: Processes = supervision.processes,
    ) -> None:
        """Raises StepFailed, with the end of its log, where one of these has ended by itself."""
        for service in self.ended(services, processes=processes):
            raise StepFailed(
                f"{service} has ended; its log ends:\n{supervision.log_tail(self.here, service)}",
                way_out="see what its log says; the rehearsal can be begun again",
            )

    def let_stand_ins_be(self, mode: BrokerMode, *, unfenced: bool = False) -> None:
        """Have every stand-in in this mode; ``unfenced``: and wait until the quorum shows them so. Raises
        StepFailed.
        """
        directory = self.here.directory / STAND_INS
        write_private(mode_file(directory), mode.value, durable=False)
        if STAND_INS not in supervision.running(self.here):
            supervision.begin_start(self.here, STAND_INS)
        latest: list[Told] = []

        def are() -> bool:
            now = told(told_file(directory))
            latest[:] = [now]
            if now.problem:
                raise StepFailed(f"the stand-ins failed: {now.problem}", way_out="begin the rehearsal again")
            return now.mode == mode.value and (now.unfenced_at is not None or not unfenced)

        self._await(are, STAND_INS, self.spec.deadlines.registration, f"to be in {mode.value} mode")
        self.tell(f"{len(self.spec.stand_in_ids)} stand-ins are in {mode.value} mode")

    # -- what it says --------------------------------------------------------------------------------------------------

    def log_of(self, service: str) -> list[str]:
        """The lines of a service's log since its last start."""
        lines = supervision.log_lines(self.here, service)
        starts = [number for number, line in enumerate(lines) if line.startswith(f"run-service.sh: {service} starts")]
        return lines[starts[-1] :] if starts else lines

    def starts(self, service: str) -> int:
        """How often it was started."""
        return len(self._pids(service))

    def lines_of_start(self, service: str, number: int) -> list[str]:
        """The lines of its log since its start of this number, from 1 on; none where it was not started so often, or
        has said nothing since.
        """
        pids = self._pids(service)
        lines = self.log_of(service) if len(pids) == number else []
        return lines if lines and lines[0].endswith(f" starts as pid {pids[-1]}") else []

    def _pids(self, service: str) -> list[str]:
        """Of each start, as its launcher told it before the service said anything."""
        log = self.here.starts_log
        started = [line.split() for line in log.read_text().splitlines()] if log.exists() else []
        return [words[2] for words in started if len(words) == 3 and words[1] == service]

    def logs(self) -> Iterator[tuple[str, list[str]]]:
        """Every log, by service."""
        for log in sorted(self.here.logs.glob("*.log")):
            yield log.stem, supervision.log_lines(self.here, log.stem)

    def stood_still(self) -> str:
        """What says that this machine stood still for longer than a session: stand-ins that the quorum fenced, or whose
        znodes had to be made anew. Empty where nothing does.
        """
        controllers = {each.service for each in self.spec.controllers}
        fenced = {each for service, lines in self.logs() if service in controllers for each in fenced_in(lines)}
        anew = told(told_file(self.here.directory / STAND_INS)).anew
        said = [
            f"the quorum fenced {nodes('broker', sorted(ids))}" if (ids := fenced & {*self.spec.stand_in_ids}) else "",
            f"znodes of brokers made anew: {anew}" if anew else "",
        ]
        return ", and ".join(filter(None, said))

    def look(self, processes: Callable[[Layout], Mapping[str, Any]] = supervision.processes) -> None:
        """See what its processes take. Where the supervisor does not answer, the machine's load alone."""
        running: Iterable[Any] = ()
        with contextlib.suppress(Exception):
            running = processes(self.here).values()
        self.usage.look((each.service, each.pid) for each in running if each.runs and each.pid)

    def give_back(
        self,
        processes: Processes = supervision.processes,
        collect: Callable[[Iterable[int]], object] = collect,
    ) -> None:
        """Have each JVM with ``options`` give back what a burst left, as this process does: a comparison needs room."""
        if self.options:
            running = processes(self.here)
            collect([each.pid for name, each in running.items() if name in self.options and each.runs and each.pid])
        trim()

    # -- keeping watch -------------------------------------------------------------------------------------------------

    @contextmanager
    def watched(self, time_limit: float) -> Iterator[Watch]:
        """Renew the lease and look at what the processes take, until the block ends; after ``time_limit`` seconds end
        everything, so that whatever waits fails.
        """
        watch = Watch(self, time.monotonic() + time_limit)
        thread = threading.Thread(target=watch.run, name="rehearsal-watch", daemon=True)
        thread.start()
        try:
            yield watch
        finally:
            watch.stop.set()
            thread.join()


@dataclass
class Watch:
    """``out_of_time``: the time limit was reached. ``renews``, ``processes``: the lease and the supervisor, asked every
    ``every`` seconds. ``starts``: begins the start of a program.
    """

    cluster: ThrowawayCluster
    ends: float
    renews: Callable[[Path], object] = renew
    processes: Callable[[Layout], Mapping[str, Any]] = supervision.processes
    every: float = RENEW_EVERY
    stop: threading.Event = field(default_factory=threading.Event)
    out_of_time: bool = False
    starts: Callable[[Layout, str], object] = supervision.begin_start
    told: bool = False

    def run(self) -> None:
        """Until ``stop``. No error ends it: without the lease the throwaway would be ended under the steps. Nor does
        the lease's own process stay away: without it nothing would end the throwaway of a worker that is killed.
        """
        here = self.cluster.here
        while True:
            if time.monotonic() > self.ends:
                self.out_of_time = True
                end_remains(here.directory, but=frozenset({os.getpid()}))
                return
            with contextlib.suppress(Exception):
                self.renews(here.directory)
            with contextlib.suppress(Exception):
                self._keep_lease(here)
            with contextlib.suppress(Exception):
                self.cluster.look(self.processes)
            if self.stop.wait(self.every):
                return

    def _keep_lease(self, here: Layout) -> None:
        """Start the lease's process where supervisor has given it up. It is told once until it runs again."""
        lease = self.processes(here).get(LEASE)
        if lease is None:
            return
        if lease.state in LEFT:
            if not self.told:
                self.told = True
                self.cluster.tell(f"the lease's process does not run ({lease.state}): it is started again")
            self.starts(here, LEASE)
        elif lease.state == "RUNNING":
            self.told = False
