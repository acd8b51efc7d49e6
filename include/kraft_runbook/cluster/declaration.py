"""The keys of a cluster file, and what follows from them: its nodes by role, their order, their addresses.

Secrets are never values: they are *named*, by environment variable or by Airflow connection.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain

from pydantic import Field, ValidationInfo, field_validator

from kraft_runbook.cluster.approvals import Approvals
from kraft_runbook.cluster.broker_batches import Roll, batches
from kraft_runbook.cluster.canary_broker import CanaryBroker
from kraft_runbook.cluster.client_security import ClientSecurity
from kraft_runbook.cluster.group_applications import GroupApplication
from kraft_runbook.cluster.group_logs import GroupLogs
from kraft_runbook.cluster.group_toggles import GroupToggles
from kraft_runbook.cluster.operation_settings import (
    AccessControl,
    ClusterWatch,
    QuorumDrill,
    QuorumHealth,
    ReassignmentSettings,
    RollingRestart,
    SparkSettings,
    UpgradeSoftware,
)
from kraft_runbook.cluster.owned_properties import (
    QUORUM_ADDRESSES,
    QUORUM_VOTERS,
)
from kraft_runbook.cluster.rehearsal_settings import Rehearsal, Rehearses
from kraft_runbook.cluster.spans import Schedule
from kraft_runbook.cluster.spec_nodes import Broker, Controller, ControllerListener
from kraft_runbook.cluster.spec_parts import (
    Authorizer,
    Deadlines,
    Kafka,
    MetricsSource,
    QuorumKind,
    Reach,
    ServiceManager,
    ZooKeeper,
)
from kraft_runbook.cluster.spec_types import ListenerName, Model, SecretRef
from kraft_runbook.cluster.waves import After
from kraft_runbook.errors import Refused


class ClusterDeclaration(Model):
    """Each key is looked at by itself; what several say together, ``contradictions`` looks at."""

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_\-]{0,62}$")
    description: str = ""
    owner: str = Field(default="kraft-runbook", pattern=r"^[^\s,]([^,\r\n]{0,98}[^\s,])?$")
    """Whose DAGs they are, in Airflow's list. It gives nobody a right."""
    cluster_id: str | None = None
    kafka: Kafka
    zookeeper: ZooKeeper | None = None
    """None: a cluster in KRaft mode that no longer uses ZooKeeper, or never did."""
    brokers: tuple[Broker, ...] = Field(min_length=1)
    controllers: tuple[Controller, ...] = Field(default=(), validate_default=True)
    """Every controller: those that are processes of their own, as the file names them, and before them the view of each
    broker that is a controller too.
    """
    controller_listener: ControllerListener = ControllerListener()
    quorum: QuorumKind = QuorumKind.STATIC
    """What the nodes' files say of the quorum; the quorum itself becomes dynamic by kraft.version 1."""
    broker_security: ClientSecurity = ClientSecurity()
    broker_client_listener: ListenerName | None = None
    controller_security: ClientSecurity = ClientSecurity()
    metrics: MetricsSource = MetricsSource()
    reach: Reach
    service_manager: ServiceManager
    broker_properties: Mapping[str, str] = Field(default_factory=dict)
    broker_properties_in_kraft: Mapping[str, str] = Field(default_factory=dict)
    """What brokers have in KRaft mode, in place of the same keys of ``broker_properties`` or beside them."""
    controller_properties: Mapping[str, str] = Field(default_factory=dict)
    controller_heap: str | None = Field(default=None, pattern=r"^[1-9]\d*[mMgG]$")
    """The -Xmx of the controllers' services: compared with what the metadata's copy needs, never set."""
    controller_jute_maxbuffer: int = Field(default=4 * 1024 * 1024, gt=0)
    """The jute.maxbuffer of the controllers' JVMs, in bytes; without one Kafka's own (``ZkClientConfig`` of 3.9: 4
    MiB). Compared, never set.
    """
    controller_log4j: Mapping[str, str] = Field(default_factory=dict)
    authorizer: bool | Authorizer = False
    super_users: tuple[str, ...] = ()
    secrets: Mapping[str, SecretRef] = Field(default_factory=dict)
    secrets_file: str | None = None
    approvals: Approvals = Approvals()
    deadlines: Deadlines = Deadlines()
    reassignment: ReassignmentSettings = ReassignmentSettings()
    rolling_restart: RollingRestart = RollingRestart()
    upgrade_software: UpgradeSoftware = UpgradeSoftware()
    quorum_health: QuorumHealth = QuorumHealth()
    cluster_watch: ClusterWatch = ClusterWatch()
    quorum_drill: QuorumDrill = QuorumDrill()
    group_toggles: GroupToggles | None = None
    """None: no group is toggled without a person."""
    group_applications: tuple[GroupApplication, ...] = ()
    """The first entry that means a group counts; none: the owner is asked to stop and to start the application."""
    group_logs: tuple[GroupLogs, ...] = ()
    """The first entry that means a group counts; none: what its members hand out is not checked."""
    group_watch_schedule: Schedule | None = "*/10 * * * *"
    rehearsal: Rehearsal | None = None
    after: After | None = None
    """The cluster that is to be migrated before this one; None: none."""
    canary: CanaryBroker | None = None
    """The broker that each roll begins with, and waits for; None: the first one, and no wait but that for its ISRs."""
    roll: Roll | None = None
    """None: brokers are restarted one by one."""
    rehearses: Rehearses | None = None
    """A rehearsal writes it into the file of its throwaway cluster; no other file may have it."""
    spark: SparkSettings = SparkSettings()
    access_control: AccessControl | None = None
    """None: as Airflow's roles say of all DAGs."""
    parity_schedule: Schedule | None = None
    way_back_schedule: Schedule | None = "*/10 * * * *"

    @property
    def authorizers(self) -> Authorizer | None:
        """The classes that enforce ACLs; None: nothing does."""
        if isinstance(self.authorizer, Authorizer):
            return self.authorizer
        return Authorizer() if self.authorizer else None

    @property
    def broker_ids(self) -> tuple[int, ...]:
        return tuple(b.id for b in self.brokers)

    @property
    def both_ids(self) -> tuple[int, ...]:
        """The nodes that are broker and controller in one process."""
        return tuple(b.id for b in self.brokers if b.controller is not None)

    @property
    def nodes(self) -> tuple[Broker | Controller, ...]:
        """Every process once: the brokers, also those that are controllers too, then the controllers alone."""
        return (*self.brokers, *self.controllers_alone)

    @property
    def brokers_alone(self) -> tuple[Broker, ...]:
        """The brokers that are no controllers."""
        return tuple(b for b in self.brokers if b.controller is None)

    @property
    def controllers_alone(self) -> tuple[Controller, ...]:
        """The controllers that are no brokers."""
        return tuple(c for c in self.controllers if c.id not in self.both_ids)

    def has_both_roles(self, node_id: int) -> bool:
        return node_id in self.both_ids

    def machine_of(self, node: Broker | Controller) -> str:
        """What the nodes of one machine have in common: their host, and nothing where all run on this one."""
        return "" if self.reach.kind == "local" else node.host

    def named(self, node_id: int) -> str:
        """A node in words, by its role: broker 1, controller 101; one that has both roles is node 1."""
        kind = "broker" if node_id in self.broker_ids else "controller"
        return f"{'node' if self.has_both_roles(node_id) else kind} {node_id}"

    @property
    def batches(self) -> tuple[tuple[Broker, ...], ...]:
        """The brokers in the order in which a roll restarts them; those of one batch together (``batches``). A node
        that is a controller too is in none: it has its turn among the controllers.
        """
        return batches(self.brokers_alone, self.canary.broker if self.canary else None, self.roll)

    @property
    def rolled(self) -> tuple[Broker, ...]:
        """These brokers in that order, one after the other."""
        return tuple(chain.from_iterable(self.batches))

    def batch_of(self, node_id: int) -> frozenset[int]:
        """The ids of the brokers that a roll restarts together with this one, itself included; of a controller, itself
        alone.
        """
        found = (frozenset(b.id for b in batch) for batch in self.batches)
        return next((batch for batch in found if node_id in batch), frozenset({node_id}))

    @property
    def controller_ids(self) -> tuple[int, ...]:
        return tuple(c.id for c in self.controllers)

    @property
    def node_ids(self) -> tuple[int, ...]:
        """Every node's id once, the brokers' first."""
        return tuple(each.id for each in self.nodes)

    @property
    def stand_in_ids(self) -> tuple[int, ...]:
        """The brokers that a rehearsal stands in for; none in any other cluster."""
        return tuple(each.id for each in self.rehearses.stand_ins) if self.rehearses else ()

    @property
    def is_past_zookeeper(self) -> bool:
        """Whether the file says that ZooKeeper is behind: it names none, or a Kafka to go on to."""
        return self.zookeeper is None or self.kafka.upgrade_to is not None

    @property
    def ensemble(self) -> ZooKeeper:
        """The ZooKeeper ensemble, for code that needs one. Raises Refused if the cluster file names none."""
        if self.zookeeper is None:
            raise Refused(
                f"the cluster file of {self.name} names no ZooKeeper ensemble, and this needs one",
                way_out=(
                    "a cluster in KRaft mode has none: there is nothing to do here. Where it still uses ZooKeeper, name"
                    " the ensemble under 'zookeeper'"
                ),
            )
        return self.zookeeper

    def broker(self, node_id: int) -> Broker:
        return next(b for b in self.brokers if b.id == node_id)

    def controller(self, node_id: int) -> Controller:
        return next(c for c in self.controllers if c.id == node_id)

    @property
    def client_listener(self) -> str:
        """The broker listener that this tool's own clients use."""
        return self.broker_client_listener or self.kafka.inter_broker_listener

    def broker_address(self, broker: Broker) -> str:
        """host:port of the listener that this tool's clients use."""
        return broker.advertised(broker.listener(self.client_listener))

    @property
    def bootstrap_servers(self) -> tuple[str, ...]:
        return tuple(self.broker_address(b) for b in self.brokers)

    @property
    def quorum_voters(self) -> str:
        """``controller.quorum.voters``: id@host:port, comma-separated."""
        return ",".join(f"{c.id}@{c.address}" for c in self.controllers)

    @property
    def quorum_properties(self) -> dict[str, str]:
        """The one property by which a node's file finds the quorum."""
        if self.quorum is QuorumKind.DYNAMIC:
            return {QUORUM_ADDRESSES: ",".join(c.address for c in self.controllers)}
        return {QUORUM_VOTERS: self.quorum_voters}

    @field_validator("controllers", mode="after")
    @classmethod
    def _with_views(cls, named: tuple[Controller, ...], info: ValidationInfo) -> tuple[Controller, ...]:
        """A node that has both roles is declared once, as a broker. A spec that is read back has its view already."""
        if "brokers" not in info.data:  # their own problems are told
            return named
        views = [view for broker in info.data["brokers"] if (view := broker.as_controller) is not None]
        if not named and not views:
            raise ValueError("no controller: name them here, or let brokers be controllers too (brokers[].controller)")
        return (*views, *(each for each in named if each not in views))
