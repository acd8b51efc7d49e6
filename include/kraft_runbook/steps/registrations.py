"""Controllers are registered in the metadata log before anything depends on it, and one whose registration was lost is
restarted once more in a roll of software.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from kraft_runbook.cluster.feature_levels import METADATA_VERSION
from kraft_runbook.cluster.observation import Unread
from kraft_runbook.cluster.phases import Phase
from kraft_runbook.errors import Refused
from kraft_runbook.procedures.observe_features import observe_features
from kraft_runbook.restart.plays import restart_node
from kraft_runbook.runbook.registrations import CONTROLLERS_REGISTER, not_their_own, way_out
from kraft_runbook.steps.handle import Cluster
from kraft_runbook.steps.node_step import Look, NodeStep, passes_over_none
from kraft_runbook.steps.roll import Awaits, active_one_last
from kraft_runbook.steps.run import Run

SECONDS = 60.0
"""How long a registration may take that is on its way. It takes less than a second on a healthy quorum, and a leader is
elected within ten.
"""


def require_registered(look: Look) -> None:
    """Every controller is registered as it runs, with the migration flag. Without that the copy never begins, though
    every broker is in migration mode then. Raises Refused, with nothing changed.
    """
    if look.phase is not Phase.PRE_MIGRATION:
        return
    if wrong := await_registrations(look.cluster, migrating=True):
        raise Refused(
            f"the metadata copy could not begin: {in_words(wrong)}",
            way_out=f"{way_out(wrong)}. Broker {look.node} was not restarted: then clear this task",
        )


def register_anew(run: Run, step_of: Callable[[int], NodeStep], *, after: Awaits) -> list[int]:
    """Restart each controller once more whose new registration did not come, one by one, the active one last; what was
    lost blocks every raise of a level. Returns them. Raises as ``take_step`` and ``wait_for``; Refused where a restart
    did not help.
    """
    wrong = await_registrations(run.cluster)
    if not wrong:
        return []
    run.cluster.tell(f"{in_words(wrong)}. Restarting once more, one by one")
    began = run.cluster.now()

    def again(node: int) -> NodeStep:
        return replace(
            step_of(node),
            play=lambda look: restart_node(look.node, look.phase, older_than=began),
            done=passes_over_none,
            passed_over=passes_over_none,
            excepted=lambda _: True,
            anew=True,
        )

    active_one_last(run, again, lambda _: list(wrong), once=True, after=after)
    if still := await_registrations(run.cluster):
        raise Refused(
            f"a restart did not help: {in_words(still)}",
            way_out="look for ControllerRegistrationManager in their logs; then clear this task",
        )
    return list(wrong)


def await_registrations(cluster: Cluster, *, migrating: bool = False) -> Mapping[int, str]:
    """What is wrong with them, once it has been for ``SECONDS``. Raises Refused where that can't be read."""
    until = cluster.now() + SECONDS
    while (wrong := _wrong(cluster, migrating)) and cluster.now() < until:
        cluster.tell(
            f"waiting for the registrations, not read yet: {wrong.reason}"
            if isinstance(wrong, Unread)
            else f"waiting: {in_words(wrong)}"
        )
        cluster.pause(cluster.spec.deadlines.poll)
    if isinstance(wrong, Unread):
        raise Refused(
            f"whether every controller is registered could not be read: {wrong.reason}",
            way_out=f"{wrong.way_out or 'make the metadata log readable'}; then clear this task",
        )
    return wrong


def _wrong(cluster: Cluster, migrating: bool) -> Mapping[int, str] | Unread:
    """Before the copy the log tells of each one, after a roll the controller must too: what it runs is compared."""
    seen = cluster.ask(observe_features, with_hosts=False)
    if isinstance(seen.log, Unread):
        return seen.log
    wrong = not_their_own(seen, seen.log, migrating=migrating)
    unread = {node_id: each for node_id, each in seen.controllers.items() if isinstance(each, Unread)}
    if wrong or migrating or not unread or seen.log.levels.get(METADATA_VERSION, 0) < CONTROLLERS_REGISTER:
        return wrong
    told = "; ".join(f"controller {node_id}: {each.reason}" for node_id, each in sorted(unread.items()))
    return Unread(told, way_out=next((each.way_out for each in unread.values() if each.way_out), "let it answer"))


def in_words(wrong: Mapping[int, str]) -> str:
    return "; ".join(f"controller {node_id} {each}" for node_id, each in sorted(wrong.items()))
