"""The fence of a controller quorum: one Ansible run that is connected to every controller's host and waits for words of
this process.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from kraft_runbook.cluster.naming import nodes
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.errors import StepFailed
from kraft_runbook.io.hosts.ansible_reports import RunReport, Tell
from kraft_runbook.io.hosts.ansible_runs import AGAIN, private_directory, run_ansible
from kraft_runbook.io.hosts.inventory import host_name, node_variables
from kraft_runbook.io.hosts.migration_guard import guarded_controllers
from kraft_runbook.io.hosts.playbooks import playbook_directory
from kraft_runbook.io.private_file import write_private
from kraft_runbook.io.secrets import Secrets
from kraft_runbook.migration.leaving import FencePlan
from kraft_runbook.procedures.look_at_nodes import accepts
from kraft_runbook.runbook.plays import Guard

PATIENCE = 120.0
"""Seconds that the run waits for each word."""
GONE_WITHIN = 30.0
"""Seconds within which a killed controller must be gone. While a majority still runs, waiting longer loses nothing, but
does not help either.
"""
STOPPING = frozenset({"Fence the quorum", "Stop the active controller"})
"""The playbook's tasks that may fail without ending the run."""
ENDS_WITHIN = 60.0
"""Seconds within which the run must end after its last word: ssh gives up a host that fell silent after 30 s
(``ssh_args`` in playbooks/ansible.cfg).
"""


@dataclass(frozen=True)
class FencedHosts:
    """How the fence acts on the controllers' hosts and sees that they are gone. ``gone_within``, ``ends_within``:
    seconds.
    """

    run: Callable[..., RunReport] = run_ansible
    guarded: Callable[..., Mapping[str, Mapping[str, Any]]] = guarded_controllers
    accepts: Callable[..., object] = accepts
    gone_within: float = GONE_WITHIN
    ends_within: float = ENDS_WITHIN


class QuorumFence:
    """A context manager. ``raise_it`` stops all controllers but the active one. Then ``leave`` stops the active one, or
    the fence is lifted when the context ends.

    To lift the fence is to start each controller again that ran before; those that can't be started are named. After
    ``leave`` the fence can be lifted only until ``nobody_may_return`` is called. When this process is killed, the
    controllers stay as they are: nothing was deleted, and starting them again resumes dual write.
    """

    def __init__(
        self, spec: ClusterSpec, plan: FencePlan, *, secrets: Secrets, tell: Tell, hosts: FencedHosts | None = None
    ) -> None:
        self._hosts = hosts or FencedHosts()
        self._spec = spec
        self._plan = plan
        self._secrets = secrets
        self._tell = tell
        self._place = private_directory()
        self._report: RunReport | None = None
        self._broken: BaseException | None = None
        self._run = threading.Thread(target=self._work, name="leave-kraft", daemon=True)
        self._decided = False
        self._raised = False
        self._settled = False
        self._reached: set[str] = set()
        self._failed: dict[str, str] = {}
        self._stoppable = [c for c in spec.controllers if c.id not in plan.gone]

    def __enter__(self) -> QuorumFence:
        self._words = self._place.__enter__()
        self._run.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if not self._raised:
                self._say("fence", "do not")
            if not self._decided:
                self._say("decision", "lift" if self._raised else "nothing to decide")
            else:
                self._say("outcome", "done" if self._settled else "lift")
            self._run.join(self._hosts.ends_within)
            self._raise_failure()
        except StepFailed as failure:
            if error is None:
                raise
            if not self._raised:
                return  # the run ended before anything was stopped, as the error says
            if self._settled or self._lifted():
                return  # the error already says what failed
            raise StepFailed(
                f"{error}\nand the fence could not be lifted: {failure.problem}", way_out=failure.way_out
            ) from error
        finally:
            self._place.__exit__(None, None, None)

    def _lifted(self) -> bool:
        """Whether the run ended and started every controller again, also if it could not stop one before."""
        if self._report is None or self._broken is not None:
            return False
        return {host.failure[0] for host in self._report.hosts.values() if host.failure} <= STOPPING and bool(
            self._failed or self._report.status == "successful"
        )

    def ready(self) -> None:
        """Wait until Ansible has connected to every host, so that it acts on the words at once. Raises StepFailed if a
        host can't be reached.
        """
        while self._reached < {f"controller {c.id}" for c in self._stoppable}:
            if not self._run.is_alive():
                self._raise_failure()
            time.sleep(0.01)

    def _hear(self, line: str) -> None:
        who, _, _ = line.partition(": ")
        if who in self._reached:
            self._tell(line)
        elif who.startswith("controller "):
            self._reached.add(who)  # its first line only says that it would be stopped

    def raise_it(self) -> None:
        """Stop every controller but the active one, and verify that they are gone. If it raises StepFailed, nothing was
        deleted.
        """
        self._raised = True
        self._say("fence", "fence")
        self._await_end(self._plan.fenced)

    def _await_end(self, ids: Sequence[int]) -> None:
        """Verify that these are gone. Raises StepFailed as soon as one can't be stopped; the fence is lifted then."""
        deadline = time.monotonic() + self._hosts.gone_within
        left = [self._spec.controller(i) for i in ids]
        while left := [
            c for c in left if self._failed or self._hosts.accepts(c.host, c.port, timeout=0.5) is not False
        ]:
            if self._failed:
                said = "; ".join(f"{who} could not be stopped: {why}" for who, why in self._failed.items())
                raise StepFailed(said, way_out=f"correct the cause on that host, then clear this task. {AGAIN}")
            if not self._run.is_alive():
                self._raise_failure()
            if time.monotonic() > deadline:
                raise StepFailed(
                    f"{nodes('controller', [c.id for c in left], 'is')} not proven to be gone"
                    f" {self._hosts.gone_within:g} s after the kill: the port is open, or the host does not answer",
                    way_out=AGAIN,
                )
            time.sleep(0.005)

    def leave(self) -> None:
        """Stop the active controller too, and verify that it is gone. If it raises StepFailed, nothing was deleted."""
        self._decided = True
        self._say("decision", "leave")
        if self._plan.active is not None:
            self._await_end([self._plan.active])

    def nobody_may_return(self, *, settled: bool = True) -> None:
        """From here on no controller is started again, since ZooKeeper may carry out the deletion. ``settled`` False:
        it is known that ZooKeeper did not.
        """
        self._settled = settled

    def finish(self) -> None:
        """The controller role was given back: the run on the hosts may end."""
        self._say("outcome", "done")

    def _hear_of_failure(self, host: str, message: str) -> None:
        if self._raised and host.startswith("controller-"):
            self._failed[host.replace("-", " ", 1)] = message

    def _raise_failure(self) -> None:
        if self._broken is not None:
            raise self._broken
        if self._report is None:
            raise StepFailed(
                f"the Ansible run did not end within {self._hosts.ends_within:g} s: a controller's host may be gone",
                way_out=f"see that ssh reaches each controller's host; {AGAIN}",
            )
        failures = [(name, *host.failure) for name, host in self._report.hosts.items() if host.failure]
        if failures:
            said = "; ".join(
                f"leave_kraft on {name}: '{task}' failed: {message}" for name, task, message, _ in failures
            )
            raise StepFailed(said, way_out="; ".join(dict.fromkeys(way_out or AGAIN for *_, way_out in failures)))
        if self._report.status != "successful":
            raise StepFailed(f"leave_kraft: {self._report.ending}:\n{self._report.output}", way_out=AGAIN)

    def _say(self, name: str, word: str) -> None:
        write_private(self._words / name, word, durable=False)  # within the window: nobody needs it after a crash

    def _work(self) -> None:
        try:
            guarded = self._hosts.guarded(
                self._spec, Guard.PROVISIONING, but=None, secrets=self._secrets, check=False, gone=self._plan.gone
            )
            inventory = dict(guarded)
            for controller in self._stoppable:
                inventory[host_name(controller)] = {
                    **node_variables(self._spec, controller),
                    "must_be_proven": list(guarded),
                    "part": "active" if controller.id == self._plan.active else "fenced",
                    "words": str(self._words),
                    "decider": os.getpid(),
                    "patience": PATIENCE,
                }
            self._report = self._hosts.run(
                playbook_directory() / "leave_kraft.yml",
                inventory,
                check=False,
                timeout=3 * PATIENCE,
                secret_text=None,
                secret_values=[],
                tell=self._hear,
                secrets=self._secrets,
                labels={host_name(c): f"controller {c.id}" for c in self._stoppable},
                groups={"guarded": list(guarded)},
                on_failure=self._hear_of_failure,
            )
        except BaseException as error:
            self._broken = error
