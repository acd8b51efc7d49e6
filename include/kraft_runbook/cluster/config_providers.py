"""References of properties to Kafka's config providers (KIP-297), and the providers that a file declares. Pure.

Kafka asks a provider only if ``config.providers`` names it (``AbstractConfig.resolveConfigVariables``). A reference to
any other one stays as it is written: the text ``${vault:…}`` itself becomes the password. So does one in a provider's
own settings, which a provider gets as they are written (``instantiateConfigProviders``).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import PurePosixPath
from posixpath import basename, join, normpath

FILE_CONFIG_PROVIDER = "org.apache.kafka.common.config.provider.FileConfigProvider"
DIRECTORY_CONFIG_PROVIDER = "org.apache.kafka.common.config.provider.DirectoryConfigProvider"
PROVIDERS = "config.providers"
SECRETS = "secrets"
"""The name of the provider that this tool declares for the host's secrets file."""
SECRETS_PROVIDER = {PROVIDERS: SECRETS, f"{PROVIDERS}.{SECRETS}.class": FILE_CONFIG_PROVIDER}
ALLOWED_PATHS = f"{PROVIDERS}.{SECRETS}.param.allowed.paths"
"""The files and directories, the only ones that the provider of the secrets file reads; comma-separated."""
OWN_MEANS = (
    "Kafka gives a config provider its own settings as they are written and follows no reference in them. What is no"
    " secret stands in clear, in the brokers' files too. Give the provider its secret by its own means (a file that it"
    " reads, a variable of the service, the rights of the host), take the property out of the brokers' files, and"
    " restart them"
)
REFERENCE = re.compile(r"\$\{([^}]*?):(?:([^}]*?):)?([^}]*?)\}")
"""``ConfigTransformer.DEFAULT_PATTERN``: the provider, the path if there is one, and the key."""
_CLASS = re.compile(r"config\.providers\.([^.]+)\.class")


def providers_asked(properties: Mapping[str, str]) -> dict[str, list[str]]:
    """The providers that values refer to, each with the keys of those values."""
    found: dict[str, list[str]] = {}
    for key, value in properties.items():
        for name in dict.fromkeys(name for name, _, _ in REFERENCE.findall(value)):
            found.setdefault(name, []).append(key)
    return found


def files_named(properties: Mapping[str, str]) -> tuple[str, ...]:
    """The files of the host to which values refer through Kafka's own two providers of files."""
    found: dict[str, None] = {}
    for value in properties.values():
        for name, path, key in REFERENCE.findall(value):
            declared = properties.get(f"{PROVIDERS}.{name}.class", "").strip()
            if declared == FILE_CONFIG_PROVIDER:
                found[path] = None
            elif declared == DIRECTORY_CONFIG_PROVIDER:
                found[join(path, basename(key))] = None
    return tuple(found)


def with_providers(properties: Mapping[str, str]) -> dict[str, str]:
    """The properties with ``config.providers``: the one of the secrets file where a value refers to it, and each that
    ``config.providers.<name>.class`` declares.
    """
    declared = [match.group(1) for match in map(_CLASS.fullmatch, properties) if match]
    names = [SECRETS] if SECRETS in providers_asked(properties) else []
    names += sorted({*declared} - {SECRETS})
    if not names:
        return dict(properties)
    given = SECRETS_PROVIDER if SECRETS in names else {}
    return {**properties, **given, PROVIDERS: ",".join(names)}


def undeclared(properties: Mapping[str, str]) -> dict[str, list[str]]:
    """The providers that values refer to and ``config.providers`` does not name, each with the keys of those values."""
    named = {each.strip() for each in properties.get(PROVIDERS, "").split(",")}
    return {name: keys for name, keys in providers_asked(properties).items() if name not in named}


def is_of_provider(key: str) -> bool:
    """Whether the property is a provider's own setting, which holds no reference that Kafka would follow."""
    return key.startswith(f"{PROVIDERS}.")


def is_allowed(path: str, allowed: str) -> bool:
    """Whether a path is one of the comma-separated files, or in one of the directories (``AllowedPaths``)."""
    whole = PurePosixPath(normpath(path))
    return not allowed or any(whole.is_relative_to(normpath(each)) for each in allowed.split(","))
