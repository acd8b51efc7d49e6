"""The one lab of all cases: put where a case starts from the nearest copy that is kept, and brought on by hand from
there.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import by_hand
import kept_states
import yaml
from fault_case import Start
from fault_proxy import Proxy
from labs import Lab, describe_lab, with_ensemble

from kraft_runbook.cluster.cluster_file import load_cluster
from kraft_runbook.cluster.observation import BrokerMode, ControllerMode, was_read
from kraft_runbook.cluster.phases import Phase, detect_phase
from kraft_runbook.cluster.properties_text import parse_properties
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.io.zookeeper.servers import server_mode
from kraft_runbook.procedures.observe import Scope, observe
from lab import ROOT, lifecycle
from lab.layout import ZookeeperServer, zookeeper_servers


@dataclass
class Ground:
    """The lab and its cluster file (a copy of the project's, which cases may change)."""

    lab: Lab
    directory: Path
    topics: int = 0
    proxied: bool = False
    proxy: Proxy | None = None
    quorum_proxied: bool = False
    quorum_proxy: Proxy | None = None

    @property
    def clusters(self) -> Path:
        """The directory for ``KRAFT_RUNBOOK_CLUSTERS``."""
        return self.directory / "clusters"

    @property
    def spec(self) -> ClusterSpec:
        """The cluster file as it says now."""
        return load_cluster(
            "lab", directory=self.clusters, environment={**os.environ, "PROJECT_ROOT": str(ROOT), **self.lab.place}
        )

    def open(self) -> None:
        """A lab in ZooKeeper mode that does not run yet: Airflow asks for its secrets alone."""
        self.write_cluster_file({})
        lifecycle.down(self.lab.spec, purge=True)
        kept_states.put(Phase.ZOOKEEPER, self.spec)

    def close(self) -> None:
        """End the lab and remove it."""
        for proxy in filter(None, (self.proxy, self.quorum_proxy)):
            proxy.close()
        lifecycle.down(self.lab.spec, purge=True)

    def write_cluster_file(self, changes: Mapping[str, Any]) -> None:
        """The project's lab.yaml with these keys on top; ``brokers`` and ``controllers``: changes by id."""
        declared = yaml.safe_load((ROOT / "include" / "clusters" / "lab.yaml").read_text())
        servers = zookeeper_servers(self.lab.spec)
        reached = ["{}:{}".format(*_proxied(each)) if self.proxied else each.address for each in servers]
        # Waits are deferred at once, so that a fault of a component falls where it is meant to: in the triggerer.
        own = {
            "zookeeper": {**declared["zookeeper"], "servers": reached},
            "deadlines": {**declared["deadlines"], "before_deferral": 0},
        }
        for key, value in {**own, **changes}.items():
            if key in ("brokers", "controllers"):
                declared[key] = [{**node, **value.get(node["id"], {})} for node in declared[key]]
            else:
                declared[key] = value
        self.clusters.mkdir(parents=True, exist_ok=True)
        fresh = self.clusters / "lab.yaml.new"
        fresh.write_text(yaml.safe_dump(declared, sort_keys=False))
        fresh.replace(self.clusters / "lab.yaml")

    def bring_to(self, start: Start) -> str:
        """Bring the lab to where a case starts; returns how, in words."""
        if self._stands_at(start):
            return "as the case before left it"
        lifecycle.down(self.lab.spec, purge=True)
        self.lab = describe_lab(self.lab.directory, self.lab.network, ensemble=start.ensemble)
        self._use_proxy(start.proxied)
        phase = Phase.ZOOKEEPER if start.phase == "PRE_MIGRATION" else Phase(start.phase)
        shutil.rmtree(self.directory / "airflow" / "kraft-runbook" / "log_ends", ignore_errors=True)  # of other data
        kept_states.put(phase, self.spec, topics=start.topics)
        self.topics = start.topics
        self.quorum_proxied = start.quorum_proxied
        if start.quorum_proxied:
            self._lead_the_quorum_through_a_proxy()
        kept_states.start(phase, self.lab)
        self._go_on(phase, start)
        return f"from the copy in {phase}"

    def _stands_at(self, start: Start) -> bool:
        """Whether the lab is there already, whole and healthy, with the configuration that the runbook would write."""
        servers = zookeeper_servers(self.lab.spec)
        stands = (self.topics, self.proxied, self.quorum_proxied, len(servers) > 1)
        if stands != (start.topics, start.proxied, start.quorum_proxied, start.ensemble):
            return False
        if not all(server_mode(server.address) for server in servers):
            return False
        seen = observe(self.spec, secrets=self.lab.secrets, scope=Scope.LIVE)
        topics = seen.topics
        if not was_read(topics) or topics.under_replicated_count or topics.offline_count:
            return False
        before, after = _MODES[start.phase]
        modes = {b.id: b.mode for b in seen.brokers.values() if b.running is True}
        if modes != {i: after if i in start.rolled else before for i in self.spec.broker_ids}:
            return False
        flagged = ControllerMode.MIGRATION
        if start.phase == "ZOOKEEPER":
            return detect_phase(seen).phase is Phase.ZOOKEEPER and not any(
                Path(c.log_dir).exists() for c in self.spec.controllers
            )
        return (
            all(c.running is True and c.mode == flagged for c in seen.controllers.values())
            and detect_phase(seen).phase in _MAY_BE[start.phase]
        )

    def _go_on(self, phase: Phase, start: Start) -> None:
        """From that copy on by hand."""
        spec, secrets = self.spec, self.lab.secrets
        if start.phase == Phase.PRE_MIGRATION:
            by_hand.provision_controllers(spec, by_hand.cluster_id(spec, secrets=secrets), secrets=secrets)
        if start.rolled:
            by_hand.roll_brokers(spec, _MODES[start.phase][1], secrets=secrets, only=start.rolled)
            if phase is not Phase.ZOOKEEPER:
                by_hand.await_dual_write(spec, secrets=secrets)
        by_hand.wait_until("every partition is in sync", self.in_sync)

    def in_sync(self) -> bool:
        """Whether every partition is in sync and every broker says so."""
        topics = observe(self.spec, secrets=self.lab.secrets).topics
        return (
            was_read(topics)
            and not topics.under_replicated_count
            and not topics.offline_count
            and len(topics.topics_known_by_broker) == len(self.spec.brokers)
        )

    def _use_proxy(self, proxied: bool) -> None:
        if proxied and self.proxy is None:
            servers = zookeeper_servers(with_ensemble(self.lab.spec))
            self.proxy = Proxy({_proxied(server): (server.host, server.port) for server in servers})
        self.proxied = proxied
        self.write_cluster_file({})

    def _lead_the_quorum_through_a_proxy(self) -> None:
        """Before they start: each controller reaches each by the proxy. That is what it was told of the voters, and
        what a leader tells of itself.
        """
        controllers, listener = self.lab.spec.controllers, self.lab.spec.controller_listener.name
        reached = {c.id: (f"{self.lab.network}.{100 + c.id}", c.port) for c in controllers}
        if self.quorum_proxy is None:
            self.quorum_proxy = Proxy({reached[c.id]: (c.host, c.port) for c in controllers})
        addresses = {node_id: f"{host}:{port}" for node_id, (host, port) in reached.items()}
        voters = ",".join(f"{node_id}@{address}" for node_id, address in addresses.items())
        for controller in controllers:
            written = parse_properties(Path(controller.config_file).read_text())
            through = {
                "controller.quorum.voters": voters,
                "advertised.listeners": f"{listener}://{addresses[controller.id]}",
            }
            by_hand.write(controller, {**written, **through})


def _proxied(server: ZookeeperServer) -> tuple[str, int]:
    """Where the proxy stands for this ZooKeeper server: no other service of the lab is there."""
    network, _, last = server.host.rpartition(".")
    return f"{network}.{200 + int(last)}", server.port


_MODES = {
    "ZOOKEEPER": (BrokerMode.ZOOKEEPER, BrokerMode.ZOOKEEPER),
    "PRE_MIGRATION": (BrokerMode.ZOOKEEPER, BrokerMode.HYBRID),
    "HYBRID": (BrokerMode.HYBRID, BrokerMode.KRAFT),
    "DUAL_WRITE": (BrokerMode.KRAFT, BrokerMode.KRAFT),
}
"""The brokers' mode in a phase before and after the next roll has reached them."""

_MAY_BE = {
    "PRE_MIGRATION": {Phase.PRE_MIGRATION},
    "HYBRID": {Phase.HYBRID, Phase.DUAL_WRITE},
    "DUAL_WRITE": {Phase.DUAL_WRITE},
}
