"""What the controllers' hosts must prove before a step that relies on a rollback (``runbook.plays.Guard``)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from kraft_runbook.cluster.observation import ControllerMode
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.cluster.spec_nodes import Controller
from kraft_runbook.errors import Refused, RunbookError
from kraft_runbook.io.hosts.ansible_reports import RunReport
from kraft_runbook.io.hosts.ansible_runs import AGAIN
from kraft_runbook.io.hosts.inventory import by_machine, node_variables
from kraft_runbook.io.kafka.metadata_quorum import controller_mode
from kraft_runbook.io.secrets import Secrets
from kraft_runbook.runbook.plays import Guard

_MODE_SECONDS = 3.0
"""Seconds that a controller may take to show its mode before a step."""


def guarded_controllers(
    spec: ClusterSpec,
    guard: Guard,
    *,
    but: int | None,
    secrets: Secrets | None,
    check: bool,
    gone: Collection[int] = (),
    mode_of: Callable[..., ControllerMode] = controller_mode,
) -> dict[str, dict[str, Any]]:
    """The group ``guarded``: the hosts, by name, that a playbook's import of ``prove_migration_mode.yml`` examines,
    with their variables.

    They are all controllers except ``but`` (the one that the step itself writes and starts) and those that are ``gone``
    with their hosts, each with the mode that its process shows now, grouped by machine.
    """
    if guard is Guard.NONE:
        return {}
    others = [each for each in spec.controllers if each.id != but and each.id not in gone]
    with ThreadPoolExecutor(max_workers=max(1, len(others)), thread_name_prefix="guard") as pool:
        shown = dict(
            zip(
                [each.id for each in others],
                pool.map(lambda each: _shown_mode(spec, each, secrets, mode_of), others),
                strict=True,
            )
        )
    # A dry run shows the whole way, also before any controller is provisioned.
    provisioning = check or guard is not Guard.PROVISIONED
    return {
        f"controllers-{'-'.join(str(each.id) for each in together)}": {
            **node_variables(spec, together[0]),
            "provisioning": provisioning,
            "refuses_former_copy": guard is Guard.ANEW,
            "controllers": [_asked(each, shown[each.id]) for each in together],
        }
        for together in by_machine(spec, others)
    }


def _asked(controller: Controller, shown: Mapping[str, str]) -> dict[str, str]:
    own = {"name": controller.service, "config_file": controller.config_file, "log_dir": controller.log_dir}
    return {"controller": controller.named, **own, **shown}


def _shown_mode(
    spec: ClusterSpec, controller: Controller, secrets: Secrets | None, mode_of: Callable[..., ControllerMode]
) -> dict[str, str]:
    if secrets is None:
        return {"shown": "", "not_shown": "it was not asked"}
    try:
        return {
            "shown": mode_of(spec, controller, secrets=secrets, timeout=_MODE_SECONDS).value,
            "not_shown": "",
        }
    except RunbookError as error:
        return {"shown": "", "not_shown": error.problem}


def raise_unless_proven(where: str, guarded: Mapping[str, Mapping[str, Any]], report: RunReport) -> None:
    found = [(name, host.failure) for name, host in report.hosts.items() if name in guarded and host.failure]
    if found:
        who = {name: [each["controller"] for each in guarded[name]["controllers"]] for name, _ in found}
        said = "; ".join(
            message if any(each in message for each in who[name]) else f"{', '.join(who[name])}: {message}"
            for name, (_, message, _) in found
        )
        ways = dict.fromkeys(way_out or AGAIN for _, (_, _, way_out) in found)
        raise Refused(f"{where} was refused before any change: {said}", way_out="; ".join(ways))
