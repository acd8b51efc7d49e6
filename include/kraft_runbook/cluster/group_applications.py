"""The ``group_applications`` of a cluster file: playbooks that stop and start the applications of consumer groups."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import AfterValidator, Field, field_validator

from kraft_runbook.cluster.sensitive import is_sensitive
from kraft_runbook.cluster.spec_types import GroupPatterns, Model, Seconds, fits_whole


def _whole(path: str) -> str:
    if not path.startswith("/"):
        raise ValueError(f"{path!r} is no whole path of a playbook")
    return path


Playbook = Annotated[str, AfterValidator(_whole)]
ASSIGNORS = ("range", "roundrobin", "sticky", "cooperative-sticky")
"""Kafka's own (``partition.assignment.strategy``), by the names under which members join."""
HostName = Annotated[str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.\-]*$")]


class GroupApplication(Model):
    """The application of these groups. ``stop``, ``start``: playbooks, by whole paths, as the workers see them; each is
    played on ``hosts`` (names with Ansible's variables) with ``kafka_group`` and ``coordination`` (kafka or zookeeper:
    the side that the application is to use). ``seconds``: how long a play may last.

    ``keep_warm``: whether a member of this tool is in Kafka's group while ``start`` is played, so that the first ones
    of the application do not wait for group.initial.rebalance.delay.ms. ``assignors``: names of theirs; one that has
    none of these is turned away while the group is kept warm, and so is one of group.protocol=consumer (KIP-848).
    """

    groups: GroupPatterns
    stop: Playbook
    start: Playbook
    hosts: Mapping[HostName, Mapping[str, str | int | bool]] = Field(min_length=1)
    seconds: Seconds = 600
    keep_warm: bool = False
    assignors: tuple[str, ...] = Field(ASSIGNORS, min_length=1)

    @field_validator("hosts")
    @classmethod
    def _no_secret(cls, given: Mapping[str, Mapping[str, object]]) -> Mapping[str, Mapping[str, object]]:
        for host, variables in given.items():
            for name in variables:
                if is_sensitive(name) or name.lower().endswith(("pass", "token")):
                    raise ValueError(
                        f"{name} of {host} is a secret: have the playbook read it, from a vault for instance"
                    )
        return given

    def means(self, group: str) -> bool:
        """Whether it is this group's."""
        return fits_whole(self.groups, group)
