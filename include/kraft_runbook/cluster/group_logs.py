"""The ``group_logs`` of a cluster file: where members of consumer groups write down what they hand out, and for how
long a partition may be silent.
"""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, Field, model_validator

from kraft_runbook.cluster.spec_types import GroupPatterns, Model, Seconds, fits_whole

GROUP = "{group}"
"""Stands for the group's name in a path."""


def _absolute(path: str) -> str:
    if not path.startswith("/"):
        raise ValueError(f"{path!r} is no whole path: tasks of a run look from directories of their own")
    return path


LogPath = Annotated[str, AfterValidator(_absolute)]
"""A whole path, as the workers see it, or a pattern of ``glob``; ``{group}`` stands for the group's name."""


class GroupLogs(Model):
    """The members' logs of these groups (docs/proof.md). ``silence_at_most``: for how long a partition may hand out
    nothing, seconds; None: as long as it likes.
    """

    groups: GroupPatterns
    logs: tuple[LogPath, ...] = Field(min_length=1)
    silence_at_most: Seconds | None = None

    @model_validator(mode="after")
    def _whose(self) -> GroupLogs:
        one = len(self.groups) == 1 and re.fullmatch(r"[A-Za-z0-9._\-]+", self.groups[0])
        if not one and (shared := [each for each in self.logs if GROUP not in each]):
            raise ValueError(f"{shared[0]} may be of several groups: write {GROUP} into the path")
        return self

    def means(self, group: str) -> bool:
        """Whether the logs are of this group's members."""
        return fits_whole(self.groups, group)
