"""The facts as HTML that Airflow's own page takes up: a fragment, in that page's colours. Every text is escaped."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from functools import cache, partial
from urllib.parse import quote

from jinja2 import Environment
from markupsafe import Markup

from kraft_runbook.dashboard.facts import ClusterFacts, Clusters, GateFact, HourFact, LaneFact, SpanFact
from kraft_runbook.dashboard.last_hour import BEHIND, DOWN, MOST, NOT_READ
from kraft_runbook.dashboard.read_facts import in_words
from kraft_runbook.evidence.course_chart import course_as_html
from kraft_runbook.evidence.sync_chart import sync_as_html
from kraft_runbook.evidence.templates import templates_of


@dataclass(frozen=True, slots=True)
class Links:
    """Where the page's links go. ``airflow``: the path below which Airflow's pages are, such as "" or "/airflow";
    ``page``: the page of all clusters; ``evidence``: below which a run's evidence is.
    """

    airflow: str
    page: str
    evidence: str

    def run(self, dag: str, run_id: str) -> str:
        """Airflow's page of the run."""
        return f"{self.airflow}/dags/{quote(dag, safe='')}/runs/{quote(run_id, safe='')}"

    def gate(self, gate: GateFact) -> str:
        """Where a person answers; the page of the run where nobody is asked. The task is mapped over the gate's proofs
        (``ApprovalGate``).
        """
        run = self.run(gate.dag, gate.run_id)
        if gate.task is None:
            return run
        return f"{run}/tasks/{quote(gate.task, safe='')}/mapped/{gate.map_index}/required_actions"

    def cluster(self, name: str) -> str:
        """The page of one cluster."""
        return f"{self.page}?cluster={quote(name, safe='')}"

    def evidence_of(self, dag: str, run_id: str) -> str:
        """The page of a run's evidence."""
        return f"{self.evidence}/{quote(dag, safe='')}/{quote(run_id, safe='')}"


def render_clusters(all_of_them: Clusters, links: Links) -> str:
    """Every cluster in a few lines, each with a link to its own page."""
    return _environment().get_template("clusters.html").render(all=all_of_them, links=links, now=all_of_them.made_at)


def render_cluster(cluster: ClusterFacts, links: Links, *, now: datetime) -> str:
    """One cluster, whole."""
    return _environment().get_template("cluster.html").render(c=cluster, links=links, now=now)


def render_words(words: str) -> str:
    """A sentence in the place of the page."""
    return _environment().get_template("words.html").render(words=words)


@dataclass(frozen=True, slots=True)
class Bar:
    """A span in the picture of a lane, which is ``WIDE`` wide. ``style``: a class of the page's style."""

    x: float
    width: float
    style: str
    words: str


WIDE, NARROW = 1000, 2.0
"""Of a picture, and of the narrowest bar in it."""
STYLES = {BEHIND: "behind", DOWN: "down", NOT_READ: "unread"}
SAID = 4
"""Spans of a lane that are told in words: the last ones."""


def bars(lane: LaneFact, hour: HourFact) -> list[Bar]:
    """The lane's picture. Two states that follow each other differ in their style. Changes that are too close for a bar
    each are one bar.
    """
    a_second = WIDE / max(1.0, (hour.until - hour.since).total_seconds())
    found: list[Bar] = []
    last, turn = "", 0
    for span in lane.spans:
        if span.state not in STYLES and span.state != last:
            last, turn = span.state, 1 - turn
        x = min((span.began - hour.since).total_seconds() * a_second, WIDE - NARROW)
        ends = max((span.ended - hour.since).total_seconds() * a_second, x + NARROW)
        style = STYLES.get(span.state, ("other", "one")[turn])
        if found and x < found[-1].x + found[-1].width - 0.1:
            before = found.pop()
            x, style = before.x, before.style if ends - x < 2 * NARROW else style
            found.append(Bar(x, round(max(ends - x, before.width), 1), style, "several changes"))
        else:
            found.append(Bar(round(x, 1), round(ends - x, 1), style, _told(span)))
    return found


def in_short(lane: LaneFact) -> str:
    """The lane in words, the last spans of many."""
    left = len(lane.spans) - SAID
    told = "; ".join(_told(span) for span in lane.spans[-SAID:])
    return f"{left} before, then {told}" if left > 0 else told or "nothing"


def _told(span: SpanFact) -> str:
    most = f", up to {span.most} replicas" if span.most is not None else ""
    return f"{span.state}{most}, {span.began:%H:%M:%S} to {span.ended:%H:%M:%S}"


@cache
def _environment() -> Environment:
    """Made once: its templates are compiled then."""
    return templates_of(
        "kraft_runbook.dashboard",
        _known,
        clock=_clock,
        ago=in_words,
        course=course_as_html,
        in_sync=partial(sync_as_html, most=MOST),
        megabytes=_megabytes,
        bars=bars,
        in_short=in_short,
    )


def _known(value: object) -> object:
    return "not known" if value is None else value


def _clock(at: datetime) -> Markup:
    """A moment that is not broken over two lines."""
    return Markup("<time>{}</time>").format(f"{at:%Y-%m-%d %H:%M:%S} UTC")


def _megabytes(size: float | None) -> str:
    return "not known" if size is None else f"{size / 1e6:,.1f} MB"
