"""What ZooKeeper keeps of the users as whom controllers may log in to the brokers by SCRAM."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial

from kraft_runbook.cluster.broker_calls import jaas_key, mechanism_of
from kraft_runbook.cluster.node_properties import controller_properties
from kraft_runbook.cluster.observation import ControllerMode
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.cluster.spec_parts import ZooKeeper
from kraft_runbook.cluster.unread import Unread
from kraft_runbook.io.hosts.node_secrets import ScramLogin
from kraft_runbook.io.secrets import Secrets
from kraft_runbook.io.zookeeper.reader import ZookeeperReader
from kraft_runbook.metadata.znodes.quota_znodes import Part, entity_paths
from kraft_runbook.metadata.znodes.znode_rows import SCRAM_MECHANISMS, ScramCredential, scram_credential
from kraft_runbook.procedures.part_read import part_read

USER = "User:"


def scram_login(
    spec: ClusterSpec, *, secrets: Secrets, reads: type[ZookeeperReader] = ZookeeperReader
) -> ScramLogin | None:
    """The login, and the super users as ZooKeeper has them: who calls the brokers is one of them where ACLs are
    enforced. None where no controller logs in by SCRAM, or there is no ZooKeeper.
    """
    listener = spec.brokers[0].listener(spec.kafka.inter_broker_listener)
    if spec.zookeeper is None or not listener.protocol.is_sasl:
        return None
    for each in spec.controllers:
        properties = controller_properties(spec, each, ControllerMode.MIGRATION)
        if (mechanism := mechanism_of(properties)) in SCRAM_MECHANISMS:
            supers = (user.strip() for user in spec.super_users)
            names = sorted({user[len(USER) :] for user in supers if user.startswith(USER)})
            read = partial(_credentials, spec.zookeeper, names, mechanism, secrets=secrets, reads=reads)
            return ScramLogin(jaas_key(properties, listener), mechanism, part_read(read))
    return None


def _credentials(
    zookeeper: ZooKeeper, names: Collection[str], mechanism: str, *, secrets: Secrets, reads: type[ZookeeperReader]
) -> dict[str, ScramCredential | Unread | None]:
    """By user; None: ZooKeeper has none. A name may stand there in several spellings, of which the last one that a
    broker hears of counts: which that is, is not known.
    """
    found: dict[str, ScramCredential | Unread | None] = {}
    with reads(zookeeper, secrets=secrets) as reader:
        for name in names:
            held = [znode for znode in reader.get_many(list(entity_paths(reader, [[Part("user", name)]]))) if znode]
            try:
                each = [credential for znode in held if (credential := scram_credential(znode.data, mechanism))]
            except ValueError:
                found[name] = Unread(f"what ZooKeeper keeps of user {name} is not understood")
                continue
            several = Unread(f"ZooKeeper has several znodes of user {name}")
            found[name] = several if len(each) > 1 else each[0] if each else None
    return found
