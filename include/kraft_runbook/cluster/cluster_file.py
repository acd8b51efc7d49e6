"""Reading a cluster file: YAML text with variables to a validated ClusterSpec, all problems at once, each with its
line.

``${NAME}`` and ``${NAME:-default}`` in a value are replaced from the environment, so one file can serve two labs side
by side. The file's values are visible (a DAG's documentation, a plan, a diff), and its author may be another person
than the one who runs Airflow. So it may read only few of the process's variables, and no secret. The values of its
secrets, ``{env: NAME}``, are sent to hosts that it also names, so these are few as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ValidationError

from kraft_runbook.cluster.node_ranges import Expanded, expand
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.cluster.spec_types import SecretRef
from kraft_runbook.errors import ClusterFileError, RunbookError

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-((?:[^{}]|\$\{[A-Za-z0-9_]+\})*))?\}")

READABLE_PREFIX = "KRB_"
"""The prefix of the variables that a cluster file may read without being listed."""
MAY_READ = "KRAFT_RUNBOOK_MAY_READ"
"""The variable in which a deployment lists further names, comma-separated."""
MAY_USE = "KRAFT_RUNBOOK_MAY_USE"
"""The same for variables that a cluster file may name as secrets. A list of its own: what may be sent to a broker need
not be fit to be shown.
"""
_LOOKS_SECRET = re.compile(r"PASS|PWD|_PW|SECRET|TOKEN|KEY|CRED|CONN|JAAS|AUTH|DSN", re.IGNORECASE)


def may_read(name: str, environment: Mapping[str, str]) -> bool:
    """Whether a cluster file may read a variable: ``PROJECT_ROOT``, one whose name begins with ``KRB_`` and names no
    secret, or one that the deployment lists.
    """
    return (
        name == "PROJECT_ROOT"
        or name in _listed(MAY_READ, environment)
        or (name.startswith(READABLE_PREFIX) and not _LOOKS_SECRET.search(name))
    )


def may_use(name: str, environment: Mapping[str, str]) -> bool:
    """Whether a cluster file may name a variable as a secret: one whose name begins with ``KRB_``, or one that the
    deployment lists.
    """
    return name.startswith(READABLE_PREFIX) or name in _listed(MAY_USE, environment)


def _listed(variable: str, environment: Mapping[str, str]) -> set[str]:
    return {each.strip() for each in environment.get(variable, "").split(",")}


def parse_cluster(text: str, *, source: str, environment: Mapping[str, str]) -> ClusterSpec:
    """Read a cluster file's text. ``source`` names it in errors; ``environment`` fills ``${NAME}`` references that the
    file may read (``may_read``).

    Raises ClusterFileError with every problem found, each with its line.
    """
    try:
        node, data = _parse(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        raise ClusterFileError(source, [f"{where}not YAML: {getattr(error, 'problem', None) or error}"]) from None
    if not isinstance(data, dict):
        raise ClusterFileError(source, ["the file must be a mapping of keys (name, kafka, brokers, controllers, …)"])
    missing: list[str] = []
    shown: dict[str, str] = {}
    written = expand(_substitute(data, environment, missing, shown, ()))
    missing += [f"line {_line_of(node, path)}: {'.'.join(map(str, path))}: {why}" for path, why in written.problems]
    try:
        spec = ClusterSpec.model_validate(written.data)
    except ValidationError as error:
        told = [text for item in _of_their_own(error, written) for text in _describe(item, node, written)]
        problems = missing + told
        raise ClusterFileError(source, list(dict.fromkeys(problems))) from None
    problems = missing + [
        f"line {_line_of(node, path)}: {'.'.join(map(str, path))}: {why}"
        for path, why in ((written.place(path), why) for path, why in _misused(spec, shown, environment))
    ]
    if problems:
        raise ClusterFileError(source, problems)
    return spec


def _parse(text: str) -> tuple[yaml.Node | None, Any]:
    """What the text holds, with and without its lines. By libyaml where PyYAML has it: every task reads its cluster
    file, and every DAG file all of them.
    """
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)(text)
    try:
        node = loader.get_single_node()
        return node, None if node is None else loader.construct_document(node)
    finally:
        loader.dispose()


def load_cluster(name: str, *, directory: Path, environment: Mapping[str, str]) -> ClusterSpec:
    """Read ``<directory>/<name>.yaml``. Raises RunbookError for an unknown name, ClusterFileError for a bad file.

    ``${PROJECT_ROOT}`` is given: the directory two levels above the cluster files (the repository's root for
    ``include/clusters``).
    """
    path = directory / f"{name}.yaml"
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_\-]*", name) or not path.is_file():
        known = ", ".join(sorted(p.stem for p in directory.glob("*.yaml"))) or "none"
        raise RunbookError(
            f"no cluster named {name!r} in {directory} (known: {known})",
            way_out=(
                f"write {directory}/{name}.yaml, or set KRAFT_RUNBOOK_CLUSTERS to the directory of your cluster files"
            ),
        )
    given = {"PROJECT_ROOT": str(directory.resolve().parent.parent), **environment}
    spec = parse_cluster(path.read_text(), source=str(path), environment=given)
    if spec.name != name:
        raise ClusterFileError(
            str(path), [f"name: the file is called {name}.yaml but names the cluster {spec.name!r}; make them the same"]
        )
    return spec


def _misused(
    spec: ClusterSpec, shown: Mapping[str, str], environment: Mapping[str, str]
) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """The variables that the file may not name as secrets, each with its place. ``shown``: where the file shows a
    variable's value, by name.
    """
    for path, name in _named_secrets(spec, ()):
        if not may_use(name, environment):
            yield (
                path,
                (
                    f"a cluster file may not use the environment variable {name} as a secret. It uses those whose names"
                    f" begin with {READABLE_PREFIX}; others must be listed in {MAY_USE} (comma-separated) where Airflow"
                    " and the command line run"
                ),
            )
        if name in shown:
            yield (
                path,
                (
                    f"{name} is named as a secret here, and {shown[name]} shows its value as ${{{name}}}; take another"
                    " variable there"
                ),
            )


def _named_secrets(value: Any, at: tuple[str | int, ...]) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Every variable that a spec names as a secret, with its place in the file."""
    if isinstance(value, SecretRef):
        if value.env is not None:
            yield (*at, "env"), value.env
    elif isinstance(value, BaseModel | Mapping):
        for key, each in value.items() if isinstance(value, Mapping) else value:
            yield from _named_secrets(each, (*at, key))
    elif isinstance(value, tuple):
        for place, each in enumerate(value):
            yield from _named_secrets(each, (*at, place))


def _substitute(
    value: Any, environment: Mapping[str, str], missing: list[str], shown: dict[str, str], at: tuple[str | int, ...]
) -> Any:
    """Fill ``${NAME}`` and ``${NAME:-default}``; ``shown`` gets the names that were filled, and where. Properties keep
    Kafka's own ``${provider:…}`` references, which have a colon.
    """
    if isinstance(value, dict):
        return {k: _substitute(v, environment, missing, shown, (*at, k)) for k, v in value.items()}
    if isinstance(value, list):
        return [_substitute(v, environment, missing, shown, (*at, i)) for i, v in enumerate(value)]
    if not isinstance(value, str):
        is_property = len(at) > 1 and ("properties" in str(at[-2]) or at[-2] == "controller_log4j")
        return _as_property(value) if is_property and isinstance(value, bool | int | float) else value

    def fill(match: re.Match[str]) -> str:
        name, default = match.group(1), match.group(2)
        if not may_read(name, environment):
            missing.append(
                f"{'.'.join(map(str, at))}: a cluster file may not read the environment variable {name}. It reads those"
                f" whose names begin with {READABLE_PREFIX} and name no secret; others must be listed in {MAY_READ}"
                " (comma-separated) where Airflow and the command line run. Secrets are named under 'secrets' or"
                " 'password', as {env: NAME}"
            )
            return ""
        if name in environment:
            shown.setdefault(name, ".".join(map(str, at)))
            return environment[name]
        if default is None:
            missing.append(
                f"{'.'.join(map(str, at))}: environment variable {name} is not set; set it, or give a default as"
                f" ${{{name}:-…}}"
            )
            return ""
        return _VARIABLE.sub(fill, default)

    return _VARIABLE.sub(fill, value)


def _of_their_own(error: ValidationError, written: Expanded) -> list[Any]:
    """What the validation found, without what only follows: of an entry that is no range, and that a list whose entries
    are all wrong has none.
    """
    unlike = {path for path, _ in written.problems}
    found = [item for item in error.errors() if written.place(tuple(item["loc"]))[:2] not in unlike]
    wrong = {item["loc"][0] for item in error.errors() if len(item["loc"]) > 1}
    return [item for item in found if not (item["type"] == "too_short" and item["loc"] in {(each,) for each in wrong})]


def is_filled(text: str) -> bool:
    """Whether a text holds a variable that a cluster file would fill from the environment."""
    return bool(_VARIABLE.search(text))


def _as_property(value: bool | int | float) -> str:
    """A YAML scalar as Kafka writes it: ``true``, not ``True``."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _describe(item: Any, node: yaml.Node | None, written: Expanded) -> Iterator[str]:
    """One line a problem: its line in the file, its key, and what to write instead."""
    path = written.place(tuple(item["loc"]))
    message = str(item["msg"]).removeprefix("Value error, ")
    if item["type"] == "extra_forbidden":
        message = "unknown key; remove it or correct its spelling"
    elif item["type"] == "missing":
        message = "missing; this key is required"
    for line in message.split("\n"):
        here = path
        match = re.match(r"([a-z_]+(?:\.[A-Za-z0-9_.]+)?): ", line) if not path else None
        if match:
            here = written.place(tuple(int(p) if p.isdigit() else p for p in match.group(1).split(".")))
            line = f"{'.'.join(map(str, here))}: {line[match.end() :]}"
        number = _line_of(node, here)
        key = "" if match or not path else f"{'.'.join(map(str, path))}: "
        yield f"line {number}: {key}{line}" if number else f"{key}{line}"


def _line_of(node: yaml.Node | None, path: tuple[str | int, ...]) -> int | None:
    """The 1-based line of the deepest node that the path reaches."""
    line = None
    for step in path:
        if isinstance(node, yaml.MappingNode):
            found = next(((k, v) for k, v in node.value if k.value == str(step)), None)
            if found is None:
                return line or node.start_mark.line + 1
            line, node = found[0].start_mark.line + 1, found[1]
        elif isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
            node = node.value[step]
            line = node.start_mark.line + 1
        else:
            break
    return line
