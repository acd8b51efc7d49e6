"""What a change of dynamic configurations makes of the values that are set, as brokers do it."""

from __future__ import annotations

from collections.abc import Mapping

from kraft_runbook.cluster.config_changes import Append, ConfigChange, Subtract


def changed(values: Mapping[str, str], changes: Mapping[str, ConfigChange]) -> dict[str, str]:
    found = dict(values)
    for key, change in changes.items():
        there = [each for each in found.pop(key, "").split(",") if each]
        if isinstance(change, Append):
            found[key] = ",".join(dict.fromkeys([*there, *change.entries.split(",")]))
        elif isinstance(change, Subtract):
            found[key] = ",".join(each for each in there if each not in change.entries.split(","))
        elif change is not None:
            found[key] = change
    return found
