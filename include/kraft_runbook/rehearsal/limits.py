"""The limits of the cluster file, against what was measured. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime

from kraft_runbook.cluster.rehearsal_settings import RehearsalLimits
from kraft_runbook.evidence.body import number, whole
from kraft_runbook.evidence.rehearsal_record import OnRecord
from kraft_runbook.rehearsal.verdict import Finding, Measured, Verdict

BUSY = 2.0
"""A load of so many times the cores: seconds measured beside it are those of the others."""
THROTTLED = BUSY - 1
"""Of a CPU quota: where its processes waited for so much more than it gives, they wanted ``BUSY`` times its cores."""
LEAST_SHARE = 0.8
"""Of this one's partitions: a copy of fewer is another size, and no measure of this one."""


def why_busy(load: float, cores: float, throttled: float | None) -> str:
    """Why seconds are not the processes' own: the machine's load, or the CPU quota (``Taken.throttled``). Empty where
    nothing says so.
    """
    if load > BUSY * cores:
        return f"the load then was {load:.0f} on {cores:g} cores"
    if throttled is not None and throttled > THROTTLED:
        return f"the CPU quota of {cores:g} cores was used up: {throttled:.0%} more was waited for"
    return ""


def exceeded(
    measured: Measured, limits: RehearsalLimits, *, heap_mib: int | None, passed: Iterable[OnRecord]
) -> Iterator[Finding]:
    """Each limit that does not hold. ``heap_mib``: of ``controller_heap``; ``passed``: the earlier rehearsals that
    PASSED, of which the newest comparable one counts. A limit on a number that was not measured is INCONCLUSIVE; so is
    one on seconds in which the load was over twice the cores, or a CPU quota was used up.
    """
    cores = measured.cores
    in_copy, in_window = (
        (measured.copy_load, measured.copy_throttled),
        (measured.window_load, measured.window_throttled),
    )
    yield from _seconds("the metadata copy", measured.copy, limits.copy_seconds, in_copy, cores)
    yield from _seconds("the window of the way back", measured.window, limits.window, in_window, cores)
    if limits.slower is not None and (last := _comparable(measured, passed)) is not None:
        at, seconds, partitions = last
        told = f"the last to compare with: {seconds:.1f} s for {partitions:,} partitions on {at:%Y-%m-%d %H:%M} UTC"
        now = "" if measured.partitions is None else f" of {measured.partitions:,} partitions"
        yield from _seconds(f"the metadata copy{now} ({told})", measured.copy, limits.slower * seconds, in_copy, cores)
    if limits.controller_memory is not None:
        yield from _memory(measured.controller_rss, limits.controller_memory, heap_mib)


def _comparable(measured: Measured, passed: Iterable[OnRecord]) -> tuple[datetime, float, int] | None:
    """When the newest one was that had as many partitions or a little fewer, and whose seconds are its own and not
    those of a busy machine; with the seconds of its copy, and its partitions. A record from before the copy had a load
    of its own tells the highest of all.
    """
    for last in sorted(passed, key=lambda each: each.at, reverse=True):
        then = last.told.measured
        copy, partitions = number(then, "copy"), whole(then, "partitions")
        load, cores = number(then, "copy_load" if "copy_load" in then else "load"), number(then, "cores")
        if copy is None or partitions is None or load is None or cores is None or measured.partitions is None:
            continue
        its_own = not why_busy(load, cores, number(then, "copy_throttled"))
        if LEAST_SHARE * measured.partitions <= partitions <= measured.partitions and its_own:
            return last.at, copy, partitions
    return None


def _seconds(
    what: str,
    took: float | None,
    most: float | None,
    beside: tuple[float | None, float | None],
    cores: float | None,
) -> Iterator[Finding]:
    """``beside``: the load in those seconds, and what was throttled."""
    if most is None:
        return
    if took is None:
        yield Finding(Verdict.INCONCLUSIVE, f"{what} was not measured; the limit is {most:g} s")
    elif took > most:
        said = f"{what} took {took:.1f} s; the limit is {most:.3g} s"
        load, throttled = beside
        if load is None or cores is None:
            yield Finding(Verdict.INCONCLUSIVE, f"{said}, and the machine's load then was not measured")
        elif busy := why_busy(load, cores, throttled):
            yield Finding(Verdict.INCONCLUSIVE, f"{said}, but {busy}")
        else:
            yield Finding(Verdict.FAILED, said)


def _memory(rss: int | None, share: float, heap_mib: int | None) -> Iterator[Finding]:
    if heap_mib is None:
        yield Finding(
            Verdict.INCONCLUSIVE,
            "limits.controller_memory is a share of controller_heap, and the cluster file names none",
        )
    elif rss is None:
        yield Finding(Verdict.INCONCLUSIVE, "the controllers' memory was not measured, and has a limit")
    elif rss > share * heap_mib:
        yield Finding(
            Verdict.FAILED, f"a controller had {rss} MiB resident: over {share:.0%} of its heap of {heap_mib} MiB"
        )
