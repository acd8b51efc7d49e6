"""In which keys a file on disk differs from the one that would be rendered."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kraft_runbook.cluster.naming import some
from kraft_runbook.cluster.sensitive import HIDDEN, is_sensitive
from kraft_runbook.runbook.check_results import SAMPLE


def render_bound(bound: Iterable[tuple[str, str]]) -> str:
    """``bound``: names and hosts of listeners."""
    keys = ", ".join(f"bind_host: '{host}' at {name}" for name, host in bound)
    return (
        "listeners: set under brokers[].listeners[] of the cluster file the address that the broker binds to, as in its"
        f" file ({keys}; empty: every address); of a controller listener under brokers[].controller"
    )


def bound_elsewhere(on_disk: str, rendered: str) -> dict[str, str]:
    """By name, the host of each listener in the file for which another host is rendered; empty if the two differ in
    more than hosts.
    """
    there, here = _listeners(on_disk), _listeners(rendered)
    if [(name, port) for name, _, port in there] != [(name, port) for name, _, port in here]:
        return {}
    return {name: host for (name, host, _), (_, other, _) in zip(there, here, strict=True) if host != other}


def _listeners(text: str) -> list[tuple[str, str, str]]:
    """Name, host (bare) and port of each."""
    found = []
    for each in text.split(","):
        name, _, place = each.strip().partition("://")
        host, _, port = place.rpartition(":")
        found.append((name, host.removeprefix("[").removesuffix("]"), port))
    return found


def differing_keys(on_disk: Mapping[str, str], rendered: Mapping[str, str]) -> tuple[str, ...]:
    """The differing keys, with their values if these may be shown: ``a (file: 1, rendered: 2)``, ``b (only in the
    file)``, ``c (file: '1 ', rendered: '1')``.
    """
    found = []
    for key in sorted(on_disk.keys() | rendered.keys()):
        if key not in rendered:
            found.append(f"{key} (only in the file)")
        elif key not in on_disk:
            found.append(f"{key} (not in the file)")
        elif not is_hidden(key, on_disk[key], rendered[key]) and on_disk[key] != rendered[key]:
            there, here = on_disk[key], rendered[key]
            if there.strip() == here.strip():  # blanks at an end are seen in quotes alone
                there, here = repr(there), repr(here)
            found.append(f"{key} (file: {there}, rendered: {here})")
    return tuple(found)


def is_hidden(key: str, on_disk: str | None, rendered: str | None) -> bool:
    """Whether both have the property and its value is a secret, which is not compared here."""
    if on_disk is None or rendered is None:
        return False
    return is_sensitive(key) or (on_disk == HIDDEN and rendered.startswith("${"))


def capped(items: tuple[str, ...]) -> str:
    """The first items, and the number of the others."""
    return some(items, 2 * SAMPLE)
