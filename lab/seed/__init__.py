"""Every kind of metadata that a migration has to carry, made through real clients; safe to repeat."""

from __future__ import annotations

from collections.abc import Callable

from confluent_kafka import KafkaException

from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.errors import RunbookError, StepFailed
from lab.broker_state import require_well
from lab.health import admin, wait_until_healthy
from lab.seed import configs, quotas, records, security, topics


def seed(spec: ClusterSpec, *, extra_topics: int = 0, say: Callable[[str], None] = print) -> None:
    """Make what is missing of topics, dynamic configurations, SCRAM users, ACLs, delegation tokens, quotas and records.

    ``extra_topics``: further topics of 10 partitions. Raises RunbookError where the lab is not up, a client is refused,
    or a broker is half dead afterwards.
    """
    wait_until_healthy(spec, say=say)
    client = admin(spec, answers_within=120)
    steps: tuple[Callable[[], str], ...] = (
        lambda: topics.create(client, spec, extra=extra_topics),
        lambda: configs.alter(spec),
        lambda: quotas.alter(spec),
        lambda: security.create_scram_users(client, spec),
        lambda: security.create_acls(client),
        lambda: security.create_delegation_tokens(spec),
        lambda: records.produce_and_consume(spec),
    )
    for step in steps:
        try:
            say(step())
        except (KafkaException, RunbookError) as error:
            require_well(spec)  # a broker that is half dead explains what failed, not the other way round
            if isinstance(error, RunbookError):
                raise
            raise StepFailed(
                f"a client was refused while seeding: {error}",
                way_out="python -m lab status, then seed again: python -m lab seed",
            ) from None
    wait_until_healthy(spec, say=say)
    require_well(spec)
