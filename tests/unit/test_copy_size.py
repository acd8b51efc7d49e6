"""Provisioning takes the size from the files that are there, and counts only where there is none: a re-render never
changes a file by itself.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from observations import SPEC, WHY, host, observation, tree, zookeeper

from kraft_runbook.cluster.node_properties import controller_properties
from kraft_runbook.cluster.observation import ClusterObservation, ControllerMode, HostState
from kraft_runbook.cluster.phases import Phase
from kraft_runbook.errors import Refused
from kraft_runbook.migration.copy_tuning import LARGE, SMALL, Size
from kraft_runbook.procedures.copy_size import provisioning_size


class World:
    """What the hosts hold and what ZooKeeper says; ``counted``: how often the tree was read."""

    def __init__(self) -> None:
        self.hosts: dict[int, HostState] = {i: host(SPEC, i, None) for i in SPEC.controller_ids}
        self.seen: ClusterObservation = observation(Phase.ZOOKEEPER)
        self.counted = 0

    def _observe(self, *_: object, **given: object) -> ClusterObservation:
        assert given["scope"] == "full"
        self.counted += 1
        return self.seen

    def provision(self, node: int) -> dict[str, str]:
        """As the step does: decide, render, write."""
        rendered = controller_properties(
            SPEC, SPEC.controller(node), ControllerMode.MIGRATION, also=self.size(node).properties
        )
        self.hosts[node] = replace(self.hosts[node], config=rendered)
        return rendered

    def size(self, node: int) -> Size:
        return provisioning_size(
            SPEC,
            node,
            secrets=lambda _: "",
            tell=lambda _: None,
            gather=lambda *_, **__: self.hosts,
            look=self._observe,
        )


@pytest.fixture
def world() -> World:
    return World()


@pytest.mark.parametrize(("partitions", "size"), [(1_999, SMALL), (2_000, LARGE)])
def test_the_first_controller_s_size_is_counted_in_zookeeper(world: World, partitions: int, size: Size) -> None:
    world.seen = tree(partitions=partitions)(world.seen)
    assert world.size(101) is size
    assert world.counted == 1


@pytest.mark.parametrize(("first", "then"), [(2_000, 1_999), (1_999, 2_000), (2_000, 0), (100, 3_000_000)])
def test_a_count_that_moves_over_the_border_changes_no_file_and_all_controllers_get_the_same(
    world: World, first: int, then: int
) -> None:
    world.seen = tree(partitions=first)(world.seen)
    written = world.provision(101)
    world.seen = tree(partitions=then)(world.seen)
    assert world.provision(101) == written
    sizes = {world.size(101).name}
    for node in (102, 103):
        world.provision(node)
        sizes.add(world.size(node).name)
    assert len(sizes) == 1
    assert world.counted == 1


def test_an_unread_tree_is_refused_not_taken_for_a_small_cluster(world: World) -> None:
    world.seen = zookeeper(tree=WHY)(world.seen)
    with pytest.raises(Refused, match="could not be counted in ZooKeeper: a test did not read it"):
        world.size(101)


def test_a_file_that_decides_and_can_not_be_read_is_refused(world: World) -> None:
    world.hosts[101] = replace(world.hosts[101], config=WHY)
    for node in (101, 102):
        with pytest.raises(Refused, match="controller 101's file could not be read"):
            world.size(node)
    large = controller_properties(SPEC, SPEC.controller(102), ControllerMode.MIGRATION, also=LARGE.properties)
    world.hosts[102] = replace(world.hosts[102], config=large)
    assert world.size(102) is LARGE  # its own file decides
    assert world.counted == 0


def test_a_finalized_controller_s_file_settles_nothing(world: World) -> None:
    world.hosts[102] = replace(
        world.hosts[102], config=controller_properties(SPEC, SPEC.controller(102), ControllerMode.KRAFT)
    )
    world.seen = tree(partitions=5_000)(world.seen)
    assert world.size(101) is LARGE
