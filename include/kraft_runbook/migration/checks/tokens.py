"""Delegation tokens that the copy takes over, and the key without which no node of KRaft mode can take one in."""

from __future__ import annotations

from collections.abc import Mapping

from kraft_runbook.cluster.naming import nodes
from kraft_runbook.cluster.node_properties import broker_properties, controller_properties
from kraft_runbook.cluster.observation import BrokerMode, ClusterObservation, ControllerMode, was_read
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.migration.checks.catalogue import UNTIL_FINALIZED, check
from kraft_runbook.migration.listener_threads import TOKEN_SECRETS
from kraft_runbook.runbook.check_results import BLOCKING, Finding, passed, settle, unknown
from kraft_runbook.runbook.checklist import Needs
from kraft_runbook.runbook.read_parts import host_parts, split_read

SECRET_KEY, FORMER = TOKEN_SECRETS
ROLES = "process.roles"
"""A file with it is one of KRaft mode."""


@check(
    "KRB-PRE-141",
    severity=BLOCKING,
    fix=(
        f"where tokens are still to be used: name {SECRET_KEY} under 'secrets', with the value that the brokers had when"
        " these were made (with another one they no longer let their owners in). Where they are not, before the copy:"
        " delete them with zookeeper-shell (deleteall /delegation_token/tokens). kafka-delegation-tokens.sh does not:"
        f" without a key every broker refuses it (DelegationTokenDisabledException). Once they were copied: name any"
        f" {SECRET_KEY}, and restart every controller and then every broker; the controllers then delete those that have"
        " expired"
    ),
    stages=UNTIL_FINALIZED,
    needs=Needs.HOSTS,
)
def a_key_is_there_for_the_delegation_tokens(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """If ZooKeeper holds delegation tokens, every controller, and every broker in KRaft mode, has a key for them.

    They are left where tokens were used once and then switched off: brokers in ZooKeeper mode never look at them, and
    remove not even those that have expired. The copy takes them over. A node of KRaft mode computes each token's HMAC,
    whatever its age, and without delegation.token.secret.key (or delegation.token.master.key, its former name) it can't
    (DelegationTokenPublisher: "Invalid key to HMAC computation"). It goes on, with an error in its log and in its count
    of metadata errors: a controller once, after a restart at every change of metadata, as a broker in KRaft mode does
    (60 within 20 s, measured on 3.9.2; 3.7 and 3.8 have the same code). KRB-GATE-010 then stops the migration, and
    without a key nobody can remove a token any more: not an expired one, not by Kafka's tool.

    The key must be one and the same on all nodes. With another one on the controllers a token that they make does not
    let its owner in at a broker, and none that a broker knows can be renewed or expired. Controllers get the brokers'
    key, KRB-PRE-070 compares the brokers', and KRB-PRE-127 the hosts' with what this tool would write there.
    """
    tree = seen.tree
    if not was_read(tree):
        return unknown(tree)
    tokens = tree.delegation_tokens
    if not was_read(tokens):
        return unknown(tokens)
    if not tokens:
        return passed("it holds none")
    rendered = {
        "controller": {c.id: controller_properties(spec, c, ControllerMode.MIGRATION) for c in spec.controllers},
        "broker": {b.id: broker_properties(spec, b, BrokerMode.KRAFT) for b in spec.brokers},
    }
    without, unread = [], list[str]()
    for kind, properties in rendered.items():
        if lacking := _without_key(properties):
            without.append(f"{nodes(kind, lacking)} would get none")
        files, not_read = split_read(f"{kind} {{}}", host_parts(seen, properties, "config"))
        if lacking := _without_key({i: its for i, its in files.items() if its and ROLES in its}):
            without.append(f"{nodes(kind, lacking, 'has')} none in the file of today")
        unread += not_read
    one = "a delegation token" if tokens == 1 else f"{tokens:,} delegation tokens"
    wrong = [f"ZooKeeper holds {one}, and the key for tokens is missing: {'; '.join(without)}"] if without else []
    return settle(wrong, unread, f"it holds {one}, and all have one")


def _without_key(files: Mapping[int, Mapping[str, str]]) -> list[int]:
    return [node for node, properties in files.items() if not has_key(properties)]


def has_key(properties: Mapping[str, str]) -> bool:
    """Whether Kafka 3.9 has a key for tokens with these properties: the former name counts only where the present one
    is not set at all (``KafkaConfig.delegationTokenSecretKey``, ``tokenAuthEnabled``).
    """
    return bool(properties.get(SECRET_KEY, properties.get(FORMER, "")).strip())
