"""References of a node's properties to config providers (KIP-297), followed on its host as Kafka follows them."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import PurePosixPath

from ansible.module_utils.kafka_host import HostError, why
from ansible.module_utils.properties_text import properties_of

_REFERENCE = re.compile(r"\$\{([^}]*?):(?:([^}]*?):)?([^}]*?)\}")
_PROVIDERS = "org.apache.kafka.common.config.provider."


class Lacking(HostError):
    """The file that a reference names is not there, is no UTF-8 or has no such key: Kafka could not use it either."""


class NeedsProcess(HostError):
    """The reference is to a variable of the process, and none was given to ask."""


def followed(text: str, properties: dict, environment: Callable | None = None) -> tuple:
    """The text with its references followed as far as they can be, and for each other one a HostError that says why.

    ``properties``: which declare the providers. ``environment``: gives a variable of the running process.
    """
    reasons = []

    def one(match: re.Match) -> str:
        try:
            return _provided(properties, match.group(1), match.group(2) or "", match.group(3), environment)
        except HostError as error:
            reasons.append(error)
        except FileNotFoundError as error:
            reasons.append(Lacking(why(error), ""))
        except OSError as error:
            reasons.append(HostError(why(error), ""))
        return match.group(0)

    return _REFERENCE.sub(one, text), reasons


def _require_allowed(path: str, allowed: str) -> None:
    """Raises Lacking for a path outside of the comma-separated ones (``AllowedPaths``): Kafka leaves its reference as
    it is written.
    """
    whole = PurePosixPath(os.path.normpath(path))
    if allowed and not {PurePosixPath(os.path.normpath(each)) for each in allowed.split(",")} & {whole, *whole.parents}:
        raise Lacking(f"{path} is not in the provider's allowed.paths ({allowed})", "")


def _provided(properties: dict, provider: str, path: str, key: str, environment: Callable | None) -> str:
    named = properties.get(f"config.providers.{provider}.class", "no class").strip()
    if named in (f"{_PROVIDERS}FileConfigProvider", f"{_PROVIDERS}DirectoryConfigProvider"):
        _require_allowed(path, properties.get(f"config.providers.{provider}.param.allowed.paths", ""))
    if named == f"{_PROVIDERS}FileConfigProvider":
        found = properties_of(_secrets(path)).get(key)
    elif named == f"{_PROVIDERS}DirectoryConfigProvider":
        with open(os.path.join(path, os.path.basename(key)), encoding="utf-8", errors="replace") as stream:
            found = stream.read()
    elif named == f"{_PROVIDERS}EnvVarConfigProvider" and environment:
        found = environment(key)
    else:
        error = NeedsProcess if named == f"{_PROVIDERS}EnvVarConfigProvider" else HostError
        raise error(f"the config provider {provider} ({named}) is not asked from here", "")
    if found is None:
        raise Lacking(f"{path or provider} has no {key}", "")
    return found


def _secrets(path: str) -> str:
    """A file's text as ``FileConfigProvider`` reads it: by its characters, unlike a node's configuration."""
    try:
        with open(path, encoding="utf-8", newline="") as stream:
            return stream.read()
    except UnicodeDecodeError:
        raise Lacking(f"{path} is not UTF-8, as which Kafka reads it", "") from None
