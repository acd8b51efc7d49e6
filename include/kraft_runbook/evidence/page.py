"""A run's evidence as one HTML page to file: it needs no network, no script and no other file, and every text in it is
escaped.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from markupsafe import Markup, escape

from kraft_runbook.evidence.course_chart import course_as_html
from kraft_runbook.evidence.curves import Curve, Figure, curves_as_html
from kraft_runbook.evidence.entries import Entry
from kraft_runbook.evidence.proofs import GateProof, describe
from kraft_runbook.evidence.record import EvidenceRecord
from kraft_runbook.evidence.run_report import RunReport, Slowest
from kraft_runbook.evidence.sync_chart import SyncPoint, sync_as_html
from kraft_runbook.evidence.templates import templates_of

WIDTH, LABELS, LANE, BAND = 1000.0, 210.0, 19.0, 26.0
"""Sizes in the drawing's own units: the whole width, the lanes' names, a lane's height, the phase band's height."""
LETTER, LONGEST = 6.6, 40
"""Of who signed: the width of a letter, and the letters of a name that are shown."""
STEPS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200)
"""Seconds between two ticks: the first value that gives at most nine ticks; else whole days."""
DAY = 86400


@dataclass(frozen=True, slots=True)
class Bar:
    """A rectangle of the drawing. ``style``: good, bad, wait, point or a phase's name."""

    x: float
    width: float
    style: str
    title: str


@dataclass(frozen=True, slots=True)
class Signers:
    """Who answered at a gate, beside its bars. ``anchor``: the side of ``x`` on which the words are: start or end."""

    x: float
    anchor: str
    words: str


@dataclass(frozen=True, slots=True)
class Lane:
    """One task group. ``signers``: None where nobody answered."""

    name: str
    y: float
    bars: tuple[Bar, ...]
    signers: Signers | None


@dataclass(frozen=True, slots=True)
class Tick:
    x: float
    label: str


@dataclass(frozen=True, slots=True)
class Chart:
    """The timeline, laid out. All in the drawing's own units. ``words``: what it shows, for who does not see it."""

    width: float
    height: float
    labels: float
    phases: tuple[Bar, ...]
    lanes: tuple[Lane, ...]
    ticks: tuple[Tick, ...]
    words: str


def render_page(
    report: RunReport,
    records: Sequence[EvidenceRecord],
    *,
    made_at: datetime,
    goes_on: bool = False,
    dark: bool = False,
    in_sync: Sequence[SyncPoint] = (),
) -> str:
    """The page. ``records``: the report's records, whose bodies are shown unchanged. ``goes_on``: the run has not ended
    by ``made_at``. ``dark``: light text on a dark page. ``in_sync``: by looks of that time, which are no evidence.
    """
    templates = templates_of(
        "kraft_runbook.evidence",
        _recorded,
        breakable=_breakable,
        clock=_clock,
        course=course_as_html,
        day=_day,
        duration=_duration,
        genuine=describe,
        image=_image,
        slowest=_slowest,
    )
    bodies = [json.dumps(record.body, indent=2, sort_keys=True) for record in records]
    return templates.get_template("evidence.html").render(
        r=report,
        chart=lay_out(report, until=made_at if goes_on else None),
        kinds=_kinds(report),
        bodies=bodies,
        made_at=made_at,
        dark=dark,
        in_sync=sync_as_html(in_sync),
    )


def lay_out(report: RunReport, *, until: datetime | None = None) -> Chart | None:
    """The timeline's layout; None if there is nothing to draw. ``until``: now, where the run goes on: a gate that waits
    for a person is drawn until then.
    """
    if report.began is None or report.ended is None:
        return None
    end = report.ended if until is None else max(until, report.ended)
    began, total = report.began, max((end - report.began).total_seconds(), 1.0)

    def x(at: datetime) -> float:
        return round(LABELS + (WIDTH - LABELS) * min(max((at - began).total_seconds() / total, 0.0), 1.0), 2)

    def bar(start: datetime, end: datetime, style: str, title: str) -> Bar:
        left = min(x(start), WIDTH - 3)
        return Bar(left, round(max(x(end) - left, 3.0), 2), style, title)

    phases = tuple(
        bar(p.began, p.ended, p.phase, f"{p.phase} {_clock(p.began)} to {_clock(p.ended)}") for p in report.phases
    )
    lanes: dict[str, list[Bar]] = {}
    for entry in report.entries:
        if entry.trusted:
            style = "bad" if entry.bad else "good" if entry.seconds else "point"
            lanes.setdefault(_lane(entry), []).append(
                bar(entry.began, entry.at, style, f"{entry.task}: {entry.outcome}, {_clock(entry.at)}. {entry.summary}")
            )
    last_of = {gate.gate: gate for gate in report.gates}
    for gate in report.gates:
        answered = gate.answers[-1].at if gate.answers else None
        if gate.proven_at and (answered or (until and gate is last_of[gate.gate])):
            told = f"gate {gate.gate} {'waited' if answered else 'waits'} for a person"
            waited = bar(gate.proven_at, answered or end, "wait", told)
            lanes.setdefault(f"gate_{gate.gate}", []).insert(0, waited)
    signed = {f"gate_{name}": told for name, gate in last_of.items() if (told := _signed(gate))}
    placed = tuple(
        Lane(name, BAND + 10 + n * LANE, tuple(bars), _beside(bars, signed.get(name, "")))
        for n, (name, bars) in enumerate(lanes.items())
    )
    words = [f"{p.phase} from {_clock(p.began)} to {_clock(p.ended)}" for p in report.phases]
    words += [f"{name.replace('_', ' ')}: {told}" for name, told in signed.items()]
    return Chart(
        width=WIDTH,
        height=BAND + 10 + len(placed) * LANE + 24,
        labels=LABELS,
        phases=phases,
        lanes=placed,
        ticks=_ticks(began, total, x),
        words="; ".join(["Phases and tasks over time, UTC", *words]) + ".",
    )


def _signed(gate: GateProof) -> str:
    """Who answered, in short: the last proof of a gate counts."""
    return ", ".join(("" if a.approved else "refused by ") + (a.by or "nobody named")[:LONGEST] for a in gate.answers)


def _beside(bars: Sequence[Bar], words: str) -> Signers | None:
    """Behind the lane's last bar where there is room, else before its first one, else over its end."""
    if not words:
        return None
    long, ends = LETTER * len(words), max(bar.x + bar.width for bar in bars)
    if ends + 4 + long <= WIDTH:
        return Signers(ends + 4, "start", words)
    begins = min(bar.x for bar in bars)
    return Signers(begins - 4 if begins - 4 - long >= LABELS else WIDTH, "end", words)


def _slowest(slowest: Sequence[Slowest]) -> Markup:
    """Of a workload's acknowledgements, over the run."""
    if len(slowest) < 2:
        return Markup()
    every = (slowest[1].at - slowest[0].at).total_seconds()
    curve = Curve("slowest acknowledgement in ms", [(each.at, each.milliseconds) for each in slowest], unknown="none")
    caption = "Slowest acknowledgement in ms; nothing is drawn where none came"
    return curves_as_html([curve], Figure(caption, 1.5 * every, peaks=True))


def _lane(entry: Entry) -> str:
    return entry.task.partition(".")[0] or "no task"


def _ticks(began: datetime, total: float, x: Callable[[datetime], float]) -> tuple[Tick, ...]:
    step = next((s for s in STEPS if total / s <= 9), DAY * math.ceil(total / DAY / 9))
    first = began.replace(hour=0, minute=0, second=0, microsecond=0)
    count = int((began - first).total_seconds() // step) + 1
    marks = [first + timedelta(seconds=step * n) for n in range(count, count + 10)]
    form = "%H:%M:%S" if step < 60 else "%H:%M" if total < DAY else "%m-%d %H:%M"
    return tuple(Tick(x(at), at.strftime(form)) for at in marks if (at - began).total_seconds() <= total)


def _kinds(report: RunReport) -> tuple[str, ...]:
    """Every kind that a comparison counted, in the order of their first mention."""
    return tuple(dict.fromkeys(count.kind for parity in report.parity for count in parity.counts))


def _breakable(text: str) -> Markup:
    """A task's or kind's name that may be broken where its words end."""
    return Markup(str(escape(text)).replace("_", "_<wbr>").replace(".", ".<wbr>"))  # noqa: S704 - escaped first


def _image(svg: str) -> str:
    """A drawing as the address of an image, in which nothing of it is run or read by the page."""
    return "data:image/svg+xml;base64," + base64.b64encode(svg.encode()).decode()


def _recorded(value: object) -> object:
    """What the page shows for a value: a record of an older version may lack it."""
    return "not recorded" if value is None else value


def _clock(at: datetime) -> str:
    return f"{at:%H:%M:%S}"


def _day(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M:%S} UTC"


def _duration(seconds: float) -> str:
    """A duration in words: 4.2 s, 3 min 05 s, 2 h 07 min."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, left = divmod(round(seconds), 60)
    return f"{minutes} min {left:02d} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02d} min"
