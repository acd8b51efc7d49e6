"""The limits of the cluster file, against what was measured. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from kraft_runbook.cluster.rehearsal_settings import RehearsalLimits
from kraft_runbook.rehearsal.verdict import Finding, Measured, Verdict

BUSY = 2.0
"""A load of so many times the cores: seconds measured beside it are those of the others."""


def exceeded(
    measured: Measured, limits: RehearsalLimits, *, heap_mib: int | None, last_copy: float | None
) -> Iterator[Finding]:
    """Each limit that does not hold. ``heap_mib``: of ``controller_heap``; ``last_copy``: seconds of the last rehearsal
    that PASSED, on as many partitions or fewer. A limit on a number that was not measured is INCONCLUSIVE; so is one on
    seconds over a load of twice the cores.
    """
    yield from _seconds("the metadata copy", measured.copy, limits.copy_seconds, measured)
    yield from _seconds("the window of the way back", measured.window, limits.window, measured)
    if limits.slower is not None and last_copy is not None:
        most = limits.slower * last_copy
        yield from _seconds(f"the metadata copy ({last_copy:.1f} s the last time)", measured.copy, most, measured)
    if limits.controller_memory is not None:
        yield from _memory(measured.controller_rss, limits.controller_memory, heap_mib)


def _seconds(what: str, took: float | None, most: float | None, measured: Measured) -> Iterator[Finding]:
    if most is None:
        return
    if took is None:
        yield Finding(Verdict.INCONCLUSIVE, f"{what} was not measured; the limit is {most:g} s")
    elif took > most:
        said = f"{what} took {took:.1f} s; the limit is {most:.3g} s"
        if measured.load is None or measured.cores is None:
            yield Finding(Verdict.INCONCLUSIVE, f"{said}, and the machine's load was not measured")
        elif measured.load > BUSY * measured.cores:
            yield Finding(
                Verdict.INCONCLUSIVE, f"{said}, but the load was {measured.load:.0f} on {measured.cores} cores"
            )
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
