"""Stand-ins for data brokers: registrations with heartbeats in the quorum, ephemeral znodes, and servers that answer
the controller's calls.

    python -m benchmarks.scale.ghosts DIRECTORY

Runs until SIGTERM. A stand-in registers as a broker in migration mode (BrokerRegistration v3, KIP-866) and says in its
heartbeats that it has caught up. Its server reads LeaderAndIsr, UpdateMetadata and StopReplica to their end and answers
"done"; without one the controllers would log each failed request in full.
"""

from __future__ import annotations

import asyncio
import json
import logging
import signal
import struct
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from uuid import UUID, uuid4

from kafka.protocol.api_message import ApiMessage
from kazoo.client import KazooClient
from kazoo.protocol.states import KazooState

from benchmarks.scale.cluster import CLUSTER_ID, Plan, load_spec, saved_plan
from benchmarks.scale.leader import PATIENCE, Leader
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.cluster.spec_parts import Broker
from kraft_runbook.errors import RunbookError, StepFailed
from kraft_runbook.io.private_file import write_private
from kraft_runbook.io.secrets import environment_secrets
from kraft_runbook.metadata.metadata_version import LEVELS

HEARTBEAT_EVERY = 2.0
"""``broker.heartbeat.interval.ms``'s default, in seconds."""
CAUGHT_UP = 2**62
METADATA_VERSION = LEVELS["3.9-IV0"]
CONNECTIONS = 6
"""So many heartbeats at a time: one behind the other, thirty would outlast a session where each waits for the copy's
next batch.
"""
LEADER_AND_ISR, STOP_REPLICA, UPDATE_METADATA = 4, 5, 6


class BrokerRegistrationRequest(ApiMessage, load_json="benchmarks.scale.schemas"):  # type: ignore[misc, call-arg]
    """BrokerRegistration (api 62, KIP-631), version 3."""


class BrokerRegistrationResponse(ApiMessage, load_json="benchmarks.scale.schemas"):  # type: ignore[misc, call-arg]
    """The answer: the broker's epoch."""


class BrokerHeartbeatRequest(ApiMessage, load_json="benchmarks.scale.schemas"):  # type: ignore[misc, call-arg]
    """BrokerHeartbeat (api 63, KIP-631), version 1."""


class BrokerHeartbeatResponse(ApiMessage, load_json="benchmarks.scale.schemas"):  # type: ignore[misc, call-arg]
    """The answer: whether the broker is fenced."""


@dataclass(frozen=True, slots=True)
class Told:
    """What the process says of itself, in ``ghosts.json``. Times are epoch seconds; ``registered_at``: when the last
    one had registered.
    """

    registered_at: float | None = None
    unfenced_at: float | None = None
    epochs: Mapping[int, int] | None = None
    problem: str = ""

    def save(self, path: Path) -> None:
        write_private(path, json.dumps({**asdict(self), "epochs": dict(self.epochs or {})}) + "\n", durable=False)


def told(path: Path) -> Told:
    """What the stand-ins last said; nothing yet where there is no file."""
    if not path.exists():
        return Told()
    given = json.loads(path.read_text())
    return Told(**(given | {"epochs": {int(key): value for key, value in given["epochs"].items()}}))


# -- in the quorum -----------------------------------------------------------------------------------------------------


def register(leader: Leader, broker: Broker) -> int:
    """Register one stand-in in migration mode; its broker epoch. Raises StepFailed when it is refused."""
    listener = broker.listeners[0]
    asked = BrokerRegistrationRequest
    request = asked(
        version=3,
        broker_id=broker.id,
        cluster_id=CLUSTER_ID,
        incarnation_id=uuid4(),
        listeners=[asked.Listener(name=listener.name, host=broker.host, port=listener.port, security_protocol=0)],
        features=[
            asked.Feature(
                name="metadata.version", min_supported_version=METADATA_VERSION, max_supported_version=METADATA_VERSION
            )
        ],
        rack=None,
        is_migrating_zk_broker=True,
        log_dirs=[_log_directory(broker.id)],
        previous_broker_epoch=-1,
    )
    answer = leader.send(request, within=PATIENCE)
    if answer.error_code:
        raise StepFailed(
            f"the registration of broker {broker.id} was refused with error {answer.error_code}",
            way_out="read the active controller's log",
        )
    return int(answer.broker_epoch)


def _log_directory(broker_id: int) -> UUID:
    """An id above the reserved ones (``DirectoryId``: 0 to 99)."""
    return UUID(int=(broker_id << 64) + 1000)


def beat(leader: Leader, broker_id: int, epoch: int) -> bool:
    """One heartbeat; whether the broker is unfenced. Never name a directory as offline: each such beat
    moves leaders.
    """
    answer = leader.send(
        BrokerHeartbeatRequest(
            version=1,
            broker_id=broker_id,
            broker_epoch=epoch,
            current_metadata_offset=CAUGHT_UP,
            want_fence=False,
            want_shut_down=False,
            offline_log_dirs=[],
        )
    )
    if answer.error_code:
        raise StepFailed(
            f"the heartbeat of broker {broker_id} was refused with error {answer.error_code}",
            way_out="read the active controller's log",
        )
    return not answer.is_fenced


@dataclass
class Pulse:
    """What the heartbeats' threads share: who was unfenced at least once, and the first failure."""

    unfenced: set[int]
    stop: threading.Event
    failures: list[Exception]


def keep_alive(plan: Plan, spec: ClusterSpec, stop: threading.Event) -> None:
    """Register all, then heartbeat until ``stop``. Raises what a thread of the heartbeats failed with."""
    leader = Leader(spec, environment_secrets({}))
    try:
        epochs = {broker.id: register(leader, broker) for broker in spec.brokers}
    finally:
        leader.close()
    now = Told(registered_at=time.time(), epochs=epochs)
    now.save(plan.ghosts)
    pulse = Pulse(set(), stop, [])
    shares = [dict(list(epochs.items())[first::CONNECTIONS]) for first in range(min(CONNECTIONS, len(epochs)))]
    threads = [threading.Thread(target=_beat_on, args=(spec, share, pulse)) for share in shares]
    for thread in threads:
        thread.start()
    while not stop.wait(0.2) and not pulse.failures:
        if now.unfenced_at is None and len(pulse.unfenced) == len(epochs):
            now = Told(now.registered_at, time.time(), epochs)
            now.save(plan.ghosts)
    stop.set()
    for thread in threads:
        thread.join()
    if pulse.failures:
        raise pulse.failures[0]


def _beat_on(spec: ClusterSpec, epochs: Mapping[int, int], pulse: Pulse) -> None:
    """The heartbeats of some stand-ins, over one connection."""
    leader = Leader(spec, environment_secrets({}))
    try:
        while not pulse.stop.is_set():
            began = time.monotonic()
            pulse.unfenced.update(each for each, epoch in epochs.items() if beat(leader, each, epoch))
            pulse.stop.wait(max(0.1, HEARTBEAT_EVERY - (time.monotonic() - began)))
    except Exception as error:
        pulse.failures.append(error)
    finally:
        leader.close()


# -- in ZooKeeper ------------------------------------------------------------------------------------------------------


def announce(spec: ClusterSpec) -> KazooClient:
    """The ephemeral ``/brokers/ids/<id>`` of every stand-in (``BrokerIdZNode``, version 5); they live as long as the
    session that is returned.
    """
    logger = logging.getLogger("benchmarks.scale.kazoo")
    client = KazooClient(hosts=spec.zookeeper.connect, timeout=60, logger=logger)
    client.start(60)

    def put(*_: object) -> None:
        for broker in spec.brokers:
            listener = broker.listeners[0]
            body = {
                "version": 5,
                "host": broker.host,
                "port": listener.port,
                "jmx_port": -1,
                "timestamp": str(int(time.time() * 1000)),
                "endpoints": [f"{listener.name}://{broker.host}:{listener.port}"],
                "listener_security_protocol_map": {listener.name: listener.protocol.value},
                "features": {},
            }
            if not client.exists(f"/brokers/ids/{broker.id}"):
                client.create(
                    f"/brokers/ids/{broker.id}", json.dumps(body, separators=(",", ":")).encode(), ephemeral=True
                )

    put()
    lost = threading.Event()

    def follow(state: str) -> None:
        if state == KazooState.LOST:
            lost.set()
        elif state == KazooState.CONNECTED and lost.is_set():
            lost.clear()
            client.handler.spawn(put)

    client.add_listener(follow)
    return client


# -- as servers --------------------------------------------------------------------------------------------------------


def done(api_key: int, correlation_id: int) -> bytes:
    """The answer "no error" to one of the three calls, in the flexible versions that 3.9 sends (LeaderAndIsr v7,
    StopReplica v4, UpdateMetadata v8).
    """
    body = struct.pack("!iBh", correlation_id, 0, 0) + (b"" if api_key == UPDATE_METADATA else b"\x01") + b"\x00"
    return struct.pack("!i", len(body)) + body


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer one connection's requests; an unknown one ends it. Bodies are read and dropped."""
    try:
        while True:
            length, api_key, _, correlation_id = struct.unpack("!ihhi", await reader.readexactly(12))
            left = length - 8
            while left:
                left -= len(await reader.readexactly(min(left, 1024 * 1024)))
            if api_key not in (LEADER_AND_ISR, STOP_REPLICA, UPDATE_METADATA):
                print(f"a request with api key {api_key}, which a stand-in has no answer to", flush=True)
                return
            writer.write(done(api_key, correlation_id))
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        return
    finally:
        writer.close()


async def serve_all(spec: ClusterSpec, failed: asyncio.Event) -> None:
    """Listen for every stand-in until SIGTERM, or until ``failed``."""
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for name in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(name, ended.set)
    servers = [
        await asyncio.start_server(serve, broker.host, broker.listeners[0].port, limit=4 * 1024 * 1024)
        for broker in spec.brokers
    ]
    try:
        waiting = [asyncio.create_task(each.wait()) for each in (ended, failed)]
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        for each in waiting:
            each.cancel()
    finally:
        for server in servers:
            server.close()


async def run(plan: Plan) -> bool:
    """Everything together; whether it ended because it was told to."""
    spec, stop, failed = load_spec(plan), threading.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()
    zookeeper = await asyncio.to_thread(announce, spec)
    thread = threading.Thread(
        target=_told_on_failure,
        args=(plan, lambda: keep_alive(plan, spec, stop), lambda: loop.call_soon_threadsafe(failed.set)),
    )
    thread.start()
    try:
        await serve_all(spec, failed)
    finally:
        stop.set()
        await asyncio.to_thread(thread.join)
        zookeeper.stop()
        zookeeper.close()
    return not failed.is_set()


def _told_on_failure(plan: Plan, work: Callable[[], None], fail: Callable[[], object]) -> None:
    try:
        work()
    except Exception as error:
        traceback.print_exc()
        problem = error.problem if isinstance(error, RunbookError) else f"{type(error).__name__}: {error}"
        Told(problem=problem).save(plan.ghosts)
        fail()


if __name__ == "__main__":
    sys.exit(0 if asyncio.run(run(saved_plan(Path(sys.argv[1])))) else 1)
