"""The ``group_toggles`` of a cluster file: which consumer groups a scheduled run may toggle, and when all go back."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import Field, model_validator

from kraft_runbook.cluster.spans import Schedule
from kraft_runbook.cluster.spec_types import GroupPatterns, Model, Seconds, fits_whole


class Relief(Model):
    """When all groups that the runs have toggled go back to ZooKeeper's assignment: once the metric of any broker is
    ``above`` or ``below`` a number.

    ``metric``: with Prometheus the name of a sample as the exporter shows it, with Jolokia
    ``kafka.server:type=…,name=…/Attribute``; ``labels``: those that the sample must have, of Prometheus alone.
    """

    metric: str = Field(min_length=1)
    labels: Mapping[str, str] = Field(default_factory=dict)
    above: float | None = None
    below: float | None = None

    @model_validator(mode="after")
    def _one_threshold(self) -> Relief:
        if (self.above is None) is (self.below is None):
            raise ValueError("name one of 'above' and 'below': the number that the metric must not pass")
        return self

    def passed(self, value: float) -> str:
        """In words, where the value has passed the threshold; else empty."""
        if self.above is not None and value > self.above:
            return f"{self.metric} is {value:g}, above {self.above:g}"
        if self.below is not None and value < self.below:
            return f"{self.metric} is {value:g}, below {self.below:g}"
        return ""

    def worst(self, values: Mapping[int, float]) -> float:
        """Of the brokers' values, the one that is next to the threshold or farthest beyond."""
        return max(values.values()) if self.above is not None else min(values.values())


class GroupToggles(Model):
    """What ``toggle_consumer_groups`` may do without a person. ``groups``: patterns that fit whole names; no other is
    toggled. ``unchanged_for``: for how long members and mode of a group must have been the same. ``at_once``: how many
    are toggled by a run. ``commit_interval``: the members' auto.commit.interval.ms. ``settled_within``: a group that
    has not settled by then goes back. All in seconds. ``schedule``: of the runs.
    """

    groups: GroupPatterns
    unchanged_for: Seconds = 86_400
    at_once: int = Field(default=5, ge=1, le=100)
    commit_interval: Seconds = 60
    settled_within: Seconds = 300
    relief: Relief | None = None
    schedule: Schedule | None = "*/15 * * * *"

    @model_validator(mode="after")
    def _has_time_to_settle(self) -> GroupToggles:
        """A partition is seen where it belongs only once its member has committed."""
        least = 2 * self.commit_interval
        if self.settled_within < least:
            raise ValueError(
                f"settled_within {self.settled_within:g} s is less than two commit_intervals ({least:g} s): a group"
                " that is well would be put back"
            )
        return self

    def means(self, group: str) -> bool:
        """Whether the runs may toggle this group."""
        return fits_whole(self.groups, group)
