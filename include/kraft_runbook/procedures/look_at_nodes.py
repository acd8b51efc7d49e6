"""One look at one broker or controller: whether it runs, its mode, and what it shows."""

from __future__ import annotations

import errno
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from kraft_runbook.cluster.addresses import address, split_address
from kraft_runbook.cluster.observation import (
    LIVES,
    LOADING_NOT_ASKED,
    BrokerMode,
    BrokerState,
    ControllerState,
    Loading,
    QuorumState,
    Unread,
    was_read,
)
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.cluster.spec_nodes import Broker, Controller
from kraft_runbook.io.kafka.coordinators import coordinators_of
from kraft_runbook.io.kafka.metadata_quorum import broker_mode, controller_mode
from kraft_runbook.io.kafka.topics_seen import BrokerView, topics_seen_by
from kraft_runbook.io.node_metrics import NodeMetrics, broker_metrics, controller_metrics
from kraft_runbook.io.secrets import Secrets
from kraft_runbook.procedures.look_deadline import SOURCE_SECONDS, Deadline
from kraft_runbook.procedures.part_read import part_read

SECONDS_A_PARTITION = 1e-5
"""Seconds that this tool itself may take for one partition in one broker's answer, added for all of them: 40 answers of
200,000 partitions each took 11 s, one thread after the other (3.5e-6 s a partition on a machine with other work).
"""
SPARE = 0.5
"""Seconds between the end of a broker's time and that of the look."""
ANSWER_A_PARTITION, ANSWER_AT_MOST = 1e-4, 30.0
"""Seconds more that Metadata may take for each partition, and at most: a broker that is busy, or has just started, may
need more than ``SOURCE_SECONDS`` for 200,000. Asked again, it has each earlier request to answer too.
"""
COORDINATOR_SECONDS = 2.0
"""Seconds that a broker may take over each of two small requests. The second is not sent where the first had no answer.
"""
TOPICS_NOT_ASKED = Unread("not asked for at this look: topics as the brokers show them")


def answer_seconds(partitions: int) -> float:
    """Seconds that a broker may take over Metadata in a cluster of so many partitions."""
    return min(ANSWER_AT_MOST, SOURCE_SECONDS + partitions * ANSWER_A_PARTITION)


@dataclass(frozen=True, slots=True)
class BrokerLook:
    """What one thread found out about one broker."""

    running: bool | Unread
    mode: BrokerMode | Unread
    view: BrokerView | Unread
    loading: Loading = LOADING_NOT_ASKED


def accepts(host: str, port: int, *, timeout: float = 2.0) -> bool | Unread:
    """Whether something listens: True; refused: False; no answer either way: Unread."""
    try:
        with socket.create_connection((host, port), timeout=timeout):
            return True
    except ConnectionRefusedError:
        return False
    except TimeoutError:
        return Unread(f"{address(host, port)} did not answer in {timeout:g} s")
    except OSError as error:
        reason = errno.errorcode.get(error.errno or 0, "") or type(error).__name__
        return Unread(f"{address(host, port)} could not be reached: {reason}")


def is_silent(running: bool | Unread, mode: object, gauges: object) -> bool:
    """Whether a node hangs: its port accepts (the kernel does that for the process), but neither of two requests was
    answered in time.
    """
    return running is True and all(isinstance(part, Unread) and part.timed_out for part in (mode, gauges))


def look_at_broker(
    spec: ClusterSpec,
    broker: Broker,
    secrets: Secrets,
    deadline: Deadline,
    so_far: dict[int, BrokerLook],
    *,
    accepts: Callable[[str, int], bool | Unread] = accepts,
    mode_of: Callable[..., BrokerMode] = broker_mode,
    topics_by: Callable[..., BrokerView] | None = topics_seen_by,
    loading_of: Callable[..., Loading] = coordinators_of,
) -> BrokerLook:
    """Whether it runs, its mode, whether its coordinators load, and the topics as it shows them; without ``topics_by``
    these two are not asked for.

    ``so_far`` gets what is known before Metadata is asked, since a broker that hangs takes all the time of a look, and
    more on a busy machine.
    """
    running = accepts(*split_address(spec.broker_address(broker)))
    if running is not True:
        why = _why_down(running, f"broker {broker.id}", spec.broker_address(broker))
        return BrokerLook(running, why, why, Loading(why, why))
    mode = part_read(lambda: mode_of(spec, broker, secrets=secrets, timeout=SOURCE_SECONDS))
    if topics_by is None:
        return BrokerLook(running, mode, TOPICS_NOT_ASKED)
    late = Unread(f"broker {broker.id} did not answer Metadata in the time that a look has", out_of_time=True)
    loading = Loading(mode, mode) if isinstance(mode, Unread) else LOADING_NOT_ASKED
    so_far[broker.id] = BrokerLook(running, mode, late, loading)
    if was_read(mode):
        deadline.reach(time.monotonic() + 2 * COORDINATOR_SECONDS + SPARE)
        asked = part_read(lambda: loading_of(spec, broker, secrets=secrets, timeout=COORDINATOR_SECONDS))
        loading = asked if was_read(asked) else Loading(asked, asked)
        so_far[broker.id] = BrokerLook(running, mode, late, loading)

    def answered(partitions: int) -> None:
        deadline.reach(time.monotonic() + partitions * len(spec.brokers) * SECONDS_A_PARTITION)

    # A broker that hangs has had its time above, and is to be told from one that was not asked. One that answered is
    # given the time that its answer needs; where answers are large, the deadline moves.
    if was_read(mode):
        left = deadline.answer
        deadline.reach(time.monotonic() + left + SPARE)
    else:
        left = (
            SOURCE_SECONDS if deadline.own else max(SPARE, min(SOURCE_SECONDS, deadline.at - time.monotonic() - SPARE))
        )
    view = part_read(lambda: topics_by(spec, broker, secrets=secrets, timeout=left, answered=answered))
    return BrokerLook(running, mode, view, loading)


def _why_down(running: bool | Unread, node: str, address: str) -> Unread:
    """Why nothing more is asked of a node."""
    return running if isinstance(running, Unread) else Unread(f"{node} does not run: {address} refuses connections")


def look_at_controller(spec: ClusterSpec, controller: Controller, secrets: Secrets) -> ControllerState:
    """Whether it runs, and its mode."""
    running = accepts(controller.host, controller.port)
    if running is not True:
        why = _why_down(running, f"controller {controller.id}", controller.address)
        return ControllerState(controller.id, running, why, why)
    mode = part_read(lambda: controller_mode(spec, controller, secrets=secrets, timeout=SOURCE_SECONDS))
    return ControllerState(controller.id, running, mode, Unread("replaced by its gauges"))


def broker_state(
    broker_id: int, look: BrokerLook | Unread, gauges: NodeMetrics | Unread, quorum: QuorumState | Unread
) -> BrokerState:
    """What the look at a broker and its gauges say together."""
    if not was_read(look):
        look = BrokerLook(look, look, look, Loading(look, look))
    mode = look.mode
    if not was_read(mode) and was_read(quorum) and broker_id in quorum.registrations:
        mode = BrokerMode.HYBRID if quorum.registrations[broker_id].is_migrating_zk_broker else BrokerMode.KRAFT
    metrics = part_read(partial(broker_metrics, gauges)) if was_read(gauges) else gauges
    version = _version(gauges)
    cluster_id = look.view.state.cluster_id if was_read(look.view) else look.view
    silent = is_silent(look.running, look.mode, gauges) and not was_read(look.view)
    lives = look.running is False and was_read(gauges)
    if lives and not was_read(mode):
        mode = Unread(f"broker {broker_id} {LIVES}")
    return BrokerState(broker_id, look.running, mode, metrics, version, cluster_id, silent, lives, look.loading)


def _version(gauges: NodeMetrics | Unread) -> str | Unread:
    if not was_read(gauges):
        return gauges
    return gauges.software_version or Unread("its metrics do not name it")


def controller_state(
    controller_id: int, look: ControllerState | Unread, gauges: NodeMetrics | Unread
) -> ControllerState:
    """What the look at a controller and its gauges say together."""
    if not was_read(look):
        look = ControllerState(controller_id, look, look, look)
    metrics = part_read(partial(controller_metrics, gauges)) if was_read(gauges) else gauges
    if look.running is False and not was_read(metrics):
        metrics = Unread(f"controller {controller_id} does not run")
    silent = is_silent(look.running, look.mode, gauges)
    return ControllerState(controller_id, look.running, look.mode, metrics, silent, _version(gauges))
