"""What must hold of the nodes' files before the roll, which writes them whole for another Kafka."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

from kraft_runbook.cluster.config_meaning import listed
from kraft_runbook.cluster.config_tables import config_table
from kraft_runbook.cluster.feature_levels import NodeHost
from kraft_runbook.cluster.node_properties import kraft_properties
from kraft_runbook.cluster.observation import ClusterObservation, Unread
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.runbook.broker_files import controller_files_in_kraft, told_apart
from kraft_runbook.runbook.check_results import BLOCKING, WARNING, Finding, settle
from kraft_runbook.runbook.checklist import Needs
from kraft_runbook.runbook.differing_files import capped, differing_keys
from kraft_runbook.runbook.host_checks import AS_RENDERED
from kraft_runbook.runbook.read_parts import needed
from kraft_runbook.software.checklist import CHECKS, both, crosses_into_4, each_file, each_host, with_a_turn
from kraft_runbook.software.class_checks import missing_classes, seen_in_a_process
from kraft_runbook.software.file_keys import FileFinding, file_findings
from kraft_runbook.software.stages import Gate

JMX_REPORTER = "org.apache.kafka.common.metrics.JmxReporter"
check = CHECKS.check


@check(
    "KRB-UPG-006",
    severity=BLOCKING,
    gates={Gate.UP},
    needs=Needs.HOSTS,
    fix="correct the cluster file's properties, and let the nodes have them before the roll",
)
def no_file_holds_what_the_target_refuses(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """No file that the roll writes holds what makes the target exit at its start.

    A node that exits on the new software is down until its file is mended. A class that the target lacks is such a
    thing too.
    """
    target = both(spec)[-1]

    def judge(host: NodeHost) -> Iterator[str | Unread]:
        written = kraft_properties(spec, host.node_id)
        yield from _told(written, target.version, spec.kafka.version, _refused)
        missing = list(missing_classes(host, target, written=written))
        yield from (each for each in missing if isinstance(each, Unread))
        if any(isinstance(each, str) for each in missing):
            yield f"it names classes that {target.version} lacks (KRB-UPG-017)"

    return each_host(seen, judge, "none does")


@check(
    "KRB-UPG-028",
    severity=BLOCKING,
    gates={Gate.BACK},
    needs=Needs.HOSTS,
    fix="correct the cluster file's properties, and let the nodes have them before the way back; put a jar that is"
    " missing into kafka.home",
)
def no_file_holds_what_the_version_before_refuses(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """No file that the way back writes holds what makes the version before exit at its start.

    What only the target takes may have come into the files since: a word, a number, the name of a class that kafka.home
    has not got. A class that no home has does not block where the node is down: what else is on its class path is seen
    only while it runs.
    """

    def judge(host: NodeHost) -> Iterator[str | Unread]:
        written = kraft_properties(spec, host.node_id)
        yield from _told(written, spec.kafka.version, both(spec)[-1].version, _refused)
        yield from missing_classes(host, spec.kafka, written=written, back=True)

    features = needed(seen.features)
    untold = [
        f"{features.who(node_id)}: not judged: {each}"
        for node_id, host in features.hosts.items()
        if isinstance(host, NodeHost)
        for each in seen_in_a_process(host)
    ]
    return each_host(seen, judge, "; ".join(["none does", *untold]))


@check(
    "KRB-UPG-007",
    severity=WARNING,
    gates={Gate.UP},
    fix="take these keys out of the cluster file, or set what takes their place (docs/software.md)",
)
def no_file_holds_what_the_target_reads_over(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """No file that the roll writes holds a key that the target reads over in silence.

    Kafka then leaves the key out, without a word: delegation.token.master.key alone gives no delegation tokens. A key
    that the version before reads over too is not told: the roll changes nothing of it.
    """

    def ignored(found: Iterable[FileFinding]) -> Iterator[str | Unread]:
        keys = [each.key for each in found if not each.refused and not each.unknown]
        if keys:
            yield ", ".join(keys)
        yield from (Unread(each.problem) for each in found if each.unknown)

    target = both(spec)[-1].version
    return each_file(spec, lambda written: _told(written, target, spec.kafka.version, ignored), "none does")


@check(
    "KRB-UPG-022",
    severity=WARNING,
    gates={Gate.UP},
    fix=f"add {JMX_REPORTER} to metric.reporters in the cluster file, and let the nodes have it before the roll",
)
def who_names_metric_reporters_names_jmx_too(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """Every file that the roll writes with metric reporters names JmxReporter.

    3.9 adds it by itself. Kafka 4 does not (KIP-830): what the node shows over JMX then lacks kafka.server:type=
    raft-metrics and all else of Kafka's own metrics, without a word.
    """

    def judge(written: Mapping[str, str]) -> Iterator[str | Unread]:
        named = listed(written.get("metric.reporters", ""))
        if named and JMX_REPORTER not in named and crosses_into_4(spec):
            yield f"metric.reporters={','.join(named)}"

    return each_file(spec, judge, "every one does")


@check("KRB-UPG-016", severity=BLOCKING, needs=Needs.HOSTS, fix=AS_RENDERED, of=with_a_turn)
def controller_files_are_as_rendered(
    seen: ClusterObservation, spec: ClusterSpec, *, of: Collection[int] | None = None
) -> Finding:
    """Every controller's configuration file is what the cluster file renders.

    The roll writes files whole. The controllers of a cluster that was created in KRaft mode have files that this tool
    never wrote: a property that is not in the cluster file would be lost at the restart. Values of secrets are not
    compared.
    """
    files = (each for each in controller_files_in_kraft(seen, spec) if of is None or each.node.id in of)
    wrong, unread = told_apart(files, lambda each: capped(differing_keys(each.held, each.wanted)))
    return settle(wrong, unread, "all are")


def _refused(found: Iterable[FileFinding]) -> Iterator[str]:
    return (str(each) for each in found if each.refused)


def _told(
    written: Mapping[str, str],
    version: str,
    now: str,
    told: Callable[[tuple[FileFinding, ...]], Iterable[str | Unread]],
) -> Iterator[str | Unread]:
    """What that version says to a file that is written for it, where ``now`` runs until then."""
    table = config_table(version)
    if isinstance(table, Unread):
        yield table
    yield from told(file_findings(written, version, now=now))
