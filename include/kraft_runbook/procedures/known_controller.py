"""Whether a broker knows its ZooKeeper controller. A broker that does not hangs for five minutes when it is stopped,
since it reports its stop to the quorum that is gone.

While a KRaft controller leads, a migrating broker names a random live broker in each Metadata response. Once
UpdateMetadata of the ZooKeeper controller has reached it (usually within 1 s, once after 47 s), it always names that
controller. So only many equal responses in a row prove it (measured on 3.9.2).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from kraft_runbook.cluster.addresses import split_address
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.cluster.spec_nodes import Broker
from kraft_runbook.errors import StepFailed
from kraft_runbook.io.kafka.broker_answers import ask_until, named_controller
from kraft_runbook.io.kafka.connection import Connect, KafkaConnection, connect_to
from kraft_runbook.io.secrets import Secrets
from kraft_runbook.procedures.look_at_nodes import accepts

IN_A_ROW = 20
"""How many equal responses prove it; by chance they come with a probability of (1 / brokers) ** 20."""
APART = 0.02
"""Seconds between two responses."""
SLICE = 5.0
"""Seconds without a response after which it is checked whether the broker's process has ended."""
ENDED = "ended"


def knows_controller(
    spec: ClusterSpec,
    broker: Broker,
    controller_id: int,
    *,
    secrets: Secrets,
    within: float,
    apart: float = APART,
    connect: Connect = connect_to,
) -> str | None:
    """None once ``IN_A_ROW`` responses named this controller; else, after ``within`` seconds, what the broker named.
    With ``within`` 0 it tries once. ``apart``: seconds between two responses.
    """

    def names_another(connection: KafkaConnection) -> str | None:
        for _ in range(IN_A_ROW):
            named = named_controller(connection)
            if named != controller_id:
                return (
                    f"broker {broker.id} names {named} as controller in one of its responses, ZooKeeper names"
                    f" {controller_id}"
                )
            time.sleep(apart)
        return None

    deadline = time.monotonic() + within
    return ask_until(spec, broker, names_another, secrets=secrets, deadline=deadline, apart=apart, connect=connect)


def await_known(
    spec: ClusterSpec,
    controller_id: int,
    *,
    secrets: Secrets,
    within: float,
    at_a_time: float = SLICE,
    knows: Callable[..., str | None] = knows_controller,
    accepts: Callable[[str, int], object] = accepts,
) -> tuple[int, ...]:
    """Wait until every running broker knows this controller. Returns the brokers whose process has ended; these can't
    hang.

    Such a broker may have died of the same znode that killed the controllers in their copy. Raises StepFailed, naming
    the brokers that run and do not know the controller. ``at_a_time``: seconds that a broker is asked before its port
    is looked at.
    """
    until = time.monotonic() + within

    def asked(broker: Broker) -> str | None:
        while problem := knows(spec, broker, controller_id, secrets=secrets, within=min(at_a_time, within)):
            if accepts(*split_address(spec.broker_address(broker))) is False:
                return ENDED
            if time.monotonic() > until:
                return problem
        return None

    with ThreadPoolExecutor(len(spec.brokers)) as pool:
        answers = dict(zip(spec.broker_ids, pool.map(asked, spec.brokers), strict=True))
    missing = [answer for answer in answers.values() if answer not in (None, ENDED)]
    if missing:
        raise StepFailed(
            f"not every broker knows its ZooKeeper controller after {within:.0f} s: {'; '.join(missing)}",
            way_out=(
                "stop no broker yet: it would hang for five minutes. Clear this task to wait longer. If that does not"
                " help, delete nothing and look in the elected broker's controller.log"
            ),
        )
    return tuple(broker for broker, answer in answers.items() if answer == ENDED)
