"""The errors of this project. Each says what is wrong, where, and what a person must do next."""

from __future__ import annotations

from collections.abc import Sequence


class RunbookError(Exception):
    """Base of every error that is meant for a person.

    ``problem`` says what is wrong and names the thing; ``way_out`` says what to do next.
    """

    def __init__(self, problem: str, *, way_out: str) -> None:
        self.problem = problem
        self.way_out = way_out
        super().__init__(problem, way_out)

    def __str__(self) -> str:
        return f"{self.problem}\n  What to do: {self.way_out}"


class ClusterFileError(RunbookError):
    """A cluster file that can't be used. Holds every problem found, not just the first."""

    def __init__(self, source: str, problems: Sequence[str]) -> None:
        self.source = source
        self.problems = tuple(problems)
        count = "1 problem" if len(self.problems) == 1 else f"{len(self.problems)} problems"
        listed = "".join(f"\n  - {p}" for p in self.problems)
        super().__init__(
            f"{source} has {count}:{listed}", way_out="correct the file; docs/cluster-file.md describes every key"
        )


class Unreachable(RunbookError):
    """A server, metrics endpoint or host that did not answer."""


class TimedOut(Unreachable):
    """A server that took all the time it was given: it neither refused nor answered."""


class Refused(RunbookError):
    """A step that may not run now. Nothing was changed."""


class StepFailed(RunbookError):
    """A step that began and did not reach its target. ``way_out`` says how to resume or go back."""


class SecretMissing(RunbookError):
    """A secret that the cluster file names could not be resolved."""
