"""Every kind of metadata that a migration has to carry, made through real clients; safe to repeat."""

from __future__ import annotations

from collections.abc import Callable

from kraft_runbook.cluster import ClusterSpec
from lab.health import admin, wait_until_healthy
from lab.seed import configs, quotas, records, security, topics


def seed(spec: ClusterSpec, *, extra_topics: int = 0, say: Callable[[str], None] = print) -> None:
    """Make what is missing of topics, dynamic configurations, SCRAM users, ACLs, delegation tokens, quotas and records.

    ``extra_topics``: further topics of 10 partitions. Raises RunbookError where the lab is not up or a client is refused.
    """
    wait_until_healthy(spec, say=say)
    client = admin(spec)
    say(topics.create(client, spec, extra=extra_topics))
    say(configs.alter(spec))
    say(quotas.alter(spec))
    say(security.create_scram_users(client, spec))
    say(security.create_acls(client))
    say(security.create_delegation_tokens(client, spec))
    say(records.produce_and_consume(spec))
    wait_until_healthy(spec, say=say)
