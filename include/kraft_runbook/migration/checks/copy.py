"""The expected length of Kafka's metadata copy and its needs, shown before anybody signs the start gate."""

from __future__ import annotations

from kraft_runbook.cluster.observation import ClusterObservation, was_read
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.migration.checks.catalogue import check
from kraft_runbook.migration.copy_forecast import COPY_AHEAD, copy_tuning
from kraft_runbook.migration.copy_tuning import duration
from kraft_runbook.runbook.check_results import Finding, Severity, failed, passed, unknown
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
def the_list_of_topics_fits_into_a_packet(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """The controllers can read the list of all topics from ZooKeeper in one packet.

    The list comes in one reply. If it is longer than jute.maxbuffer of the controllers' JVM (Kafka's default: 4 MiB),
    ZooKeeper's client closes the connection and the controller asks again. The copy never begins, and only the
    controller's log says so (5,600,088 bytes at 200,000 topics, measured on 3.9.2).
    """
    tree = seen.tree
    if not was_read(tree):
        return unknown(tree)
    told = (
        f"the list of {tree.topics:,} topics has {tree.topic_list_bytes:,} bytes; the controllers accept"
        f" {spec.controller_jute_maxbuffer:,}"
    )
    return passed(told) if tree.topic_list_bytes < spec.controller_jute_maxbuffer else failed(told)
