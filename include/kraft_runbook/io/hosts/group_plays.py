"""Playing a playbook of an application's owner on the application's hosts. Nothing of it is this project's: it is
played as it is, by the same runner and in the same bare environment as our own.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from kraft_runbook.cluster.group_applications import GroupApplication
from kraft_runbook.cluster.naming import some
from kraft_runbook.cluster.spec_types import SecretRef
from kraft_runbook.errors import Refused, StepFailed
from kraft_runbook.io.hosts.ansible_reports import RunReport, Tell
from kraft_runbook.io.hosts.ansible_runs import run_ansible

AGAIN = "correct what is named, then clear this task: the playbook is played again, so it must leave alone what is done"


def play_application(
    application: GroupApplication,
    playbook: str,
    *,
    group: str,
    coordination: str,
    tell: Tell,
) -> tuple[str, ...]:
    """Play it on every host of the application, and wait for its end. Returns the hosts on which it changed something.

    Raises Refused where there is no such file; StepFailed with each host that failed, its task and what it said, also
    where it ran no task on a host.
    """
    _require(playbook)
    own = {"kafka_group": group, "coordination": coordination}
    report = run_ansible(
        Path(playbook),
        {name: {**variables, **own} for name, variables in application.hosts.items()},
        check=False,
        timeout=application.seconds,
        secret_text=None,
        secret_values=[],
        tell=tell,
        secrets=_no_secrets,
        labels={name: name for name in application.hosts},
        foreign=True,
    )
    if why := _why_not(application, report):
        raise StepFailed(f"{Path(playbook).name} for group {group}: {why}", way_out=AGAIN)
    return tuple(name for name in application.hosts if report.hosts[name].changed)


def _no_secrets(ref: SecretRef) -> str:
    raise Refused(f"{ref} is named among the owner's variables, which name no secret", way_out="name it elsewhere")


def content_of(playbook: str) -> str:
    """SHA-256 of the playbook's own file. What it includes (roles, files of variables) is not in it. Raises Refused
    where there is no such file, or it can't be read.
    """
    try:
        return hashlib.sha256(_require(playbook).read_bytes()).hexdigest()
    except OSError as error:
        raise Refused(
            f"playbook {playbook} can't be read: {error.strerror}",
            way_out="let the workers read it, then clear this task",
        ) from error


def _require(playbook: str) -> Path:
    if not Path(playbook).is_file():
        raise Refused(f"there is no playbook {playbook}", way_out="correct group_applications in the cluster file")
    return Path(playbook)


def _why_not(application: GroupApplication, report: RunReport) -> str:
    """What went wrong; empty: nothing did, and a task ran on each host."""
    failed = (
        []
        if report.status == "successful"
        else [  # else what failed was rescued, or is to be ignored
            f"'{found.failure[0]}' failed on {name}: {found.failure[1][:500]}"
            for name in application.hosts
            if (found := report.hosts[name]).failure
        ]
    )
    if failed:
        return some(failed, between="; ")
    if report.status == "timeout":
        return f"it took longer than {application.seconds:g} s (seconds in group_applications), or a host is gone"
    if report.status != "successful":
        return f"{report.ending} before any task: {report.output}"
    idle = [name for name in application.hosts if not report.hosts[name].ok]
    return f"it ran no task on {some(idle)}: its plays are for other hosts" if idle else ""
