"""Clients that use what Kafka 4 no longer answers (KIP-896): said before the software is changed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from kraft_runbook.cluster.feature_levels import NodeHost
from kraft_runbook.cluster.kafka_version import release_of
from kraft_runbook.cluster.naming import in_markdown, name_ids, nodes, some
from kraft_runbook.cluster.observation import BrokerState, ClusterObservation, Unread, was_read
from kraft_runbook.cluster.old_requests import OldRequests, is_answered, not_counted
from kraft_runbook.cluster.spans import in_words
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.runbook.check_results import SAMPLE, Finding, Severity, passed, settle
from kraft_runbook.software.checklist import CHECKS, both, crosses_into_4
from kraft_runbook.software.stages import Gate

MOST_LOGGED = 100
"""Rows of the table of logged clients."""


@dataclass(frozen=True, slots=True)
class OldClient:
    """What one client software asks in one version of one API, over all brokers. ``total``: requests since each
    broker's start; ``lately``: those between two looks, None where there was one look.
    """

    software: str
    asked: str
    total: int
    lately: int | None
    brokers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class OldClients:
    """Those that ask most first. ``unread``: brokers whose counts are not known, with the reason. ``window``: between
    the two looks, in words; None where there was one.
    """

    found: tuple[OldClient, ...]
    unread: tuple[str, ...]
    window: str | None


def old_clients(seen: ClusterObservation, earlier: ClusterObservation | None, version: str) -> OldClients:
    """By what the brokers count that run and are not on Kafka 4 yet. ``version``: of that Kafka 4."""
    kinds: dict[tuple[str, str], list[tuple[int, int, int]]] = {}
    unread = []
    for broker in seen.brokers.values():
        if broker.running is False or (
            was_read(broker.software_version) and release_of(broker.software_version) >= (4, 0)
        ):
            continue
        counts = _counts(broker)
        if isinstance(counts, Unread):
            unread.append(f"broker {broker.id}: {counts.reason}")
            continue
        before = _counts(earlier.brokers[broker.id]) if earlier else ()
        if isinstance(before, Unread) and counts:
            unread.append(f"broker {broker.id} at the first look: {before.reason}")
        for each in (count for count in counts if not is_answered(count.api, count.version, version)):
            lately = 0 if isinstance(before, Unread) else _since(each, before)
            kinds.setdefault((each.software, each.asked), []).append((broker.id, each.count, lately))
    rows = (
        OldClient(
            software,
            asked,
            sum(total for _, total, _ in counted),
            None if earlier is None else sum(lately for _, _, lately in counted),
            tuple(node for node, _, _ in counted),
        )
        for (software, asked), counted in kinds.items()
    )
    by_use = sorted(rows, key=lambda each: (-(each.lately or 0), -each.total, each.software, each.asked))
    window = in_words(seen.observed_at - earlier.observed_at) if earlier else None
    if uncounted := not_counted(version):
        unread.append(uncounted)
    return OldClients(tuple(by_use), tuple(unread), window)


def _counts(broker: BrokerState) -> tuple[OldRequests, ...] | Unread:
    return broker.metrics if isinstance(broker.metrics, Unread) else broker.metrics.deprecated_requests


def _since(now: OldRequests, before: Iterable[OldRequests]) -> int:
    """How many came since the look before. All, where the broker began to count anew: it was restarted."""
    was = sum(each.count for each in before if (each.software, each.asked) == (now.software, now.asked))
    return now.count - was if was <= now.count else now.count


@CHECKS.check(
    "KRB-PRE-094",
    severity=Severity.WARNING,
    gates={Gate.UP},
    fix=(
        "update these clients to one of Kafka 2.1 or later, or of another vendor's that speaks its versions (KIP-896),"
        " before the roll. A broker names them at each such request (connection, client id, principal), once"
        " its logger kafka.request.logger is at INFO (kafka-configs --entity-type broker-loggers; docs/software.md)."
        " The totals are of the time since each broker's start; cluster_watch counts them by day, over restarts. Where"
        " it is UNKNOWN, let the exporter pass, with their keys as labels,"
        " kafka.network:type=RequestMetrics,name=DeprecatedRequestsPerSec,* and name=RequestsPerSec,* of that type"
    ),
    twice=True,
)
def no_client_asks_what_kafka_4_does_not_answer(
    seen: ClusterObservation, spec: ClusterSpec, earlier: ClusterObservation | None
) -> Finding:
    """No client has sent a request in a version that Kafka 4 no longer answers.

    Kafka 4 closes the connection or answers UNSUPPORTED_VERSION (KIP-896), so such a client can't produce or consume
    any more from the first broker of the roll on. Brokers of 3.7 and later count these requests
    (DeprecatedRequestsPerSec). Asked of the brokers that run and are not on the target yet, twice at the gate
    (upgrade_software.old_clients_window).
    """
    if not crosses_into_4(spec):
        return passed("the roll does not lead from Kafka 3 to Kafka 4")
    clients = old_clients(seen, earlier, both(spec)[-1].version)
    wrong = [_in_words(each, clients.window) for each in clients.found]
    return settle(
        [some(wrong, SAMPLE, between="; ")] if wrong else [], clients.unread, "none has since the brokers started"
    )


def _in_words(client: OldClient, window: str | None) -> str:
    lately = "" if window is None else f"{client.lately} in the last {window}, "
    start = "its start" if len(client.brokers) == 1 else "their start"
    return (
        f"{client.asked} of {client.software}: {lately}{client.total} since {start} ({nodes('broker', client.brokers)})"
    )


def table_of_old_clients(clients: OldClients, version: str) -> str | None:
    """Every client that will get no answer, as markdown. None: there is none, and every broker said so."""
    return "\n".join(_table(clients, version)) if clients.found or clients.unread else None


def _table(clients: OldClients, version: str) -> Iterator[str]:
    lately = clients.window is not None
    yield f"### Clients that Kafka {version} will not answer"
    yield ""
    if clients.found:
        yield f"| client | request and version |{f' last {clients.window} |' if lately else ''} since start | brokers |"
        yield f"|---|---|{'---:|' if lately else ''}---:|---|"
    for each in clients.found:
        now = f" {each.lately:,} |" if lately else ""
        who = f"{in_markdown(each.software)} | {in_markdown(each.asked)}"
        yield f"| {who} |{now} {each.total:,} | {name_ids(each.brokers)} |"
    if clients.unread:
        yield from [""] if clients.found else ()
        yield f"Not read: {in_markdown('; '.join(clients.unread))}."


def table_of_logged_clients(seen: ClusterObservation, version: str) -> str | None:
    """Which clients these are, as far as the brokers' request logs say: as markdown. None: no log is there."""
    if isinstance(seen.features, Unread):
        return None
    logged, unread = {}, []
    for node_id in seen.features.brokers:
        host = seen.features.hosts.get(node_id)
        if not isinstance(host, NodeHost) or host.logged is None:
            continue
        if isinstance(host.logged, Unread):
            unread.append(f"broker {node_id}: {host.logged.reason}")
        else:
            logged[node_id] = host.logged
    if not logged and not unread:
        return None
    read = [f"broker {i} from {in_markdown(found.since or 'no known time')}" for i, found in logged.items()]
    lines = [
        "### Who they are, by the brokers' request logs (the last 8 MiB of each)",
        "",
        f"Read: {'; '.join(read)} on." if read else "",
        "",
        "| client id | principal | address | request and version | how many | broker | last |",
        "|---|---|---|---|---:|---|---|",
    ]
    asked = ((each, i) for i, found in logged.items() for each in found.clients)
    rows = [row for row in asked if not is_answered(row[0].api, row[0].version, version)]
    rows.sort(key=lambda row: -row[0].count)
    left_out = max(0, len(rows) - MOST_LOGGED) + sum(found.more for found in logged.values())
    lines += [
        f"| {in_markdown(each.client_id or 'none')} | {in_markdown(each.principal)} | {in_markdown(each.address)} |"
        f" {in_markdown(each.api)} {each.version} | {each.count:,} | {i} | {in_markdown(each.at)} |"
        for each, i in rows[:MOST_LOGGED]
    ]
    if not rows:
        lines += ["", "Nobody asked so in what was read."]
    if left_out:
        lines += ["", f"{left_out:,} more are left out."]
    if unread:
        lines += ["", f"Not read: {in_markdown('; '.join(unread))}."]
    lines += ["", f"Kafka {version} will not answer these requests. A log has only who came since it was at INFO."]
    return "\n".join(lines)
