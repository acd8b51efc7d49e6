"""One rehearsal of a cluster's migration with its own metadata: from the copy of its tree to the verdict.

The source is read once, and nothing is written there. Everything else happens in a throwaway cluster on this machine,
which is gone afterwards, whatever happened.
"""

from __future__ import annotations

import contextlib
import secrets as random_values
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath

from kraft_runbook.cluster.rehearsal_settings import Rehearsal
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.errors import Refused, RunbookError, StepFailed, Unreachable
from kraft_runbook.evidence.kinds import Canary
from kraft_runbook.evidence.rehearsal_record import OnRecord
from kraft_runbook.gates.proof import digest_of_file
from kraft_runbook.io.local.cores import processors
from kraft_runbook.io.local.garbage import keep_little
from kraft_runbook.io.local.lease import LEASE_SECONDS
from kraft_runbook.io.local.usage import Usage
from kraft_runbook.io.own_code import version_of_code
from kraft_runbook.io.secrets import Secrets
from kraft_runbook.migration.copy_tuning import heap_mib, heap_needed
from kraft_runbook.parity.decoding import PASSWORD_ENCODER_SECRET
from kraft_runbook.parity.parity_report import ParityReport
from kraft_runbook.procedures.copy_tree import copy_tree
from kraft_runbook.procedures.halve_suspects import halve_suspects, keep_tree
from kraft_runbook.procedures.observe import expect_partitions
from kraft_runbook.procedures.source_at_work import source_at_work
from kraft_runbook.procedures.throwaway_cluster import ThrowawayCluster, Watch, installed_jars
from kraft_runbook.procedures.throwaway_place import one_rehearsal, remove
from kraft_runbook.rehearsal.as_copied import Assigned, assigned_brokers
from kraft_runbook.rehearsal.copied_tree import CopiedTree, why_not_loaded
from kraft_runbook.rehearsal.kafka_said import (
    UNAPPLIED,
    KafkaSaid,
    end_at_start_of,
    fatal_of,
    heap_is_full,
    place_at_fault,
    since_start,
)
from kraft_runbook.rehearsal.limits import exceeded
from kraft_runbook.rehearsal.random_values import new_cluster_id
from kraft_runbook.rehearsal.suspects import Halved, suspect_of
from kraft_runbook.rehearsal.throwaway import heaps, java_options, throwaway_of
from kraft_runbook.rehearsal.verdict import SHORT, WHOLE, Finding, Measured, Rung, Verdict, judge
from kraft_runbook.rehearsal.whose_fault import (
    beside_a_fault_of_the_place,
    beside_a_standstill,
    is_the_places,
    of_a_start,
)
from kraft_runbook.steps.handle import Cluster, Tell
from kraft_runbook.steps.judged_gates import judge_tree
from kraft_runbook.steps.ladder import COPY, WINDOW, Compare, Ladder, RungEnded

METADATA_ERRORS = "KRB-GATE-010"
"""The check that counts what a controller could not apply."""
NOT_ENDED = Finding(Verdict.INCONCLUSIVE, "it has not ended: it is under way, or it was killed")
"""Of one that has begun."""


def by_spark(spec: ClusterSpec, *, secrets: Secrets, **how: object) -> ParityReport:
    """Parity in full, by Spark on this machine."""
    from kraft_runbook.parity.spark.full_comparison import run_parity  # pyspark takes a second to import

    return run_parity(spec, secrets=secrets, **how)  # type: ignore[arg-type]


class SourceAtWork(Refused):
    """The cluster is being migrated or changed: a rehearsal with its metadata would tell nothing now."""


Halve = Callable[[ThrowawayCluster, Path, KafkaSaid], Halved]
"""As ``procedures.halve_suspects.halve_suspects``."""


@dataclass(frozen=True, slots=True)
class Ask:
    """How a rehearsal is made. ``whole``: the whole ladder; else to dual write and back (``verdict.SHORT``).
    ``waits``: for another one in the same place, up to ``time_limit``; else it is refused beside one. ``passed``: the
    earlier ones that PASSED; ``ahead``: for ``Canary.ahead``, asked at each record. ``keep``: leave the throwaway where
    it is, running, for a look. ``lease``: seconds. ``class_archive``: as of ``ThrowawayCluster.prepare``. ``at_work``:
    as ``source_at_work``. ``ladder``, ``judge_tree``: what climbs, and judges the tree where nothing could climb on it.
    ``record``: puts what is known on record, when it has begun and when its verdict is known.
    """

    whole: bool = True
    waits: bool = False
    passed: tuple[OnRecord, ...] = ()
    ahead: Callable[[], tuple[str, ...]] = tuple
    keep: bool = False
    lease: float = LEASE_SECONDS
    class_archive: Path | None = None
    compare: Compare = by_spark
    at_work: Callable[..., tuple[str, ...]] = source_at_work
    copy: Callable[..., CopiedTree] = copy_tree
    ladder: Callable[..., Ladder] = Ladder
    judge_tree: Callable[[Cluster], tuple[Finding, ...]] = judge_tree
    halve: Halve = halve_suspects
    remove: Callable[[Path], tuple[str, ...]] = remove
    record: Callable[[Canary], object] = lambda told: None


@dataclass
class Climb:
    """What is known of a rehearsal so far."""

    found: list[Finding] = field(default_factory=list)
    done: list[Rung] = field(default_factory=list)
    measured: Measured = field(default_factory=lambda: Measured(cores=processors().cores))
    left_out: tuple[str, ...] = ()
    kept: Mapping[str, object] = field(default_factory=dict)
    source_id: str = ""

    def note(self, **numbers: object) -> None:
        """Measured numbers."""
        self.measured = replace(self.measured, **numbers)  # type: ignore[arg-type]


def rehearse(source: ClusterSpec, *, secrets: Secrets, tell: Tell, ask: Ask | None = None) -> Canary:
    """Rehearse; what became of it. It is on record (``ask.record``) twice: INCONCLUSIVE once it has begun, which stays
    the last word on one that is killed, and its verdict, before anything is removed.

    Raises Refused where it can't begin: the cluster file has no ``rehearsal``, another one is under way here, or is
    kept and still runs, or Kafka is not installed on this machine; SourceAtWork where the cluster is being migrated or
    changed. Nothing is on record then. What ends the process or the task (SystemExit,
    Airflow's time-out) goes on record, and is raised again.
    """
    ask = ask or Ask()
    settings = source.rehearsal
    if settings is None:
        raise Refused(
            f"the cluster file of {source.name} has no 'rehearsal'",
            way_out="say where it is to take place: docs/rehearsal.md",
        )
    jars = installed_jars(source, settings)
    keep_little()
    climb, wanted = Climb(), WHOLE if ask.whole else SHORT
    waits = settings.time_limit if ask.waits else 0.0
    with one_rehearsal(settings, source.name, tell=tell, keep=ask.keep, within=waits) as directory:
        began = time.monotonic()
        ended_by: BaseException | None = None
        try:
            _require_at_rest(source, ask, secrets)
            ask.record(_canary(source, ask, climb, Verdict.INCONCLUSIVE, (NOT_ENDED,)))
            try:
                _climb(source, settings, directory, jars, wanted, climb, secrets=secrets, tell=tell, ask=ask)
            except BaseException as error:
                climb.found += _found(error)
                if not isinstance(error, Exception | KeyboardInterrupt):
                    ended_by = error
            climb.note(seconds=round(time.monotonic() - began, 1))
            heap = heap_mib(source.controller_heap) if source.controller_heap else None
            climb.found += exceeded(climb.measured, settings.limits, heap_mib=heap, passed=ask.passed)
            verdict, reasons = judge(wanted, climb.done, dict.fromkeys(climb.found), climb.measured)
            told = _canary(source, ask, climb, verdict, reasons)
            ask.record(told)
        finally:
            if not ask.keep:
                _remove(directory, tell, ask.remove)
    if ended_by is not None:
        raise ended_by
    return told


def _require_at_rest(source: ClusterSpec, ask: Ask, secrets: Secrets) -> None:
    """Raises SourceAtWork, Refused. That the source does not answer goes on record, where its tree is to be copied."""
    with contextlib.suppress(Unreachable):
        why = ask.at_work(source, secrets=secrets, now=datetime.now(UTC))
        if why:
            raise SourceAtWork(
                f"{source.name} is not rehearsed while it is migrated or changed: {'; '.join(why)}",
                way_out="rehearse when that has ended",
            )


def _found(error: BaseException) -> Iterable[Finding]:
    """What an error that ended the climb says."""
    match error:
        case RungEnded():
            return error.found
        case RunbookError():
            return (Finding(Verdict.INCONCLUSIVE, error.problem),)
        case _ if is_the_places(error):
            return (Finding(Verdict.INCONCLUSIVE, f"this machine: {type(error).__name__}: {error}"[:600]),)
        case KeyboardInterrupt():
            return (Finding(Verdict.INCONCLUSIVE, "it was interrupted"),)
        case Exception():
            return (Finding(Verdict.FAILED, f"this tool failed: {type(error).__name__}: {error}"),)
    return (Finding(Verdict.INCONCLUSIVE, f"it was ended from outside: {type(error).__name__}: {error}"),)


def _remove(directory: Path, tell: Tell, remove: Callable[[Path], object]) -> None:
    """Remove what is left. Where that fails it is told: the verdict is on record already, and stays what it is."""
    try:
        remove(directory)
    except RunbookError as error:
        tell(f"the throwaway is not removed: {error.problem}. What to do: {error.way_out}")
    except OSError as error:
        tell(f"the throwaway in {directory} is not removed: {error}. What to do: remove it by hand")


def _canary(source: ClusterSpec, ask: Ask, climb: Climb, verdict: Verdict, reasons: Iterable[Finding]) -> Canary:
    return Canary(
        verdict=verdict.value,
        whole=ask.whole,
        reasons=tuple(f"{each.verdict}: {each.what}" for each in reasons),
        rungs=tuple(each.value for each in climb.done),
        measured=climb.measured.to_dict(),
        cluster_file=digest_of_file(source),
        kafka=source.kafka.version,
        tool=version_of_code(),
        source=climb.source_id,
        left_out=climb.left_out,
        kept=dict(climb.kept),
        ahead=ask.ahead() or None,
    )


def _climb(
    source: ClusterSpec,
    settings: Rehearsal,
    directory: Path,
    jars: tuple[Path, ...],
    wanted: Sequence[Rung],
    climb: Climb,
    *,
    secrets: Secrets,
    tell: Tell,
    ask: Ask,
) -> None:
    began = time.monotonic()
    encoder, cluster_id = random_values.token_urlsafe(24), new_cluster_id()
    data = directory / "zookeeper" / "data"
    data.parent.mkdir(mode=0o700)
    usage = Usage()
    usage.look()
    with usage.span(Rung.COPY_THE_TREE):
        copied = ask.copy(source, data, secrets=secrets, cluster_id=cluster_id, encoder_secret=encoder, tell=tell)
    usage.look()
    kept_tree = keep_tree(copied.snapshot, directory / "copied-tree")
    climb.source_id, climb.kept = copied.source_cluster_id, copied.kept.to_dict()
    climb.found += [Finding(Verdict.INCONCLUSIVE, why) for why in copied.why_not_whole]
    assigned = assigned_brokers(copied.assigned_brokers, live=copied.live_brokers, declared=source.broker_ids)
    climb.found += assigned.found
    brokers = copied.live_brokers | copied.assigned_brokers
    climb.note(
        partitions=copied.partitions,
        topics=copied.topics,
        brokers=len(brokers),
        znodes=copied.znodes,
        tree_seconds=round(copied.seconds, 2),
        tree_cpu=round(copied.cpu_seconds, 2),
    )
    climb.done.append(Rung.COPY_THE_TREE)
    made = throwaway_of(
        source,
        settings,
        PurePosixPath(directory),
        cluster_id=cluster_id,
        source_cluster_id=copied.source_cluster_id,
        broker_ids=brokers,
        configured_ids=copied.configured_brokers,
        partitions=copied.partitions,
    )
    climb.left_out = (*made.left_out, *copied.left_out_told)
    needed = heap_needed(copied.partitions, len(brokers) + settings.seats).mib
    throwaway = ThrowawayCluster(
        made.spec,
        _values(made.spec, encoder),
        heaps(source, made.spec, needed),
        tell,
        lease=ask.lease,
        usage=usage,
        options=java_options(made.spec, copied.partitions),
    )
    expect_partitions(made.spec.name, copied.partitions)
    throwaway.prepare(jars, class_archive=ask.class_archive)
    left = settings.time_limit - (time.monotonic() - began)
    if left <= 0:
        raise StepFailed(
            f"the time limit of {settings.time_limit:g} s was reached before anything was started: the tree took"
            f" {copied.seconds:.0f} s to read",
            way_out="raise rehearsal.time_limit, or zookeeper.read_rate, in the cluster file",
        )
    with ExitStack() as stack:
        watch = stack.enter_context(throwaway.watched(left))
        stack.callback(_note_usage, climb, throwaway)
        brokers_started = False
        cluster = Cluster(made.spec, throwaway.secrets, tell)
        ladder = ask.ladder(throwaway, cluster, ask.compare, directory / "evidence")
        try:
            with usage.span(Rung.START):
                throwaway.start_zookeeper()
                if why := why_not_loaded(copied.znodes, throwaway.znodes()):
                    raise RungEnded(Finding(Verdict.INCONCLUSIVE, why))
                throwaway.start_brokers()
                brokers_started = True
                ladder.await_a_controller()
            climb.done.append(Rung.START)
            try:
                ladder.climb(wanted)
            finally:
                _note_ladder(climb, ladder, assigned)
        except Exception as error:
            rung = next((each for each in wanted if each not in climb.done), wanted[-1])
            died = _blame(climb, error, rung, throwaway, watch, source)
            if brokers_started and not ladder.judged and not watch.out_of_time:
                climb.found += _of_the_tree(cluster, ask)
            if died is not None and suspect_of(died.znode) is None:
                climb.found.append(_narrowed(ask.halve, throwaway, kept_tree, died))
            raise RungEnded() from error


def _note_ladder(climb: Climb, ladder: Ladder, assigned: Assigned) -> None:
    """What it did, found and measured. Until the first way forward is done the ISRs are the copied ones."""
    copied = Rung.FORWARD not in ladder.done
    climb.done += ladder.done
    climb.found += [assigned.of_that_moment(each) if copied else each for each in ladder.found]
    numbers = ladder.measured.to_dict()
    climb.note(**{name: number for name, number in numbers.items() if number is not None})
    climb.note(refused=tuple(ladder.refused))


def _of_the_tree(cluster: Cluster, ask: Ask) -> Iterable[Finding]:
    """Which znodes are at fault where no gate could look at them: a broker reads most of them when it starts. What
    ended the climb is found already, so a look that fails takes nothing from it.
    """
    cluster.tell("-- no gate was judged: the tree is")
    try:
        return ask.judge_tree(cluster)
    except (RunbookError, OSError) as error:
        cluster.tell(f"it could not be: {error.problem if isinstance(error, RunbookError) else error}")
        return ()


def _narrowed(
    halve: Halve,
    throwaway: ThrowawayCluster,
    tree: Path,
    died: KafkaSaid,
) -> Finding:
    """Which znodes ended the copy, where Kafka names none. A search that fails says so: the copy ended all the same."""
    throwaway.tell("-- Kafka names no znode: its copy is tried again with parts of the tree")
    try:
        told = halve(throwaway, tree, died).told()
    except (RunbookError, OSError) as error:
        told = f"which znode, is not known: {error.problem if isinstance(error, RunbookError) else error}"
    return Finding(Verdict.FAILED, f"which znode ends Kafka's copy: {told}")


def _values(spec: ClusterSpec, encoder: str) -> dict[str, str]:
    """The throwaway's secrets, by environment variable."""
    return {
        ref.env: encoder if key == PASSWORD_ENCODER_SECRET else random_values.token_urlsafe(32)
        for key, ref in spec.secrets.items()
        if ref.env
    }


def _note_usage(climb: Climb, throwaway: ThrowawayCluster) -> None:
    """What it took in all, in each rung, in Kafka's copy and in the window of the way back."""
    throwaway.look()
    usage = throwaway.usage
    rungs = {rung.value: asdict(taken) for rung in Rung if (taken := usage.of(rung))}
    rungs[Rung.COPY_THE_TREE.value]["cpu"] = climb.measured.tree_cpu
    for name in (COPY, WINDOW):
        if taken := usage.of(name):
            climb.note(**{f"{name}_{key}": value for key, value in asdict(taken).items() if key != "seconds"})
    climb.note(
        rungs=rungs,
        controller_rss=usage.peak(each.service for each in throwaway.spec.controllers),
        cpu=round(usage.cpu_seconds, 1) or None,
        load=round(usage.load, 1) or None,
    )


def _blame(
    climb: Climb,
    error: Exception,
    rung: Rung,
    throwaway: ThrowawayCluster,
    watch: Watch,
    source: ClusterSpec,
) -> KafkaSaid | None:
    """Add what ended the climb, in this rung, and whose fault it is. Where that is this machine's, so is what the gates
    found of processes, and what was compared after it stood still. Where nobody knows it is no pass. Returns what a
    controller said that ended in the first copy.
    """
    if isinstance(error, RungEnded):
        climb.found += error.found
    match error:
        case RunbookError():
            why = error.problem
        case RungEnded():
            why = str(error) or "a gate's checks did not pass"
        case _:
            why = f"{type(error).__name__}: {error}"[:600]
    found, died = _known_fault(why, rung, throwaway, watch, source)
    if found is not None:
        if found.verdict is Verdict.INCONCLUSIVE:
            climb.found = [beside_a_fault_of_the_place(each) for each in climb.found]
        climb.found.append(found)
        if not isinstance(error, RunbookError | RungEnded):
            climb.found.append(Finding(Verdict.INCONCLUSIVE, f"then this tool ended with {why}"))
    elif not isinstance(error, RungEnded):
        climb.found += _found(error)
    if died is None:
        climb.found += _unapplied(climb, throwaway)
    if stood_still := throwaway.stood_still():
        climb.found = [beside_a_standstill(each, stood_still) for each in climb.found]
    return died


def _known_fault(
    why: str, rung: Rung, throwaway: ThrowawayCluster, watch: Watch, source: ClusterSpec
) -> tuple[Finding | None, KafkaSaid | None]:
    """Whose fault it is: the cluster file's, where a controller's heap as the file gives it is full; this tool's, where
    one is that it chose itself, which tells nothing of the cluster; the machine's, where a log or the time limit says
    so; the metadata's, where a controller ended of it, and what it said where that was in the first copy; None: nobody
    knows. ``why``: what ended the climb, in ``rung``. A controller that ended of its quorum alone is no fault of the
    metadata; what ended a seat or a controller at its start is that of a znode or a setting.
    """
    if watch.out_of_time:
        assert source.rehearsal is not None, "it is rehearsed"
        said = f"the time limit of {source.rehearsal.time_limit:g} s was reached: {why}"
        return Finding(Verdict.INCONCLUSIVE, said), None
    controllers = {each.service for each in throwaway.spec.controllers}
    logs = list(throwaway.logs())
    if heap := throwaway.spec.controller_heap:
        for service, lines in logs:
            if service in controllers and (full := heap_is_full(lines)):
                said = f"controller_heap, {heap}, is too small: {service} says: {full}"
                return Finding(Verdict.FAILED, said), None
    for service, lines in logs:
        if (chosen := throwaway.heaps.get(service)) and (full := heap_is_full(lines)):
            said = f"the heap that the rehearsal chose for {service}, {chosen}, is too small: it says: {full}"
            return Finding(Verdict.INCONCLUSIVE, said), None
    for service, lines in logs:
        if place := place_at_fault(lines):
            return Finding(Verdict.INCONCLUSIVE, f"this machine is at fault, says {service}: {place}"), None
    faults = [found for service, lines in logs if service in controllers and (found := fatal_of(since_start(lines)))]
    died = next((each for each in faults if each.of_metadata and not each.passing), None)
    if died is not None and rung in (Rung.FORWARD, Rung.FORWARD_AGAIN):
        said = f"Kafka's own copy ended its controllers: {died}"
        return Finding(Verdict.FAILED, said), died if rung is Rung.FORWARD else None
    if died is not None:
        return Finding(Verdict.FAILED, f"a controller had ended when '{rung}' did: {died}"), None
    seats = {each.service for each in throwaway.spec.brokers}
    for service, lines in logs:
        if service in controllers | seats and (unable := end_at_start_of(lines)):
            return of_a_start(service, unable, source, throwaway.spec), None
    if faults:
        said = f"a controller had ended when '{rung}' did, and does not blame the metadata: {faults[0]}"
        return Finding(Verdict.INCONCLUSIVE, said), None
    return None, None


def _unapplied(climb: Climb, throwaway: ThrowawayCluster) -> Iterable[Finding]:
    """What a controller could not apply. It goes on, so this explains a gate that counts such errors and nothing else:
    what ended the climb stands beside it.
    """
    counted = any(each.code == METADATA_ERRORS for each in climb.found)
    verdict = Verdict.FAILED if counted else Verdict.INCONCLUSIVE
    controllers = {each.service for each in throwaway.spec.controllers}
    for service, lines in throwaway.logs():
        if service in controllers and (said := fatal_of(lines, fault=UNAPPLIED)):
            yield Finding(verdict, f"{service} could not apply what it had copied: {said}")
            return
