"""What a broker holds, by the word of every other one that runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from kraft_runbook.brokers.unregistering import Held, held_by, worst
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.cluster.spec_nodes import Broker
from kraft_runbook.errors import Refused, Unreachable
from kraft_runbook.io.kafka.assignment_seen import AssignmentSeen, assignment_seen_by
from kraft_runbook.io.secrets import Secrets

AT_A_TIME = 3
"""How many are asked side by side: each answer names every partition of the cluster."""


def see_held(
    spec: ClusterSpec,
    broker: int,
    asked: Sequence[Broker],
    *,
    secrets: Secrets,
    seen_by: Callable[..., AssignmentSeen] = assignment_seen_by,
) -> Held:
    """What the broker holds, where the worst counts that any of ``asked`` says. A broker that no longer follows the
    metadata log serves on with what it knew (KAFKA-20514), so that one alone proves nothing. Raises Unreachable where
    one of them does not answer; Refused where there is none.
    """
    if not asked:
        raise Refused(
            f"no other broker runs, so what broker {broker} holds is not known",
            way_out="start the others first, then clear this task",
        )

    def said(by: Broker) -> Held:
        try:
            return held_by(broker, seen_by(spec, by, secrets=secrets).partitions, by=by.id)
        except Unreachable as error:
            raise Unreachable(
                error.problem, way_out=f"{error.way_out}; or take that broker out of the cluster file, where it is gone"
            ) from None

    with ThreadPoolExecutor(AT_A_TIME) as pool:
        return worst(pool.map(said, asked))
