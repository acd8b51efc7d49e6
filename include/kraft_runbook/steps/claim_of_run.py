"""The claim of one run on its cluster, as a task of the run takes and gives it back.

The claim lies in the cluster's own ZooKeeper, where it has one, and in the state directory (``io/cluster_claim.py``).
Every task that changes the cluster takes or renews it, so a task that is cleared after its run had failed can't slip
past a newer run; one that moves or toggles consumer groups claims these (``io/group_claims.py``). The closing report
gives it back; where a run ends without one, the next run of this Airflow finds it free, and one of another Airflow once
the lease has ended.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from kraft_runbook.cluster.birth import born_in_kraft
from kraft_runbook.cluster.phases import Phase, detect_phase
from kraft_runbook.errors import Refused, RunbookError, SecretMissing, Unreachable
from kraft_runbook.io.cluster_claim import (
    AskRun,
    AskTasks,
    Claim,
    hold_cluster,
    lease_end,
    release_cluster,
    rest_cluster,
)
from kraft_runbook.io.group_claims import (
    Acts,
    group_lease_end,
    hold_groups,
    refuse_while_cluster_acts,
    refuse_while_groups_act,
    release_groups,
    rest_group,
)
from kraft_runbook.io.hosts.ansible_runs import remove_what_killed_runs_left
from kraft_runbook.steps.handle import Cluster

BUSY_SECONDS = 900.0
"""How long the task of another run is waited for, such as one that restarts a node, or moves a group."""
log = logging.getLogger(__name__)


@dataclass
class ClaimOfRun:
    """As ``steps.run.Claim``. ``mine``: the run, whatever its lease. ``task``: which of its tasks acts. ``ask``: what
    this Airflow knows of another run; ``over``: of the tasks that act by its claim. ``directory``: the state directory.
    """

    cluster: Cluster
    mine: Claim
    task: str
    ask: AskRun
    over: AskTasks
    directory: Path
    rest_seconds: float = 15.0
    """So long a task tries to say that it acts no more: a claim that says so holds up the groups that other runs
    move.
    """
    again_seconds: float = 1.0
    acts: bool = field(default=False, init=False)
    """Whether the claim says that this task acts."""
    acts_on: str = field(default="", init=False)
    """The group whose claim says so; empty: none."""

    def take(self) -> None:
        """Make sure that no other run changes this cluster, and that what a killed try left on this machine is gone,
        whether or not this try plays anything.

        Raises as ``hold``, SecretMissing, and Refused where the cluster file names a ZooKeeper that the cluster never
        used. One that a final migration left behind holds the claim as well for as long as the file names it: whether
        it is gone, or another Airflow's run holds it there, can't be told apart.
        """
        try:
            self.renew()
        except (Unreachable, SecretMissing) as error:
            seen = self.cluster.observe()
            if born_in_kraft(seen):
                raise Refused(
                    f"the claim can't be taken in ZooKeeper ({error.problem}), and the cluster does not use it: it was"
                    " created in KRaft mode",
                    way_out=(
                        f"take 'zookeeper' out of the cluster file {self.cluster.spec.name}.yaml and clear this task:"
                        " the claim then lies in the state directory"
                    ),
                ) from None
            if isinstance(error, SecretMissing) or detect_phase(seen).phase is not Phase.FINALIZED:
                raise
            raise Unreachable(
                f"the claim can't be taken in ZooKeeper: {error.problem}",
                way_out=(
                    f"{error.way_out}; or, where the ensemble is gone for good and the migration's run has ended, take"
                    f" 'zookeeper' out of the cluster file {self.cluster.spec.name}.yaml. Then clear this task"
                ),
            ) from None
        remove_what_killed_runs_left()

    def await_groups(self) -> None:
        """Before a node stops, once the claim says that this task acts, so that no further one begins to act on a
        consumer group: wait for those that do. One that was killed and left its claim so is said, not waited for.
        Raises Acts where one takes too long, Refused where a claim can't be understood, Unreachable.
        """
        if self.cluster.spec.zookeeper is None or not self.acts:
            return
        ends, told = self.cluster.now() + BUSY_SECONDS, False
        while True:
            try:
                for each in self.refuse_while_groups_act():
                    self.cluster.tell(each)
                return
            except Acts as busy:
                if self.cluster.now() >= ends:
                    raise
                if not told:
                    self.cluster.tell(f"Waiting: {busy.problem}")
                told = True
                self.cluster.pause(self.again_seconds)

    def refuse_while_groups_act(self) -> tuple[str, ...]:
        """As ``group_claims.refuse_while_groups_act``."""
        now, spec, secrets = datetime.now(UTC), self.cluster.spec, self.cluster.secrets
        return refuse_while_groups_act(spec, self.mine, secrets=secrets, ask=self.ask, over=self.over, now=now)

    def renew(self) -> None:
        """Raises as ``hold``."""
        self.hold()
        self.acts = True

    def hold(self) -> None:
        """Take or renew the claim. Raises Refused, naming the run that holds it, or where the file in the state
        directory can't be used; Unreachable where ZooKeeper can't be asked.
        """
        now = datetime.now(UTC)
        mine = self._acting(now)
        spec, secrets = self.cluster.spec, self.cluster.secrets
        hold_cluster(spec, mine, secrets=secrets, directory=self.directory, ask=self.ask, now=now)

    def rest(self) -> None:
        """Let the claim say that this task acts no more, where it took it. It is tried for some seconds. What can't be
        said is left, as by a killed task. A claim on the cluster that says so keeps consumer groups of other runs
        waiting until this task was cleared and has ended, or its run has ended. One on a group keeps the nodes of
        another Airflow's runs waiting so; those of this one see that the task is over.
        """
        ends = time.monotonic() + self.rest_seconds
        while self.acts or self.acts_on:
            try:
                self.say_it_rests()
                self.acts, self.acts_on = False, ""
            except RunbookError as error:
                if time.monotonic() >= ends:
                    log.warning("The claim still says that this task acts: %s", error.problem)
                    self.acts, self.acts_on = False, ""
                else:
                    time.sleep(self.again_seconds)

    def say_it_rests(self) -> None:
        """Raises RunbookError."""
        mine, spec, secrets = self._acting(datetime.now(UTC)), self.cluster.spec, self.cluster.secrets
        if self.acts_on:
            rest_group(spec, self.acts_on, mine, secrets=secrets)
        if self.acts:
            rest_cluster(spec, mine, secrets=secrets, directory=self.directory)

    def give_back(self) -> None:
        """Release the claim at a run's end, where the run holds it. What can't be released is said and left: its lease
        ends.
        """
        spec = self.cluster.spec
        try:
            release_cluster(spec, self.mine, secrets=self.cluster.secrets, directory=self.directory)
        except RunbookError as error:
            told = "The claim on %s was not given back (a run of another Airflow waits until it ends): %s"
            log.warning(told, spec.name, error.problem)
        self.acts = False

    def take_groups(self, groups: Sequence[str], *, waits: bool = False) -> None:
        """Take or renew the claims on these consumer groups. Raises as ``group_claims.hold_groups``."""
        now, acts_on = datetime.now(UTC), "" if waits or not groups else groups[0]
        if self.acts_on not in ("", acts_on):
            self.rest()
        self.acts_on = acts_on or self.acts_on
        hold_groups(
            self.cluster.spec,
            groups,
            replace(self.mine, until=group_lease_end(self.cluster.spec, now), acting=self.task),
            secrets=self.cluster.secrets,
            directory=self.directory,
            ask=self.ask,
            now=now,
            waits=waits,
        )

    def refuse_while_cluster_acts(self) -> None:
        """Raises as ``group_claims.refuse_while_cluster_acts``."""
        now, spec, secrets = datetime.now(UTC), self.cluster.spec, self.cluster.secrets
        refuse_while_cluster_acts(spec, self.mine, secrets=secrets, directory=self.directory, ask=self.ask, now=now)

    def give_back_groups(self, groups: Sequence[str]) -> None:
        """Release the claims on these groups, as ``give_back`` does."""
        try:
            release_groups(self.cluster.spec, groups, self.mine, secrets=self.cluster.secrets)
        except RunbookError as error:
            log.warning("The claims on consumer groups were not given back: %s", error.problem)

    def _acting(self, now: datetime) -> Claim:
        return replace(self.mine, until=lease_end(self.cluster.spec, now), acting=self.task)
