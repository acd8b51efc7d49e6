"""The fence around a controller quorum: one run of ansible that waits, connected to every controller's host, for two words of this process."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Sequence
from types import TracebackType

from kraft_runbook.clients.ansible_runs import RunReport, Tell, private_directory, run_ansible
from kraft_runbook.clients.observe import accepts
from kraft_runbook.clients.playbooks import AGAIN, Guard, guarded_controllers, host_name, node_variables, playbook_directory
from kraft_runbook.clients.secrets import Secrets
from kraft_runbook.cluster import ClusterSpec
from kraft_runbook.errors import StepFailed
from kraft_runbook.leaving import FencePlan

PATIENCE = 120.0
"""Seconds that the run waits for each word."""
_END = 60.0


class QuorumFence:
    """A context manager. ``raise_it`` stops the others; then ``leave`` stops the active controller, or the fence is lifted when the context ends.

    However it ends while this process lives, it ends with one of the two. When this process is killed, the controllers stay as they are:
    nothing was deleted, and starting them again resumes the dual write.
    """

    def __init__(self, spec: ClusterSpec, plan: FencePlan, *, secrets: Secrets, tell: Tell) -> None:
        self._spec = spec
        self._plan = plan
        self._secrets = secrets
        self._tell = tell
        self._place = private_directory(None)
        self._report: RunReport | None = None
        self._broken: BaseException | None = None
        self._run = threading.Thread(target=self._work, name="leave-kraft", daemon=True)
        self._decided = False
        self._raised = False
        self._reached: set[str] = set()

    def __enter__(self) -> QuorumFence:
        self._words = self._place.__enter__()
        self._run.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        try:
            if not self._raised:
                self._say("fence", "do not")
            if not self._decided:
                self._say("decision", "lift" if self._raised else "nothing to decide")
            self._run.join(_END)
            self._raise_failure()
        except StepFailed as failure:
            if error is None:
                raise
            if not self._raised:
                return  # the run ended before anything was stopped, and that is what the error says
            raise StepFailed(f"{error}\nand the fence could not be lifted: {failure.problem}", way_out=failure.way_out) from error
        finally:
            self._place.__exit__(None, None, None)

    def ready(self) -> None:
        """Wait until ansible has reached every host, so that the words are acted on at once. Raises StepFailed where one can't be reached."""
        while self._reached < {f"controller {c.id}" for c in self._spec.controllers}:
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
        """Stop every controller but the active one, and see that they are gone. Raises StepFailed; then nothing was deleted."""
        self._raised = True
        self._say("fence", "fence")
        self._await_end(self._plan.fenced)

    def _await_end(self, ids: Sequence[int]) -> None:
        deadline = time.monotonic() + PATIENCE
        left = [self._spec.controller(i) for i in ids]
        while left := [c for c in left if accepts(c.host, c.port, timeout=0.5) is not False]:
            if not self._run.is_alive():
                self._raise_failure()
            if time.monotonic() > deadline:
                raise StepFailed(f"controller {', '.join(str(c.id) for c in left)} was to be stopped and still answers", way_out=AGAIN)
            time.sleep(0.005)

    def leave(self) -> None:
        """Stop the active controller too, and see that it is gone. Raises StepFailed; then nothing was deleted."""
        self._decided = True
        self._say("decision", "leave")
        if self._plan.active is not None:
            self._await_end([self._plan.active])

    def _raise_failure(self) -> None:
        if self._broken is not None:
            raise self._broken
        if self._report is None:
            raise StepFailed("ansible did not come to its end", way_out=AGAIN)
        for name, host in self._report.hosts.items():
            if host.failure:
                task, message, way_out = host.failure
                raise StepFailed(f"leave_kraft on {name}: '{task}' failed: {message}", way_out=way_out or AGAIN)
        if self._report.status != "successful":
            raise StepFailed(f"leave_kraft: ansible ended as {self._report.status}:\n{self._report.output}", way_out=AGAIN)

    def _say(self, name: str, word: str) -> None:
        path = self._words / name
        fresh = path.with_suffix(".new")
        fresh.write_text(word)
        fresh.replace(path)

    def _work(self) -> None:
        try:
            guarded = guarded_controllers(self._spec, Guard.PROVISIONING, but=None, secrets=self._secrets, check=False)
            inventory = dict(guarded)
            for controller in self._spec.controllers:
                inventory[host_name(controller)] = {
                    **node_variables(self._spec, controller),
                    "must_be_proven": list(guarded),
                    "part": "active" if controller.id == self._plan.active else "fenced",
                    "words": str(self._words),
                    "decider": os.getpid(),
                    "patience": PATIENCE,
                }
            self._report = run_ansible(
                playbook_directory() / "leave_kraft.yml",
                inventory,
                check=False,
                timeout=3 * PATIENCE,
                secret_text=None,
                secret_values=[],
                tell=self._hear,
                labels={host_name(c): f"controller {c.id}" for c in self._spec.controllers},
                directory=None,
                groups={"guarded": list(guarded)},
            )
        except BaseException as error:
            self._broken = error
