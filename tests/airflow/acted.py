"""Tasks of the lab's own DAGs, run on a cluster that is an observation. What they do is kept in its order: Ansible, the
claim and ZooKeeper are recorded, evidence and proofs are real files.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from dag_files import dags_of
from feature_looks import all_registered
from observations import SPEC, dual_writing, later
from signed_run import DAG, RUN, told

from kraft_runbook.cluster.observation import ClusterObservation, ControllerMode, Unread, was_read
from kraft_runbook.cluster.phases import Phase, detect_phase
from kraft_runbook.errors import Refused, RunbookError
from kraft_runbook.evidence.store import read_records
from kraft_runbook.io import cluster_claim, group_claims
from kraft_runbook.io.cluster_claim import Claim
from kraft_runbook.io.hosts import ansible_runs
from kraft_runbook.io.hosts.ansible_reports import HostReport, RunReport
from kraft_runbook.io.kafka import metadata_quorum
from kraft_runbook.migration import kept_ends
from kraft_runbook.migration.copy_tuning import SMALL
from kraft_runbook.migration.leaving import Departure
from kraft_runbook.parity import dual_write as parity_dual_write
from kraft_runbook.parity import final_proof
from kraft_runbook.procedures import (
    copy_size,
    give_back,
    kept_log_ends,
    known_controller,
    observe,
    observe_features,
    settled,
)
from kraft_runbook.runbook.check_results import CheckResult, Severity, Verdict
from kraft_runbook.runbook.conditions import Condition
from kraft_runbook.steps import waiting, way_back_facts
from kraft_runbook_airflow.base import environment
from kraft_runbook_airflow.base.journal import record_for, run_file_name
from lab import ROOT

NOTHING_LOST = CheckResult(kept_ends.CODE, kept_ends.TITLE, Severity.BLOCKING, Verdict.PASS, "44 partitions")
NOT_ASKED = Unread("not asked for")
FORWARD, BACK, ROLLING = "zk_to_kraft_migration", "zk_to_kraft_rollback", "rolling_restart"


def everywhere(monkeypatch: pytest.MonkeyPatch, *fakes: tuple[Any, Any]) -> None:
    """Put fakes in the place of functions, under whatever name a module of this project has taken one. Each: the real
    one, and the fake.
    """
    by_real = {id(real): fake for real, fake in fakes}
    for name, module in list(sys.modules.items()):
        if name.startswith("kraft_runbook"):
            for key, value in list(vars(module).items()):
                if id(value) in by_real:
                    monkeypatch.setattr(module, key, by_real[id(value)])


class Acted:
    """``seen``: what the cluster shows, look by look, three seconds apart; dual write goes on, unless it died. ``did``:
    what was done to it. ``acting``: what the claim says of it, each time. ``awaited_groups``: what had been done each
    time that acts on consumer groups were waited for; ``groups_act``: what happens then. ``held_by``: another run that
    has the cluster, or why the claim can't be had. ``unknowing``: why a broker does not know its ZooKeeper controller.
    ``facts``: what a playbook reads of a host, by its name. ``not_deletable``: why this tool may not delete in
    ZooKeeper. ``states``: of tasks that did not succeed. ``proven_first``: the groups of controllers that the last
    playbook on a node had to see in migration mode before it touched anything.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, state: Path) -> None:
        monkeypatch.setenv("KRAFT_RUNBOOK_STATE", str(state))
        monkeypatch.setenv("AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS", "operator:admin")
        monkeypatch.setattr(time, "sleep", lambda _: None)  # nothing here takes time
        self._monkeypatch, self._state = monkeypatch, state
        self.dags = {
            name: dags_of(f"{name}.py", ROOT / "include" / "clusters", monkeypatch)[f"{name}__lab"]
            for name in (FORWARD, BACK, ROLLING)
        }
        self.seen: ClusterObservation | Callable[[], ClusterObservation]
        self.did: list[str] = []
        self.spec = SPEC
        self.held_by: str | RunbookError | None = None
        self.acting: list[str] = []
        self.awaited_groups: list[list[str]] = []
        self.groups_act: Callable[[], None] = lambda: None
        self.unknowing: str | None = None
        self.dual_write_died = False
        self.facts: dict[str, dict[str, Any]] = {}
        self.not_deletable: str | None = None
        self.states: dict[str, str] = {}
        self.proven_first: tuple[str, ...] = ()
        self.after_playing: Callable[[str], None] = lambda _: None
        self.params: dict[str, Any] = {"dry_run": False}
        self.pulled: dict[str, Any] = {}
        self._looks = 0
        everywhere(
            monkeypatch,
            (observe.observe, self._look),
            (settled.observe_settled, self._look),
            (cluster_claim.hold_cluster, self._hold),
            (cluster_claim.rest_cluster, lambda *_, **__: self.acting.append("")),
            (group_claims.refuse_while_groups_act, self._groups),
            (ansible_runs.run_ansible, self._play),
            (metadata_quorum.controller_mode, lambda *_, **__: ControllerMode.MIGRATION),
            (copy_size.provisioning_size, lambda *_, **__: SMALL),
            (parity_dual_write.await_movement, lambda *_, **__: None),
            (kept_log_ends.check_log_ends, lambda *_, **__: NOTHING_LOST),
            (known_controller.knows_controller, lambda *_, **__: self.unknowing),
            (observe_features.observe_features, lambda *_, **__: all_registered()),
            (waiting.wait_for, self._await),
            (final_proof.what_lies_behind, lambda *_, **__: None),
            (give_back.what_settling_changes, lambda *_, **__: Departure(began_at=datetime.now(UTC))),
            (way_back_facts.not_deletable, lambda *_, **__: self.not_deletable),
            (way_back_facts.epoch_not_writable, lambda *_, **__: None),
            (cluster_claim.release_cluster, lambda *_, **__: self.did.append("gave the claim back")),
            (environment.cluster_spec, lambda _: self.spec),
            (environment.airflow_secrets, lambda: lambda ref: "a secret"),
        )

    def begin(self) -> None:
        """The run's first task has left its record."""
        record_for(SPEC.name, DAG, RUN, "preflight.claim_cluster", told({"outcome": "began", "host": "here"}))

    def replace(self, real: Any, fake: Any) -> None:
        everywhere(self._monkeypatch, (real, fake))

    def look(self) -> ClusterObservation:
        return self.seen() if callable(self.seen) else self.seen

    def _look(
        self, *_: Any, scope: observe.Scope = observe.Scope.LIVE, with_hosts: bool = False, **__: Any
    ) -> ClusterObservation:
        """The hosts and each topic's znodes are there for who asks for them."""
        self._looks += 1
        seen, seconds = self.look(), 3 * self._looks
        if not with_hosts:
            seen = replace(seen, hosts=NOT_ASKED)
        if scope is observe.Scope.LIVE and was_read(seen.zookeeper):
            seen = replace(seen, zookeeper=replace(seen.zookeeper, tree=NOT_ASKED))
        copied = detect_phase(seen).phase in (Phase.HYBRID, Phase.DUAL_WRITE)
        writes = copied and was_read(seen.quorum) and was_read(seen.zookeeper)
        return dual_writing(seen, seconds, dead=self.dual_write_died) if writes else later(seen, seconds)

    def _hold(self, _: Any, mine: Claim, **__: Any) -> None:
        self.acting.append(mine.acting)
        if isinstance(self.held_by, RunbookError):
            raise self.held_by
        if self.held_by:
            raise Refused(f"cluster lab is being changed by {self.held_by}", way_out="wait")
        self.did.append("claimed")

    def _groups(self, *_: Any, **__: Any) -> tuple[str, ...]:
        self.awaited_groups.append(list(self.did))
        self.groups_act()
        return ()

    def _play(self, playbook: Path, inventory: Mapping[str, Any], *, check: bool, **_: Any) -> RunReport:
        nodes = [name for name in inventory if not name.startswith("controllers-")]
        self.did.append(f"{'rehearsed' if check else 'played'} {playbook.stem} on {', '.join(nodes)}")
        hosts = {
            name: HostReport(("Restart",), ok=1, restarted=True, facts=self.facts.get(playbook.stem, {}).get(name, {}))
            for name in inventory
        }
        for given in inventory.values():
            self.proven_first = tuple(given.get("must_be_proven", self.proven_first))
        self.after_playing(self.did[-1])
        return RunReport("successful", hosts, "")

    def _await(self, spec: Any, condition: Condition, *, node_id: int | None = None, **_: Any) -> ClusterObservation:
        self.did.append(f"awaited {condition.describe(node_id)}")
        return self._look()

    def run(self, task_id: str, *, dag: str = FORWARD, **params: Any) -> Any:
        """The task's own answer. Raises what Airflow would see."""
        return self.dags[dag].get_task(task_id).execute(self._context(task_id, dag, params))

    def resume(
        self, task_id: str, event: Mapping[str, Any], *, dag: str = FORWARD, method: str | None = None, **given: Any
    ) -> Any:
        """The same of a task that comes back from the triggerer, which fired with this event. ``method``: by which it
        does (default: where it began there). ``given``: what it left for itself.
        """
        task = self.dags[dag].get_task(task_id)
        back = getattr(task, method or task.start_trigger_args.next_method)
        return back(self._context(task_id, dag, {}), event, **given)

    def _context(self, task_id: str, dag: str, params: Mapping[str, Any]) -> dict[str, Any]:
        self.params = {"dry_run": False, "approvals_needed": 1, **params}
        made = self.dags[dag]
        states = {each.task_id: "success" for each in made.tasks} | self.states
        ti = SimpleNamespace(
            dag_id=DAG,
            run_id=RUN,
            task_id=task_id,
            id="id-9",
            try_number=1,
            map_index=-1,
            xcom_pull=lambda task_ids: self.pulled.get(task_ids),
            get_task_states=lambda *_, **__: {RUN: states},
        )
        now = datetime.now(UTC)
        run = SimpleNamespace(
            dag_id=DAG, run_id=RUN, run_after=now, start_date=now, triggering_user_name="operator", conf={}
        )
        return {"ti": ti, "params": self.params, "dag_run": run, "dag": made}

    @property
    def played(self) -> list[str]:
        return [each for each in self.did if each.startswith("played")]

    def recorded(self) -> list[dict[str, Any]]:
        """What the evidence of the run holds."""
        return [dict(each.body) for each in read_records(self._state / "evidence", run_file_name(DAG, RUN))]

    def outcomes(self, task_id: str) -> list[str]:
        """What the task left in the evidence."""
        return [body["outcome"] for body in self.recorded() if body["task"] == task_id]
