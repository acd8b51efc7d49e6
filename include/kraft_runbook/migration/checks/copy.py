"""The expected length of Kafka's metadata copy and its needs, shown before anybody signs the start gate."""

from __future__ import annotations

from collections import defaultdict

from kraft_runbook.cluster.controller_settings import DEFAULT_BATCH_SIZE, MIN_BATCH_SIZE
from kraft_runbook.cluster.copy_groups import BATCH_BYTES
from kraft_runbook.cluster.java_values import java_int, trim
from kraft_runbook.cluster.naming import nodes
from kraft_runbook.cluster.node_properties import controller_properties
from kraft_runbook.cluster.observation import ClusterObservation, ControllerMode, Unread, host_part, was_read
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.migration.checks.catalogue import check
from kraft_runbook.migration.controller_files import lacking_migration_mode
from kraft_runbook.migration.copy_forecast import COPY_AHEAD, copied_of, copy_tuning
from kraft_runbook.migration.copy_tuning import duration
from kraft_runbook.runbook.check_results import Finding, Severity, failed, passed, settle, unknown
from kraft_runbook.runbook.checklist import Needs

EXPECTED_COPY = "KRB-PRE-054"
"""The check whose evidence is the expected length; the closing report quotes it."""
_RAISE = (
    "raise deadlines.metadata_copy to at least twice the expected time; if no time is known, measure a copy of that"
    " size (docs/copy.md)"
)
_HEAP = (
    "give every controller's service that heap (-Xmx, in KAFKA_HEAP_OPTS) before it is started, and set"
    " controller_heap in the cluster file"
)

_PACKET = (
    "start every controller with a larger -Djute.maxbuffer (in KAFKA_OPTS of its service; the brokers needed it too), "
    "and set controller_jute_maxbuffer in the cluster file"
)


@check(EXPECTED_COPY, severity=Severity.WARNING, fix=_RAISE, stages=COPY_AHEAD)
def the_copy_fits_its_deadline(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """The metadata copy is expected to end within half of its deadline.

    While it runs, no topic, leader or ISR changes: it is the migration's real outage. The deadline also covers the sync
    to ZooKeeper and the requests to the brokers after the copy, which took nearly as long (88 s after a copy of 108 s
    at 200,000 partitions, measured on 3.9.2).
    """
    tuning = copy_tuning(seen, spec)
    if not was_read(tuning):
        return unknown(tuning)
    told = f"{tuning.render_expectation()}; deadlines.metadata_copy is {duration(spec.deadlines.metadata_copy)}"
    if tuning.expected.seconds * 2 > spec.deadlines.metadata_copy:
        return failed(told)
    return passed(told) if tuning.expected.beyond is None else unknown(told, _RAISE)


@check("KRB-PRE-055", severity=Severity.WARNING, fix=_HEAP, stages=COPY_AHEAD)
def the_controllers_heap_fits_the_copy(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """The controllers' heap is large enough for the metadata copy and the requests to the brokers.

    After the copy the active controller holds a full update for every broker in memory at once. If that does not fit,
    requests time out, each is logged whole, brokers are fenced, and dual write never begins (1,000,000 partitions × 30
    brokers in 6 GiB, measured on 3.9.2).
    """
    tuning = copy_tuning(seen, spec)
    if not was_read(tuning):
        return unknown(tuning)
    enough = tuning.heap_is_enough
    if enough is None:
        return unknown(tuning.render_heap(), _HEAP)
    return passed(tuning.render_heap()) if enough else failed(tuning.render_heap())


@check("KRB-PRE-056", severity=Severity.BLOCKING, fix=_PACKET, stages=COPY_AHEAD, needs=Needs.TREE)
def every_list_fits_into_a_packet(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """The controllers can read each list of znodes that the copy needs from ZooKeeper in one packet.

    A list comes in one reply: of all topics, of the users, clients or addresses with quotas, of the resources of one
    type with ACLs, of all delegation tokens. If it is longer than jute.maxbuffer of the controllers' JVM (Kafka's
    default: 4 MiB), ZooKeeper's client closes the connection and the controller asks again, for ever. The copy never
    ends, while /controller names a KRaft controller, and only that controller's log says so (5,600,088 bytes at 200,000
    topics, measured on 3.9.2).
    """
    tree = seen.tree
    if not was_read(tree):
        return unknown(tree)
    longest = tree.longest_list
    if not was_read(longest):
        return unknown(longest)
    told = (
        f"the longest list, of {longest.names:,} znodes below {longest.path}, has {longest.bytes:,} bytes; the"
        f" controllers accept {spec.controller_jute_maxbuffer:,}"
    )
    return passed(told) if longest.bytes < spec.controller_jute_maxbuffer else failed(told)


_SHORTER = (
    "set {key}: '{size}' in controller_properties of the cluster file before the controllers are provisioned. Of"
    " controllers that have their files already: put the same line into each file and restart them one by one, all"
    " before the last broker registers in migration mode"
)
_TOO_LONG = "no batch size is small enough: shorten the longest configs of a topic or broker (kafka-configs)"


@check(
    "KRB-PRE-089",
    severity=Severity.BLOCKING,
    fix=_SHORTER.format(key=MIN_BATCH_SIZE, size="N"),
    stages=COPY_AHEAD,
    needs=Needs.TREE,
)
def every_batch_of_the_copy_fits_the_metadata_log(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """No batch of the metadata copy can be larger than the metadata log accepts.

    The copy collects zookeeper.metadata.migration.min.batch.size records, a topic's always together, and appends them
    as one batch. A batch above 8 MiB (RecordBatchTooLargeException) ends the active controller, then the next one, and
    the cluster is left without a controller (700 topics with 16 kB of configs each at 5000, measured on 3.9.2). The
    check adds up the heaviest records that could meet in one batch, in whatever order Kafka reads them: topics, their
    configs and partitions, the brokers' dynamic configs, quotas, credentials, ACLs and tokens.
    """
    copied, tuning = copied_of(seen), copy_tuning(seen, spec)
    if not was_read(copied):
        return unknown(copied)
    if not was_read(tuning):
        return unknown(tuning)
    settings: dict[str, list[int]] = defaultdict(list)
    unread = []
    for controller in spec.controllers:
        file = host_part(seen, controller.id, "config")
        if isinstance(file, Unread):
            unread.append(f"controller {controller.id}'s file: {file.reason}")
            continue
        if file is None or lacking_migration_mode(file):  # what provisioning is going to write
            file = controller_properties(spec, controller, ControllerMode.MIGRATION, also=tuning.size.properties)
        settings[trim(file.get(MIN_BATCH_SIZE, str(DEFAULT_BATCH_SIZE)))].append(controller.id)
    wrong, told = [], []
    for text, ids in settings.items():
        who, size = f"{nodes('controller', ids)}", java_int(text)
        if size is None or size < 1:
            wrong.append(f"{who}: {MIN_BATCH_SIZE} is no whole number above 0")
            continue
        most = copied.most_bytes(size)
        told.append(f"{who}: with {MIN_BATCH_SIZE}={size} a batch may have up to {most:,} bytes")
        if most > BATCH_BYTES:
            wrong.append(f"{told[-1]}; Kafka accepts {BATCH_BYTES:,}")
    found = settle(wrong, unread, f"{'; '.join(told)}; Kafka accepts {BATCH_BYTES:,}")
    if not wrong:
        return found
    greatest = copied.greatest_setting()
    cure = _TOO_LONG if greatest is None else _SHORTER.format(key=MIN_BATCH_SIZE, size=_round(greatest))
    return failed(found.evidence, cure)


def _round(number: int) -> int:
    """Down to one digit that counts: 3,476 to 3,000."""
    unit = int("1" + "0" * (len(str(number)) - 1))
    return number // unit * unit
