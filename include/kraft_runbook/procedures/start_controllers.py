"""Starting controllers that are down, with the files they have."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.errors import StepFailed
from kraft_runbook.io.hosts.ansible_reports import Tell
from kraft_runbook.io.hosts.ansible_runs import AGAIN, run_ansible
from kraft_runbook.io.hosts.inventory import host_name, node_variables
from kraft_runbook.io.hosts.migration_guard import guarded_controllers
from kraft_runbook.io.hosts.playbooks import playbook_directory
from kraft_runbook.io.secrets import Secrets
from kraft_runbook.runbook.plays import Guard


def start_controllers(
    spec: ClusterSpec, ids: Sequence[int], *, secrets: Secrets, tell: Tell, gone: Collection[int] = ()
) -> tuple[int, ...]:
    """Start these controllers with the files they have, once all are proven to be in migration mode. A controller
    without data is left out.

    ``gone``: controllers whose hosts are gone for good, so that nothing can be proven of them. Returns the controllers
    that were started. Raises StepFailed, naming each that was refused or did not stay up.
    """
    guarded = guarded_controllers(spec, Guard.PROVISIONING, but=None, secrets=secrets, check=False, gone=gone)
    starting = {
        host_name(spec.controller(i)): {**node_variables(spec, spec.controller(i)), "must_be_proven": list(guarded)}
        for i in ids
    }
    report = run_ansible(
        playbook_directory() / "start_controllers.yml",
        {**guarded, **starting},
        check=False,
        timeout=spec.deadlines.registration * 2,
        secret_text=None,
        secret_values=[],
        tell=tell,
        secrets=secrets,
        labels={name: name.replace("-", " ", 1) for name in (*guarded, *starting)},
        groups={"guarded": list(guarded), "starting": list(starting)},
    )
    failures = [(name, host.failure) for name, host in report.hosts.items() if host.failure]
    if failures or report.status != "successful":
        said = "; ".join(f"{name}: {failure[1]}" for name, failure in failures)
        ways = [failure[2] for _, failure in failures if failure[2]]
        raise StepFailed(
            f"the controllers were not started: {said or report.output}",
            way_out="; ".join(dict.fromkeys(ways)) or AGAIN,
        )
    return tuple(i for i in ids if report.hosts[host_name(spec.controller(i))].changed)
