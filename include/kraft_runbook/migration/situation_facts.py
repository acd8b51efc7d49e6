"""What the situations ask of an observation, each asked once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from kraft_runbook.cluster.birth import log_says_none
from kraft_runbook.cluster.naming import by_number, nodes
from kraft_runbook.cluster.observation import (
    BrokerMode,
    ClusterObservation,
    ControllerMode,
    ZkMigrationState,
    was_read,
)
from kraft_runbook.cluster.phases import MIGRATING, Phase, awaits_the_copy, detect_phase, kept_in_kraft
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.migration.checks.catalogue import DUAL_WRITING
from kraft_runbook.migration.never_copied import may_have_died_in_the_copy, never_elected
from kraft_runbook.migration.silent_nodes import name_silent, silent_controllers
from kraft_runbook.migration.unfinished_copy import end_untold
from kraft_runbook.migration.way_back import leads_unread, quorum_is_lost


@dataclass(frozen=True)
class Facts:
    """``earlier``: an observation some seconds before; the same where there
    is none. Nodes are named by their ids, in words; empty: none.
    """

    seen: ClusterObservation
    earlier: ClusterObservation
    spec: ClusterSpec

    @cached_property
    def phase(self) -> Phase:
        return detect_phase(self.seen).phase

    @cached_property
    def down(self) -> str:
        """Controllers that do not run."""
        return _named("controller", (c.id for c in self.seen.controllers.values() if c.running is False))

    @cached_property
    def ended(self) -> str:
        """Brokers that do not run."""
        return _named("broker", (b.id for b in self.seen.brokers.values() if b.running is False))

    @cached_property
    def silent(self) -> str:
        """Nodes that hang, each with its kind."""
        return name_silent(self.seen, self.earlier)

    @cached_property
    def silent_now(self) -> str:
        """Controllers that hang at this look."""
        return _named("controller", silent_controllers(self.seen))

    @cached_property
    def unflagged(self) -> str:
        """Controllers that run without the migration flag."""
        return _named("controller", self.seen.controllers_in(ControllerMode.KRAFT))

    @cached_property
    def not_in_kraft(self) -> str:
        """Brokers that are not known to be in KRaft mode."""
        return _named("broker", (b.id for b in self.seen.brokers.values() if b.mode != BrokerMode.KRAFT))

    @cached_property
    def behind(self) -> str:
        """The same as ``left_behind``, with what is wrong with them."""
        return f"{nodes('broker', self._left_behind(), 'is')} not in KRaft mode"

    @cached_property
    def left_behind(self) -> str:
        """Brokers that are not in KRaft mode though the migration is final."""
        return _named("broker", self._left_behind())

    def _left_behind(self) -> tuple[int, ...]:
        return tuple(
            b.id
            for b in self.seen.brokers.values()
            if self.phase is Phase.FINALIZED and was_read(b.mode) and b.mode is not BrokerMode.KRAFT
        )

    @cached_property
    def lost(self) -> str | None:
        """What shows that a KRaft controller should lead and none does; None where nothing shows it."""
        hidden = self.phase is Phase.UNKNOWN and self._nobody_leads
        if self.phase in DUAL_WRITING or hidden or self.died_in_the_copy:
            return quorum_is_lost(self.seen) or self._lost_without_zookeeper
        return None

    @property
    def _lost_without_zookeeper(self) -> str | None:
        """What shows it where ZooKeeper tells no /controller, and brokers in migration mode are no proof: a controller
        that knows of the copy. Not where a broker is in ZooKeeper mode, since the migration was left then.
        """
        seen = self.seen
        if seen.brokers_in(BrokerMode.ZOOKEEPER) or was_read(seen.quorum) or was_read(seen.zookeeper):
            return None
        knows = self._know_of_the_copy if self._nobody_leads else ()
        return f"{nodes('controller', knows, 'shows')} that the metadata was copied, and none leads" if knows else None

    @cached_property
    def came_back(self) -> str:
        """Controllers that run with a migration's log, and do not lead, while a broker holds /controller: a KRaft
        controller takes it before the copy, and keeps it until the migration is left.
        """
        zookeeper = self.seen.zookeeper
        if self.phase is not Phase.HYBRID or was_read(self.seen.quorum) or not was_read(zookeeper):
            return ""
        held = zookeeper.controller is not None and zookeeper.controller.kraft_controller_epoch < 0
        run = (c.id for c in self.seen.controllers.values() if c.running is not False)
        return _named("controller", run) if held and self._nobody_leads else ""

    @property
    def _know_of_the_copy(self) -> tuple[int, ...]:
        shown = [(c.id, c.metrics.zk_migration_state) for c in self.seen.controllers.values() if was_read(c.metrics)]
        return tuple(i for i, state in shown if state is ZkMigrationState.MIGRATION)

    @cached_property
    def final_too_early(self) -> bool:
        """Whether the migration would be final too early if a controller without its flag led now: it goes on, and a
        broker would be left behind, or none is known to be in KRaft mode. A finalization in order has none of these.
        """
        if self.phase in (Phase.PRE_MIGRATION, Phase.HYBRID):
            return True
        in_kraft = self.seen.brokers_in(BrokerMode.KRAFT)
        known = sum(was_read(b.mode) for b in self.seen.brokers.values())
        return self._migrates and (known > len(in_kraft) or not in_kraft)

    @property
    def _migrates(self) -> bool:
        """Whether controllers hold a migration that is not final, as far as it shows."""
        if self.phase is not Phase.UNKNOWN:
            return self.phase in (Phase.PRE_MIGRATION, *DUAL_WRITING)
        shown = {c.metrics.zk_migration_state for c in self.seen.controllers.values() if was_read(c.metrics)}
        return bool(self.lost or shown & set(MIGRATING)) and not log_says_none(self.seen)

    @property
    def _nobody_leads(self) -> bool:
        """Whether no controller leads: no majority of them runs and answers, or each one's gauges say so. Not where
        the log says that there is no migration.
        """
        each, hang = self.seen.controllers.values(), len(silent_controllers(self.seen))
        down = sum(c.running is False for c in each)
        gauges = [c.metrics for c in each if was_read(c.metrics)]
        without = 2 * (hang + down) >= len(each) or hang + down + len(gauges) == len(each)
        return without and not any(each.active for each in gauges) and not log_says_none(self.seen)

    @cached_property
    def under_way(self) -> str | None:
        """What shows a migration that goes on where the phase is unknown; None where nothing does, or where a broker
        leads beside controllers that have the log of a migration that was left.
        """
        seen = self.seen
        if self.phase is not Phase.UNKNOWN or log_says_none(seen):
            return None
        return kept_in_kraft(seen) or ("a controller is in PRE_MIGRATION" if awaits_the_copy(seen) else None)

    @property
    def waits_for_the_copy(self) -> bool:
        """Whether what goes on is before the copy, as far as it shows."""
        return awaits_the_copy(self.seen) and not kept_in_kraft(self.seen)

    @cached_property
    def mute(self) -> str:
        """Controllers whose metrics can't be read though they may run, and that do not hang."""
        hang = silent_controllers(self.seen, self.earlier)
        those = (c for c in self.seen.controllers.values() if c.running is not False and not was_read(c.metrics))
        return _named("controller", (c.id for c in those if c.id not in hang))

    @cached_property
    def unread_zookeeper(self) -> bool:
        """Whether the phase is unknown, and brokers need a ZooKeeper that can't be read: one is in migration mode, or
        none is known to be in KRaft mode.
        """
        needed = self.seen.brokers_in(BrokerMode.HYBRID) or self.zookeeper_first
        return self.phase is Phase.UNKNOWN and bool(needed) and not was_read(self.seen.zookeeper)

    @property
    def zookeeper_first(self) -> bool:
        """Whether ZooKeeper can't be read and no broker is known to be in KRaft mode."""
        return not was_read(self.seen.zookeeper) and not self.seen.brokers_in(BrokerMode.KRAFT)

    @property
    def copied(self) -> bool:
        """Whether the metadata was copied, by the phase, by a controller's gauge or by /migration."""
        zookeeper = self.seen.zookeeper
        copy = zookeeper.migration if was_read(zookeeper) else None
        shown = self.phase in DUAL_WRITING or bool(self._know_of_the_copy)
        return shown or (copy is not None and copy.holds_a_copy)

    @cached_property
    def died_in_the_copy(self) -> bool:
        return may_have_died_in_the_copy(self.seen) and leads_unread(self.seen) is None

    @cached_property
    def led_unread(self) -> str | None:
        """That a controller of a migration leads and the quorum can't be read; None where that is not so."""
        leader, quorum = leads_unread(self.seen), self.seen.quorum
        if leader is None or was_read(quorum) or not self._migrates:
            return None
        return f"controller {leader} shows that it leads, and the quorum can't be read ({quorum.reason})"

    @cached_property
    def nothing_runs(self) -> bool:
        """Whether ZooKeeper can't be read and every broker and controller is down, for example after a power cut."""
        brokers, controllers = self.seen.brokers.values(), self.seen.controllers.values()
        down = [b.running is False for b in brokers] + [c.running is False for c in controllers]
        return not was_read(self.seen.zookeeper) and all(down)

    @cached_property
    def never_elected(self) -> bool:
        """Whether the phase is unknown because of controllers without a leader, and nothing was copied."""
        return self.phase is Phase.UNKNOWN and never_elected(self.seen)

    @cached_property
    def end_untold(self) -> bool:
        """Whether the copy is committed, and at both looks nothing will tell ZooKeeper."""
        return end_untold(self.earlier) and end_untold(self.seen)

    @cached_property
    def every_node_serves(self) -> bool:
        """Whether nothing is down or hangs, and a controller leads where one should."""
        return not (self.lost or self.ended or self.down or self.silent or self.unflagged)

    @cached_property
    def mostly_out_of_sync(self) -> str:
        """After the copy: brokers that are out of sync in more than half of the partitions."""
        topics = self.seen.topics
        if self.phase is not Phase.HYBRID or not was_read(topics):
            return ""
        return _named("broker", (i for i, n in topics.out_of_sync_by_broker.items() if 2 * n > topics.partition_count))

    @cached_property
    def may_be_cut_off(self) -> str:
        """After a rollback, where replicas are out of sync: the brokers that are still in migration mode
        (``kraft_runbook.migration.controller_threads``).
        """
        topics = self.seen.topics
        if self.phase is not Phase.ZOOKEEPER or not was_read(topics) or not any(topics.out_of_sync_by_broker.values()):
            return ""
        return _named("broker", self.seen.brokers_in(BrokerMode.HYBRID))

    @property
    def controllers(self) -> str:
        return _named("controller", self.spec.controller_ids)

    @property
    def brokers(self) -> str:
        return _named("broker", self.spec.broker_ids)

    @property
    def addresses(self) -> str:
        """Of the controllers."""
        return ", ".join(each.address for each in self.spec.controllers)

    @property
    def missing(self) -> str:
        """The controllers without which there is no majority, and why."""
        down = [c.id for c in self.seen.controllers.values() if c.running is False]
        hang = silent_controllers(self.seen)
        told = [f"{nodes('controller', down, 'does')} not run"] if down else []
        if hang:
            told.append(f"{nodes('controller', hang, 'runs')} and {by_number(hang, 'does', 'do')} not answer")
        return ", ".join(told)


def _named(kind: str, ids: Iterable[int]) -> str:
    """Empty: none."""
    found = list(ids)
    return nodes(kind, found) if found else ""
