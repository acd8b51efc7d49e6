"""What an operator declares about one cluster, validated with all problems at once (``cluster_file`` reads it from
YAML).
"""

from __future__ import annotations

from pydantic import model_validator

from kraft_runbook.cluster.contradictions import contradictions
from kraft_runbook.cluster.declaration import ClusterDeclaration


class ClusterSpec(ClusterDeclaration):
    """One cluster, as declared. The single source of hosts, ids and ports; what is live is compared with it."""

    @model_validator(mode="after")
    def _consistent(self) -> ClusterSpec:
        problems = list(contradictions(self))
        if problems:
            raise ValueError("\n".join(problems))
        return self
