"""Delegation tokens that the copy takes over, and the key without which no node of KRaft mode can take one in."""

from __future__ import annotations

from kraft_runbook.cluster.naming import nodes
from kraft_runbook.cluster.observation import BrokerMode, ClusterObservation, was_read
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.cluster.token_key import SECRET_KEY, only_of_controllers, rendered_without_key, without_key
from kraft_runbook.migration.checks.catalogue import UNTIL_FINALIZED, check
from kraft_runbook.runbook.check_results import BLOCKING, Finding, failed, passed, settle, unknown
from kraft_runbook.runbook.checklist import Needs
from kraft_runbook.runbook.read_parts import host_parts, split_read

TOKENS = "/delegation_token/tokens"
ROLES = "process.roles"
"""A file with it is one of KRaft mode."""


_MAKE_IT = (
    "give the brokers that are still to be restarted in migration mode the key too: such a broker makes it. Or make it"
    f" with zookeeper-shell: create {TOKENS.rpartition('/')[0]} '' ACL, then create {TOKENS} '' ACL. Where"
    " zookeeper.set.acl is true, ACL is the brokers' own (sasl:NAME:cdrwa or x509:NAME:cdrwa, as getAcl /config shows)."
    " Without it everybody may read and delete tokens"
)


@check(
    "KRB-PRE-141",
    severity=BLOCKING,
    fix=(
        f"where tokens are still to be used: name {SECRET_KEY} under 'secrets', with the value that brokers had when"
        " they were made (with another one tokens no longer let their owners in). Where they are not, before the copy:"
        f" delete each with zookeeper-shell (ls {TOKENS}, then delete {TOKENS}/ID). Leave {TOKENS} itself."
        " kafka-delegation-tokens.sh deletes none: without a key every broker refuses it"
        f" (DelegationTokenDisabledException). Once they were copied: name any {SECRET_KEY}, and restart every"
        " controller, then every broker; within delegation.token.expiry.check.interval.ms (by default an hour) the"
        " controllers then remove those that have expired"
    ),
    stages=UNTIL_FINALIZED,
    needs=Needs.HOSTS,
)
def delegation_tokens_can_be_taken_over(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """If ZooKeeper holds delegation tokens, every controller, and every broker in KRaft mode, has a key for them.

    They are left where tokens were used once and then switched off: brokers in ZooKeeper mode never look at them, and
    remove not even those that have expired. The copy takes them over. A node of KRaft mode computes each token's HMAC,
    whatever its age, and without delegation.token.secret.key (or delegation.token.master.key, its former name) it can't
    (DelegationTokenPublisher: "Invalid key to HMAC computation"). It goes on, with an error in its log and in its count
    of metadata errors: a controller once, after a restart at every change of metadata, as a broker in KRaft mode does
    (60 within 20 s, measured on 3.9.2; 3.7 and 3.8 have the same code). KRB-GATE-010 then stops the migration, and
    without a key nobody can remove a token any more: not an expired one, not by Kafka's tool, not in ZooKeeper, where
    dual write makes it again.

    The key must be one and the same on all nodes. With another one on the controllers a token that they make does not
    let its owner in at a broker, and none that a broker knows can be renewed or expired (measured). Controllers get the
    brokers' key, KRB-PRE-070 compares the brokers', and KRB-PRE-127 the hosts' with what this tool would write there.

    With a key on controllers alone the znode above the tokens must be there: only a broker in ZooKeeper or migration
    mode makes it. Without it no token that is made gets to ZooKeeper, and the next controller that is elected never
    takes up dual write (NoNode at each retry of its sync, measured on 3.9.2).
    """
    tree = seen.tree
    if not was_read(tree):
        return unknown(tree)
    tokens = tree.delegation_tokens
    if not was_read(tokens):
        return unknown(tokens)
    if tokens is None:
        on_zookeeper = set(spec.broker_ids).difference(seen.brokers_in(BrokerMode.KRAFT))
        if only_of_controllers(spec, on_zookeeper):
            return failed(f"controllers have a key for tokens, and {TOKENS} is not there: nobody makes it", _MAKE_IT)
    if not tokens:
        return passed("it holds none")
    lacking = rendered_without_key(spec)
    without = [f"{nodes(kind, ids)} would get none" for kind, ids in lacking.items() if ids]
    unread = []
    for kind, ids in (("controller", spec.controller_ids), ("broker", spec.broker_ids)):
        files, not_read = split_read(f"{kind} {{}}", host_parts(seen, ids, "config"))
        if today := without_key({i: its for i, its in files.items() if its and ROLES in its}):
            without.append(f"{nodes(kind, today, 'has')} none in the file of today")
        unread += not_read
    one = "a delegation token" if tokens == 1 else f"{tokens:,} delegation tokens"
    wrong = [f"ZooKeeper holds {one}, and the key for tokens is missing: {'; '.join(without)}"] if without else []
    return settle(wrong, unread, f"it holds {one}, and all have one")
