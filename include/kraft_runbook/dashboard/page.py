"""The facts as HTML that Airflow's own page takes up: a fragment, in that page's colours. Every text is escaped."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from functools import cache
from urllib.parse import quote

from jinja2 import Environment

from kraft_runbook.dashboard.facts import ClusterFacts, Clusters, GateFact
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


@cache
def _environment() -> Environment:
    """Made once: its templates are compiled then."""
    return templates_of("kraft_runbook.dashboard", _known, clock=_clock, ago=in_words, megabytes=_megabytes)


def _known(value: object) -> object:
    return "not known" if value is None else value


def _clock(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M:%S} UTC"


def _megabytes(size: float | None) -> str:
    return "not known" if size is None else f"{size / 1e6:,.1f} MB"
