"""Observing a cluster again while its phase is UNKNOWN, which may be over in a moment.

A node that has just started contradicts the others for some seconds (docs/interruptions.md lists how). So code that may
refuse observes through this module. Waits look again and again anyway.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection

from kraft_runbook.cluster.observation import ClusterObservation
from kraft_runbook.cluster.phases import Phase, PhaseReading, detect_phase
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.io.secrets import Secrets
from kraft_runbook.procedures.observe import LIVE_SECONDS, Scope, observe


def observe_settled(
    spec: ClusterSpec,
    *,
    secrets: Secrets,
    tell: Callable[[str], object],
    scope: Scope = Scope.LIVE,
    with_hosts: bool = False,
    within: float | None = None,
    gone: Collection[int] = (),
    look: Callable[..., ClusterObservation] = observe,
    monotonic: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], object] = time.sleep,
) -> ClusterObservation:
    """Observe, and again every ``deadlines.poll`` seconds while the phase is UNKNOWN. Returns the last observation.

    While a node may be starting (``PhaseReading.transient``), it goes on for ``within`` seconds (default:
    ``deadlines.quorum``); at any other contradiction ``deadlines.healthy_in_a_row`` times. The looks in between are
    quick and show no topics; one as asked for comes last. ``tell`` gets the reasons of UNKNOWN when they change.
    ``gone``: as in ``observe``.
    Raises SecretMissing if a secret can't be resolved.

    The first look does not count, since a deep one may take minutes; each further one counts as no longer than a quick
    look can take. So a machine that was paused in between, which often costs the quorum an election, is given its time.
    """
    left = spec.deadlines.quorum if within is None else within
    quick = scope is Scope.NODES and not with_hosts
    told, lasting = "", 0
    while True:
        seen, is_quick = look(spec, secrets=secrets, scope=scope, with_hosts=with_hosts, gone=gone), quick
        while (reading := detect_phase(seen)).phase is Phase.UNKNOWN:
            lasting = 0 if reading.transient else lasting + 1
            if left <= 0 or lasting >= spec.deadlines.healthy_in_a_row:
                return (
                    seen
                    if is_quick is quick
                    else look(spec, secrets=secrets, scope=scope, with_hosts=with_hosts, gone=gone)
                )
            told = _say(reading, told, tell)
            began = monotonic()
            sleep(spec.deadlines.poll)
            seen, is_quick = look(spec, secrets=secrets, scope=Scope.NODES, gone=gone), True
            left -= min(monotonic() - began, spec.deadlines.poll + LIVE_SECONDS)
        if is_quick is quick:
            return seen


def _say(reading: PhaseReading, told: str, tell: Callable[[str], object]) -> str:
    text = "; ".join(reading.reasons)
    if text != told:
        tell(f"not clear yet, looking again: {text}")
    return text
