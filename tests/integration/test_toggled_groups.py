"""Many groups of migrating members are toggled by the steps of a scheduled run, and relieved, while records come."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import by_hand
import pytest
from kazoo.client import KazooClient
from labs import Lab
from migrating_members import Group, await_mode
from recording import Evidence
from toggling_runs import INTERVAL, await_shares, run_of, waited

from kraft_runbook.cluster.group_toggles import GroupToggles, Relief
from kraft_runbook.steps.run import Failed
from kraft_runbook.steps.toggles.fleet import read_kept, settle_the_fleet, toggle_the_fleet
from kraft_runbook_consumer import Mode

HEAP = "jvm_memory_used_bytes"


@pytest.fixture
def group(own_lab: Lab, tmp_path: Path, request: pytest.FixtureRequest) -> Group:
    made = Group(own_lab, str(request.node.name).removeprefix("test_").replace("_", "-"), tmp_path)
    made.make_topic()
    return made


@pytest.mark.long
def test_fleet_toggles_and_relieves(group: Group, zookeeper: KazooClient) -> None:
    """By the schedule's steps: what is unchanged is toggled; when the brokers' metric passes its threshold it goes
    back, and nothing more is toggled.
    """
    calm = GroupToggles(
        groups=(f"{group.name}.*",),
        unchanged_for=1,
        commit_interval=INTERVAL,
        relief=Relief(metric=HEAP, labels={"area": "heap"}, above=1e15),
    )
    stressed = calm.model_copy(update={"relief": Relief(metric=HEAP, labels={"area": "heap"}, above=1)})
    with ExitStack() as stack:
        with group.records():
            members = [stack.enter_context(group.member()) for _ in range(2)]
            await_shares(group, [6, 6])

            def once(settings: GroupToggles) -> list[str]:
                run = run_of(group, Evidence(), toggles=settings)
                done = toggle_the_fleet(run)["toggled"]
                waited(run, settle_the_fleet)
                return list(done)

            by_hand.wait_until("it is toggled", lambda: once(calm) == [group.name], within=60)
            await_mode(members, Mode.KAFKA)
            assert once(calm) == [] and read_kept(run_of(group)).settled == {group.name}
            with pytest.raises(Failed, match=f"relieved: {HEAP} is .*, above 1: 1 groups go back"):
                once(stressed)
            await_mode(members, Mode.ZOOKEEPER)
            group.await_owners(zookeeper, [6, 6])
            assert once(calm) == [], "nothing is toggled until a person says so"
        group.require_each_once()
