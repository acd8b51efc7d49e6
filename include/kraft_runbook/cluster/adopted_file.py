"""The text of an adopted cluster file: short, by ranges and defaults; comments tell the operator the rest. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import yaml

from kraft_runbook.cluster.adoption import Adopted
from kraft_runbook.cluster.node_ranges import KINDS, MOST, filled

_BLOCKS = ("broker_properties", "broker_properties_in_kraft", "controller_properties", "secrets")
_WIDTH = 120
_PADDING = "0{0,7}"
_TRIED = 5
"""Templates of one key that are tried: more of them mean that the nodes have no common one."""


def render_adopted(adopted: Adopted, *, source: str) -> str:
    """The cluster file. ``source``: where the brokers were named."""
    lines = [
        f"Made by kraft-runbook adopt from {source} and the brokers' own files. Read it, then run the preflight.",
        "Secrets' values stayed on the hosts, where a property's name or value tells one. Give each in its variable.",
        *(f"  {name}: {key}" for key, name in adopted.secrets.items()),
        *(("Where hosts differ in such a value, see 'Secrets' in docs/cluster-file.md.",) if adopted.secrets else ()),
        *(("Look at:",) if adopted.notes else ()),
        *(f"  - {note}" for note in adopted.notes),
    ]
    text = "".join(f"# {_one_line(line)}\n" for line in lines)
    for key, value in adopted.data.items():
        if key in KINDS:
            defaults, entries = _shortened(value)
            text += _dumped(KINDS[key], defaults) if defaults else ""
            text += _dumped(key, entries)
        else:
            text += _dumped(key, value)
    return text


def _one_line(text: str) -> str:
    return "".join(each if each.isprintable() else repr(each)[1:-1] for each in text)


def _dumped(key: str, value: Any) -> str:
    if key in _BLOCKS and not value:
        return ""
    if key == "secrets":
        return "secrets:\n" + "".join(f"  {_flow(name)}: {_flow(reference)}\n" for name, reference in value.items())
    if isinstance(value, list) and all(isinstance(each, Mapping) for each in value):
        return f"{key}:\n" + "".join(_entry(_scalars(each)) for each in value)
    if not isinstance(value, Mapping | list):
        return f"{key}: {_flow(value)}\n"
    style = False if key in _BLOCKS else None
    return str(yaml.safe_dump(_scalars({key: value}), default_flow_style=style, sort_keys=False, width=_WIDTH))


def _entry(value: Any) -> str:
    """One node: on a line where it fits."""
    line = f"  - {_flow(value)}\n"
    if len(line) <= _WIDTH:
        return line
    block = yaml.safe_dump([value], default_flow_style=None, sort_keys=False, width=_WIDTH - 2)
    return "".join(f"  {each}\n" for each in str(block).splitlines())


def _flow(value: Any) -> str:
    text = str(yaml.safe_dump(value, default_flow_style=True, sort_keys=False, width=10**6))
    return text.removesuffix("\n").removesuffix("\n...")


def _scalars(value: Any, of_properties: bool = False) -> Any:
    """Numbers and truth values of properties without quotes, where they come back as the same text."""
    if isinstance(value, Mapping):
        return {key: _scalars(each, of_properties or "properties" in str(key)) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_scalars(each) for each in value]
    if of_properties and isinstance(value, str):
        if value in ("true", "false"):
            return value == "true"
        if re.fullmatch(r"0|-?[1-9]\d{0,17}", value):
            return int(value)
    return value


def _shortened(nodes: Sequence[Mapping[str, Any]]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The defaults, and the nodes without what these say; nodes that follow each other are one entry.

    A text that holds a node's id or host becomes a default too, with a placeholder, where it is filled to the same text
    again.
    """
    flat = [
        {**each, **{("properties", key): value for key, value in each.get("properties", {}).items()}} for each in nodes
    ]
    common: dict[Any, Any] = {}
    for key in flat[0] if len(flat) > 1 else ():
        if key in ("id", "host", "rack", "properties") or not all(key in each for each in flat):
            continue
        template, times = _commonest([each[key] for each in flat], nodes)
        if times == len(nodes) or (times > 1 and not isinstance(key, tuple)):
            common[key] = template
    entries = []
    for node, each in zip(nodes, flat, strict=True):
        own = {key: value for key, value in each.items() if key not in common or _as_filled(common[key], node) != value}
        properties = {key[1]: value for key, value in own.items() if isinstance(key, tuple)}
        entry = {key: value for key, value in own.items() if not isinstance(key, tuple) and key != "properties"}
        entries.append(entry | ({"properties": properties} if properties else {}))
    defaults = {key: value for key, value in common.items() if not isinstance(key, tuple)}
    of_properties = {key[1]: value for key, value in common.items() if isinstance(key, tuple)}
    return defaults | ({"properties": of_properties} if of_properties else {}), list(_in_ranges(entries))


def _template(value: Any, node: Mapping[str, Any]) -> Any:
    """The value with placeholders for the node's host and id, where these fill it to the same value again."""
    if isinstance(value, Mapping):
        return {key: _template(each, node) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_template(each, node) for each in value]
    if not isinstance(value, str):
        return value

    def placeholder(match: re.Match[str]) -> str:
        digits = match.group()
        return "{id}" if digits == str(node["id"]) else f"{{id:0{len(digits)}}}"

    text = value.replace(str(node["host"]), "{host}")
    text = re.sub(rf"(?<![\d{{:]){_PADDING}{node['id']}(?!\d)", placeholder, text)
    return text if filled(text, node["id"], str(node["host"])) == value else value


def _commonest(values: Sequence[Any], nodes: Sequence[Mapping[str, Any]]) -> tuple[Any, int]:
    """The template that most values are filled from, and how many. (01 is id 1 in two digits, 10 may be either.)"""
    made = [(_flow(each), each) for each in map(_template, values, nodes)]
    templates = dict(made)
    counts = Counter(text for text, _ in made).most_common(_TRIED)
    found = [
        (sum(_as_filled(templates[text], node) == value for value, node in zip(values, nodes, strict=True)), text)
        for text, _ in counts
    ]
    times, text = max(found, key=lambda each: each[0])
    return templates[text], times


def _as_filled(template: Any, node: Mapping[str, Any]) -> Any:
    return filled(template, node["id"], str(node["host"]))


def _without_mappings(value: Any) -> str:
    """The texts of a value, in which braces would be filled."""
    if isinstance(value, Mapping):
        return " ".join(_without_mappings(each) for each in value.values())
    return " ".join(map(_without_mappings, value)) if isinstance(value, list | tuple) else str(value)


def _in_ranges(entries: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    run: list[dict[str, Any]] = []
    for each in entries:
        if run and len(run) < MOST and _follows(run[-1], each):
            run.append(each)
            continue
        if run:
            yield _range(run)
        run = [each]
    if run:
        yield _range(run)


def _follows(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether ids and hosts count on by one, and all else is the same, without a brace that a range would fill."""
    rest = [{key: value for key, value in each.items() if key not in ("id", "host")} for each in (one, other)]
    before, after = _numbered(one["host"]), _numbered(other["host"])
    if other["id"] != one["id"] + 1 or rest[0] != rest[1] or before is None or after is None:
        return False
    (head, number, tail), (its_head, its_number, its_tail) = before, after
    return (
        "{" not in _without_mappings(rest[0])
        and (head, tail) == (its_head, its_tail)
        and its_number == str(int(number) + 1).zfill(len(number))
    )


def _numbered(host: str) -> tuple[str, str, str] | None:
    """What stands before the number that counts, the number, and what follows: in the name's first label, or at the
    end of an address.
    """
    label, dot, domain = host.partition(".")
    if ":" in host:
        return None
    if re.fullmatch(r"[\d.]+", host):
        label, dot, domain = host, "", ""
    match = re.fullmatch(r"(.*?)(\d+)(\D*)", label)
    return (match.group(1), match.group(2), f"{match.group(3)}{dot}{domain}") if match else None


def _range(run: Sequence[dict[str, Any]]) -> dict[str, Any]:
    if len(run) == 1:
        return run[0]
    first, last = _numbered(run[0]["host"]), _numbered(run[-1]["host"])
    assert first is not None and last is not None  # _follows looked
    hosts = f"{first[0]}[{first[1]}:{last[1]}]{first[2]}"
    return {**run[0], "id": f"{run[0]['id']}-{run[-1]['id']}", "host": hosts}
