"""The page of ``make demo-groups``: each step with who owned what, and the proof at the end, as a run's evidence is
shown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from kraft_runbook.cluster.phases import Phase
from kraft_runbook.evidence.kind import Kind
from kraft_runbook.evidence.kinds import Closed, Moves
from kraft_runbook.evidence.page import render_page
from kraft_runbook.evidence.record import EvidenceRecord, make_record
from kraft_runbook.evidence.run_report import make_report
from kraft_runbook.groups.proof import ConsumptionProof
from kraft_runbook.quorum import svg

DAG = RUN = "demo-groups"
ROW, BOX, NAMES = 26, 22, 150
"""Pixels: a member's height, a partition's size, the width of the names."""
KINDS = {"old": "#e3d5b8", "migrating": "#a9cfe3", "new": "#a8d5b5"}
"""The colour of a member's partitions, by how its name begins."""


def drawing(of_member: Mapping[str, Sequence[str]], partitions: int) -> str:
    """Who owns what: a row for each member, with a box for each of its partitions in that partition's place."""
    parts = []
    for row, (member, owned) in enumerate(sorted(of_member.items())):
        top = 6 + row * ROW
        parts.append(svg.text(8, top + 16, member))
        colour = next((each for kind, each in KINDS.items() if member.startswith(kind)), "#d9d9d9")
        for partition in owned:
            left = NAMES + int(partition) * (BOX + 4)
            parts.append(f'<rect x="{left}" y="{top}" width="{BOX}" height="{BOX}" rx="3" fill="{colour}"/>')
            parts.append(svg.text(left + BOX / 2, top + 16, partition, anchor="middle"))
    return svg.document(NAMES + partitions * (BOX + 4) + 8, 12 + max(1, len(of_member)) * ROW, parts)


@dataclass
class Page:
    """What is shown, in its order."""

    cluster: str
    records: list[EvidenceRecord] = field(default_factory=list)

    def step(self, number: int, title: str, told: str, of_member: Mapping[str, Sequence[str]], partitions: int) -> None:
        """A step of the example, once the group has settled. ``told``: the same in text."""
        picture = drawing(of_member, partitions)
        self._add("example", Moves(what=f"{number} · {title}", partitions=partitions, told=told, picture=picture))

    def end(self, proof: ConsumptionProof | None) -> None:
        """``proof``: None where the demo did not get so far."""
        if proof is not None:
            self._add("proof", Moves(what="every record is accounted for", partitions=None, told=proof.render_text()))
        holds = proof is not None and proof.holds
        failed = () if holds else ("proof" if proof is not None else "example",)
        self._add("end", Closed(phase=Phase.ZOOKEEPER.value, succeeded=holds, failed=failed, brokers_in_kraft=0))

    def html(self) -> str:
        """The page, which needs no other file."""
        return render_page(make_report(RUN, self.records, None), self.records, made_at=datetime.now(UTC))

    def _add(self, task: str, kind: Kind) -> None:
        body: dict[str, Any] = {"cluster": self.cluster, "dag": DAG, "run": RUN, "task": task, **kind.body()}
        before = self.records[-1] if self.records else None
        self.records.append(make_record(before, body, at=datetime.now(UTC)))
