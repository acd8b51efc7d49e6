"""What a cluster file says of many nodes at once: ranges of ids and hosts, and defaults for all brokers or controllers.
Pure.

``id: 1-40`` with ``host: kafka[01:40].example.org`` (Ansible's notation) stands for forty nodes. ``broker_defaults``
and ``controller_defaults`` give each node the keys that it does not name itself. ``{id}``, ``{id:02}`` and ``{host}``
in the texts of both are filled for each node.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

KINDS = {"brokers": "broker_defaults", "controllers": "controller_defaults"}
"""The lists of nodes, each with the key of its defaults."""
MOST = 1000
"""The most nodes of one range: beyond it a mistake is likelier than a cluster."""
_IDS = re.compile(r"\s*(\d+)\s*-\s*(\d+)\s*")
_HOSTS = re.compile(r"\[(\d+):(\d+)\]")
_FILLED = re.compile(r"(?<!\$)\{(?:id(?::0?([1-9]))?|(host))\}")

Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Expanded:
    """The file's data with one entry a node, and where each was written. ``problems``: place and text of what is not
    understood; such an entry stays as it is.
    """

    data: dict[str, Any]
    written: Mapping[str, tuple[tuple[int, frozenset[str]], ...]] = field(default_factory=dict)
    """By list, one entry a node: its place in the list, and what it has from the defaults alone."""
    problems: tuple[tuple[Path, str], ...] = ()

    def place(self, path: Path) -> Path:
        """The path in the file as it is written, of a path in ``data``."""
        if len(path) < 2 or path[0] not in self.written or not isinstance(path[1], int):
            return path
        nodes = self.written[str(path[0])]
        if path[1] >= len(nodes):
            return path
        at, inherited = nodes[path[1]]
        keys = {".".join(map(str, path[2:])), *map(str, path[2:3])}
        return (KINDS[str(path[0])], *path[2:]) if keys & inherited else (path[0], at, *path[2:])


def expand(data: Mapping[str, Any]) -> Expanded:
    """Ranges become nodes, and each node gets its defaults. What is no list or mapping stays for the validation."""
    whole = {key: value for key, value in data.items() if key not in KINDS.values()}
    written: dict[str, tuple[tuple[int, frozenset[str]], ...]] = {}
    problems: list[tuple[Path, str]] = []
    for kind, defaults_key in KINDS.items():
        defaults = data.get(defaults_key, {})
        if not isinstance(defaults, Mapping):
            problems.append(((defaults_key,), "a mapping of keys is needed, as one node has them"))
            defaults = {}
        if "id" in defaults:
            problems.append(((defaults_key, "id"), f"each node has an id of its own; name it under {kind}"))
        if not isinstance(data.get(kind), list):
            continue
        nodes: list[Any] = []
        places: list[tuple[int, frozenset[str]]] = []
        for at, entry in enumerate(data[kind]):
            try:
                found, inherited = list(_nodes(entry, defaults)), _named(defaults) - _named(entry)
            except ValueError as error:
                problems.append(((kind, at), str(error)))
                found, inherited = [entry], frozenset()
            nodes += found
            places += [(at, inherited)] * len(found)
        whole[kind], written[kind] = nodes, tuple(places)
    return Expanded(whole, written, tuple(problems))


def _named(entry: Any) -> frozenset[str]:
    """The keys that an entry or the defaults name; of properties, which are joined, each one."""
    if not isinstance(entry, Mapping):
        return frozenset()
    properties = entry.get("properties")
    if not isinstance(properties, Mapping):
        return frozenset(map(str, entry))
    return frozenset({str(key) for key in entry if key != "properties"} | {f"properties.{key}" for key in properties})


def _nodes(entry: Any, defaults: Mapping[str, Any]) -> Iterator[Any]:
    """The nodes that an entry stands for. Raises ValueError."""
    if not isinstance(entry, Mapping):
        yield entry
        return
    ids = entry.get("id")
    if not isinstance(ids, str) or "-" not in ids:
        yield {**filled(defaults, ids, _host(entry, defaults, ids)), **_with_properties(entry, defaults, ids)}
        return
    match = _IDS.fullmatch(ids)
    if match is None or int(match.group(1)) > int(match.group(2)):
        raise ValueError(f"id: {ids!r} is no range of ids; write the first and the last, as 1-40")
    first, last = int(match.group(1)), int(match.group(2))
    if last - first >= MOST:
        raise ValueError(f"id: {ids} are {last - first + 1} nodes; a range has at most {MOST}")
    template = str(entry.get("host", defaults.get("host", "")))
    hosts = _hosts(template, first, last)
    for node_id, host in zip(range(first, last + 1), hosts, strict=True):
        own = filled({**entry, "id": node_id, "host": host}, node_id, host)
        yield {**filled(defaults, node_id, host), **own, **_properties(own, defaults, node_id, host)}


def _hosts(template: str, first: int, last: int) -> list[str]:
    """One host a node of a range. Raises ValueError where they would not differ, or are not as many."""
    match = _HOSTS.search(template)
    if match is None:
        if first != last and not _FILLED.search(template):
            raise ValueError(
                f"host: {template!r} would be the host of {last - first + 1} nodes; write a range as long as that of"
                f" the ids, as kafka[{first:02}:{last:02}].example.org"
            )
        return [_fill(template, node_id, "") for node_id in range(first, last + 1)]
    begin, end = int(match.group(1)), int(match.group(2))
    if end - begin != last - first:
        raise ValueError(
            f"host: {template} are {max(0, end - begin + 1)} hosts for {last - first + 1} ids ({first}-{last}); make"
            " both ranges the same length"
        )
    width = len(match.group(1))
    return [f"{template[: match.start()]}{n:0{width}}{template[match.end() :]}" for n in range(begin, end + 1)]


def _host(entry: Mapping[str, Any], defaults: Mapping[str, Any], node_id: Any) -> str:
    return str(entry["host"]) if "host" in entry else _fill(str(defaults.get("host", "")), node_id, "")


def _with_properties(entry: Mapping[str, Any], defaults: Mapping[str, Any], node_id: Any) -> dict[str, Any]:
    return {**entry, **_properties(entry, defaults, node_id, _host(entry, defaults, node_id))}


def _properties(entry: Mapping[str, Any], defaults: Mapping[str, Any], node_id: Any, host: str) -> dict[str, Any]:
    """Properties join those of the defaults, key by key; any other key takes their place."""
    own, common = entry.get("properties"), defaults.get("properties")
    if not isinstance(own, Mapping) or not isinstance(common, Mapping):
        return {}
    return {"properties": {**filled(common, node_id, host), **own}}


def filled(value: Any, node_id: Any, host: str) -> Any:
    """The value with ``{id}``, ``{id:02}`` and ``{host}`` filled in its texts."""
    if isinstance(value, Mapping):
        return {key: filled(each, node_id, host) for key, each in value.items()}
    if isinstance(value, list):
        return [filled(each, node_id, host) for each in value]
    return _fill(value, node_id, host) if isinstance(value, str) else value


def _fill(text: str, node_id: Any, host: str) -> str:
    def one(match: re.Match[str]) -> str:
        if match.group(2):
            return host
        return str(node_id).zfill(int(match.group(1) or 0))

    return _FILLED.sub(one, text)
