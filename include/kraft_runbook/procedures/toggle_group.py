"""The toggle of a group of migrating members: one znode, written at the version that was read before the group was
looked at. Killed anywhere and done again, it goes on from what is true.
"""

from __future__ import annotations

from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.errors import Refused, StepFailed
from kraft_runbook.groups.look import GroupLook
from kraft_runbook.groups.planned_offsets import Direction, MoveRefused
from kraft_runbook.groups.toggles.toggle import Toggle, plan_toggle
from kraft_runbook.io.secrets import Secrets
from kraft_runbook.io.zookeeper.group_znodes import mode_path
from kraft_runbook.io.zookeeper.znode import Znode
from kraft_runbook.procedures.group_sides import GroupSides, OfGroup

KAFKA = b"kafka"


def toggle_group(
    spec: ClusterSpec, toggle: Toggle, earlier: GroupLook, *, secrets: Secrets, sides: OfGroup = GroupSides
) -> bool:
    """Write the mode that the toggle wants, and read it back; False where it says so by now. ``earlier``: a look some
    moments before.

    Raises Refused where the group is not as the toggle has it, or somebody else toggles it; StepFailed where another
    mode is read back; WriteRefused, Unreachable. Nothing was written where it is Refused.
    """
    group = sides(spec, toggle.group, secrets)
    before = group.read_mode()
    if says_so(before, toggle):
        return False
    require_as_planned(plan_toggle(earlier, group.look(), toggle.direction), toggle)
    if not group.write_mode(toggle.wanted, before):
        raise Refused(
            f"{mode_path(toggle.group)} was written by somebody else since it was read",
            way_out="see who else toggles this group, then clear this task",
        )
    if not says_so(group.read_mode(), toggle):
        raise StepFailed(
            f"{mode_path(toggle.group)} does not say {toggle.wanted} any more: somebody else toggles this group",
            way_out="see who does, then clear this task",
        )
    return True


def says_so(znode: Znode | None, toggle: Toggle) -> bool:
    """Whether the members follow the side that the toggle wants. Anything but ``kafka`` means ZooKeeper (KIP-125)."""
    return (znode is not None and znode.data == KAFKA) is (toggle.direction is Direction.TO_KAFKA)


def require_as_planned(found: Toggle | tuple[MoveRefused, ...], toggle: Toggle) -> None:
    """Raise Refused, with every reason, unless this is a plan for the same members."""
    if not isinstance(found, Toggle):
        raise Refused(
            f"group {toggle.group} must not be toggled now: {'; '.join(each.why for each in found)}",
            way_out="; ".join(dict.fromkeys(each.way_out for each in found)),
        )
    if found.members != toggle.members:
        came, went = set(found.members) - set(toggle.members), set(toggle.members) - set(found.members)
        told = [f"{', '.join(sorted(some))} {verb}" for some, verb in ((came, "came"), (went, "left")) if some]
        raise Refused(
            f"the members of group {toggle.group} are not those that were planned for: {'; '.join(told)}",
            way_out="plan anew: clear the task 'preflight.plan' with its downstream tasks",
        )
