"""What a run of Ansible reports of each host, and what it hides."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, cast

from kraft_runbook.cluster.properties_text import escaped
from kraft_runbook.cluster.unread import Unread


def value_of(part: Mapping[str, Any]) -> Any:
    """One thing that a module was to read: its ``value``, or why it is ``unread``."""
    return Unread(str(part["unread"])) if "unread" in part else part["value"]


@dataclass(frozen=True, slots=True)
class HostReport:
    """One host's report: tasks that changed something, diffs as (path, before, after), the number of successful tasks,
    the facts.

    ``restarted``: a module reported that it restarted the service. ``ended_at``: when a process was told to end, by
    this machine's clock: a module says how long ago that was, whatever the host's clock shows. ``failure``: (task,
    message, way out) of the task that failed. ``clock``: the host's time, with this machine's time before and after
    reading it.
    """

    changed: tuple[str, ...] = ()
    diffs: tuple[tuple[str, str, str], ...] = ()
    ok: int = 0
    facts: Mapping[str, Any] = field(default_factory=dict)
    failure: tuple[str, str, str | None] | None = None
    clock: tuple[float, float, float] | None = None
    restarted: bool = False
    ended_at: float | None = None


@dataclass(frozen=True, slots=True)
class RunReport:
    """``status`` is ansible-runner's word: successful, failed, timeout or canceled. ``output`` is the end of what
    ansible printed.
    """

    status: str
    hosts: Mapping[str, HostReport]
    output: str

    @property
    def ending(self) -> str:
        """How it ended, in words, where it did not end well."""
        if self.status == "timeout":
            return "ansible was not done in its time: the host may be gone (does ssh reach it?), or too slow"
        return f"ansible ended as {self.status}"


def hider(values: Sequence[str]) -> Callable[[str], str]:
    """Blanks the secrets, as they are and as a properties file or JSON would escape them. Playbooks never show one;
    this is the second wall.
    """
    known = {text for value in values if value for text in (value, escaped(value), json.dumps(value)[1:-1])}

    def hide(text: str) -> str:
        for value in sorted(known, key=len, reverse=True):
            text = text.replace(value, "<set>")
        return text

    return hide


SUDO = re.compile(r"(Missing|Incorrect) sudo password|become success.*password", re.DOTALL | re.IGNORECASE)
"""What Ansible says where sudo asks for a password and gets none, or a wrong one."""
SUDO_ASKS = (
    "name its secret under reach.become_password in the cluster file (adopt: --become-password), correct its value, or"
    " let sudo ask for none (docs/hosts.md)"
)


def why_unreached(message: str) -> tuple[str, str]:
    """Of what Ansible says: what stands in the way, and the way out. ssh's own texts of host keys are told apart
    (OpenSSH, ``sshconnect.c``).
    """
    if "REMOTE HOST IDENTIFICATION HAS CHANGED" in message:
        return (
            "its host key is not the one in known_hosts: another machine answers there, or its key was made anew",
            "compare the key with the host's own (on its console: ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub)."
            " Only if they are the same put it into known_hosts in place of the old one; nothing was done there",
        )
    if "Host key verification failed" in message:
        return (
            "its host key is in no known_hosts that is read (reach.known_hosts, else the user's own)",
            "compare the key with the host's own (on its console: ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub),"
            " then add it to that file; nothing was done there",
        )
    if SUDO.search(message):
        return f"sudo did not get the password that it asks for: {message}", SUDO_ASKS
    return (
        message,
        "check 'reach' in the cluster file: user, port, private_key_file, known_hosts, become (docs/hosts.md)",
    )


HIDDEN = "Ansible hides the reason (no_log)"
OF_ANY_MODULE = ("changed", "msg", "censored", "module_stderr")


class Fold:
    """Collects Ansible's events into one report a host, and tells a person the progress. ``foreign``: the playbook is
    somebody else's, so that of a result nothing counts but what any module answers.
    """

    def __init__(
        self,
        labels: Mapping[str, str],
        tell: Tell,
        hide: Callable[[str], str],
        on_failure: Callable[[str, str], None] | None = None,
        *,
        foreign: bool = False,
    ) -> None:
        self._foreign = foreign
        self._on_failure = on_failure
        self._labels = labels
        self._tell = tell
        self._hide = hide
        self._hosts: dict[str, HostReport] = {name: HostReport() for name in labels}
        self._printed: list[str] = []

    def reports(self) -> dict[str, HostReport]:
        return dict(self._hosts)

    def output(self) -> str:
        return self._hide("\n".join(self._printed[-20:]))

    def add(self, event: Mapping[str, Any]) -> None:
        kind, data = event.get("event", ""), event.get("event_data") or {}
        if kind == "playbook_on_task_start":
            if len(self._labels) == 1:
                name = str(data.get("task") or "")
                self._say(next(iter(self._labels)), name[:1].lower() + name[1:])
        elif kind in ("runner_on_ok", "runner_on_failed", "runner_on_unreachable"):
            self._host_event(kind, data)
        elif event.get("stdout") and kind in ("verbose", "error", "warning", "deprecated", "playbook_on_start"):
            self._printed.append(str(event["stdout"]))

    def _host_event(self, kind: str, data: Mapping[str, Any]) -> None:
        host, task, result = (
            str(data["host"]),
            str(data.get("task") or ""),
            cast(Mapping[str, Any], data.get("res") or {}),
        )
        if self._foreign:
            result = {key: result[key] for key in OF_ANY_MODULE if key in result}
        report = self._hosts.get(host, HostReport())
        if result.get("said"):
            self._say(host, str(result["said"]))
        if kind == "runner_on_ok":
            diffs = result.get("diff") or []
            found = [
                (str(d["after_header"]), self._hide(d["before"]), self._hide(d["after"]))
                for d in ([diffs] if isinstance(diffs, dict) else diffs)
                if d
            ]
            self._hosts[host] = HostReport(
                changed=(*report.changed, task) if result.get("changed") else report.changed,
                diffs=(*report.diffs, *found),
                ok=report.ok + 1,
                facts={**report.facts, **cast(Mapping[str, Any], result.get("host_state") or {})},
                failure=report.failure,
                clock=(
                    (float(result["clock"]), _seconds(data["start"]), _seconds(data["end"]))
                    if "clock" in result
                    else report.clock
                ),
                restarted=report.restarted or result.get("restarted") is True,
                ended_at=(
                    _seconds(data["end"]) - float(result["told_to_end_ago"])
                    if "told_to_end_ago" in result
                    else report.ended_at
                ),
            )
            return
        if self._foreign and data.get("ignore_errors"):
            return
        said = [
            result.get("msg") or (HIDDEN if "censored" in result else "no reason given"),
            str(result.get("module_stderr") or "").strip(),
        ]
        message = self._hide("\n".join(str(each) for each in said if each))
        way_out = self._hide(str(result["way_out"])) if result.get("way_out") else None
        if kind == "runner_on_unreachable":
            problem, its_way_out = why_unreached(message)
            message, way_out = f"the host can't be reached: {problem}", way_out or its_way_out
        elif SUDO.search(message):
            message, way_out = f"sudo did not get the password that it asks for: {message}", way_out or SUDO_ASKS
        self._hosts[host] = replace(report, failure=(task, message, way_out))
        if self._on_failure is not None:
            self._on_failure(host, message)

    def _say(self, host: str, line: str) -> None:
        self._tell(self._hide(f"{self._labels.get(host, host)}: {line}"))


def _seconds(moment: str) -> float:
    return datetime.fromisoformat(moment).timestamp()


Tell = Callable[[str], None]
"""Receives one short line for a person."""
