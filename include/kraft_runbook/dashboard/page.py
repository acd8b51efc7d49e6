"""The facts as HTML that Airflow's own page takes up: a fragment, in that page's colours. Every text is escaped."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from functools import cache
from urllib.parse import quote

from jinja2 import Environment

from kraft_runbook.dashboard.facts import ClusterFacts, Clusters, GateFact, HourFact, LaneFact, SpanFact
from kraft_runbook.dashboard.read_facts import in_words
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


WIDE = 1000
STYLES = {"out of sync": "behind", "does not run": "down", "not read": "unread"}
SAID = 4
"""Spans of a lane that are told in words: the last ones."""


def bars(lane: LaneFact, hour: HourFact) -> list[Bar]:
    """The lane's picture. Two states that follow each other differ in their style."""
    whole = max(1.0, (hour.until - hour.since).total_seconds())
    found = []
    for number, span in enumerate(lane.spans):
        x = (span.began - hour.since).total_seconds() / whole * WIDE
        width = max(2.0, (span.ended - span.began).total_seconds() / whole * WIDE)
        style = STYLES.get(span.state, ("one", "other")[number % 2])
        found.append(Bar(round(min(x, WIDE - 2.0), 1), round(width, 1), style, _told(span)))
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
        megabytes=_megabytes,
        bars=bars,
        in_short=in_short,
    )


def _known(value: object) -> object:
    return "not known" if value is None else value


def _clock(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M:%S} UTC"


def _megabytes(size: float | None) -> str:
    return "not known" if size is None else f"{size / 1e6:,.1f} MB"
