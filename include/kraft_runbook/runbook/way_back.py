"""Whether an operation can be undone from a cluster's present stage, and how."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RollbackPlan:
    """Whether the cluster can go back now, and the steps in order. ``risks``: what a person must know first.

    ``known``: False where what decides it was not read. Then it is not ``possible`` either: ``why`` says what to read,
    and ``steps`` are those that there would be.
    ``seconds``: the estimated time; ``window_seconds``: the estimated part of it without metadata changes. Both are 0
    if there is no estimate.
    """

    possible: bool
    why: str
    steps: tuple[str, ...]
    risks: tuple[str, ...] = ()
    seconds: float = 0
    window_seconds: float = 0
    known: bool = True

    @property
    def answer(self) -> str:
        """In a word. What was not read is never a yes."""
        return "yes" if self.possible else "no" if self.known else "not known"


def not_known(why: str, steps: tuple[str, ...] = (), risks: tuple[str, ...] = ()) -> RollbackPlan:
    """The answer where what decides it was not read."""
    return RollbackPlan(False, why, steps, risks, known=False)


def render_estimate(plan: RollbackPlan) -> str:
    """The estimate in brackets; empty if there is none."""
    if not plan.seconds:
        return ""
    window = f", about {plan.window_seconds:g} s of it without metadata changes" if plan.window_seconds else ""
    return f" (about {max(1, round(plan.seconds / 60)):d} min{window})"


def in_words(plan: RollbackPlan, dag: str = "", *, mends: bool = False, between: str = " ") -> str:
    """Whether and how, for the end of a run: each answer begins in its own way, and only a yes with "To go back".

    ``dag``: that of the way back, with the cluster's name; empty: none. ``mends``: it ends by itself what keeps a plan
    with steps from being possible; else it is triggered once that is over. ``between``: what stands before a step.
    """
    why, trigger = plan.why.removesuffix("."), f"trigger {dag}" if dag else ""
    steps = [f"{number}. {step.removesuffix('.')}." for number, step in enumerate(plan.steps, 1)]
    if plan.possible:
        how = f"To go back{f' ({trigger})' if dag else ''}" if steps else "There is nothing to undo"
        return between.join([f"{how}: {why}.", *steps])
    if plan.known:
        answer = "It can't go back yet" if steps else "It can't go back"
        then = "To see to that first" if mends else "Once that is over"
    else:
        answer, then = "Whether it can go back is not known", "If it can"
    told = f"{answer}: {why}."
    if steps:
        return between.join([f"{told} {', '.join(filter(None, (then, trigger)))}:", *steps])
    return told if plan.known or not dag else f"{told} {then}, {trigger}."
