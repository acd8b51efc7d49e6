"""The page of the situations."""

from __future__ import annotations

import re

from kraft_runbook.migration.situation import Answer
from kraft_runbook.migration.situations import WITH_ZOOKEEPER
from kraft_runbook.migration.situations_in_kraft import WITHOUT_ZOOKEEPER


def render_situations() -> str:
    """The tables of docs/interruptions.md: which situations ``explain`` tells apart, and what it says."""
    lines = []
    for title, situations in (
        ("Where the cluster file names ZooKeeper", WITH_ZOOKEEPER),
        ("Where it names none", WITHOUT_ZOOKEEPER),
    ):
        lines += [f"{title}:", "", "| situation | seen as | it means | it waits for | forward, now |"]
        lines += ["|---|---|---|---|---|"]
        for each in situations:
            answers = (each.means, each.waits_for, each.forward)
            cells = (each.name, each.seen_as, *(_in_the_docs(answer) for answer in answers))
            lines.append(f"| {' | '.join(cells)} |")
        lines.append("")
    return "\n".join(lines)


IN_THE_DOCS = {
    "missing": "which ones, and whether they are down or hang",
    "lost": "what shows it",
    "led_unread": "which controller leads, and why nothing was read",
    "silent": "node N",
    "addresses": "their addresses",
    "behind": "broker N is not in KRaft mode",
    **dict.fromkeys(("came_back", "down", "silent_now", "unflagged", "controllers"), "controller N"),
    **dict.fromkeys(
        ("ended", "not_in_kraft", "left_behind", "mostly_out_of_sync", "may_be_cut_off", "brokers"), "broker N"
    ),
}


def _in_the_docs(answer: Answer | None) -> str:
    if answer is None:
        return "as below"
    words = {name: IN_THE_DOCS.get(name, "N") for name in re.findall(r"{(\w+)}", answer.text)}
    return answer.text.format_map(words).replace("|", "\\|")
