"""The files that a unit names under EnvironmentFile=, read as systemd reads them (systemd.exec)."""

from __future__ import annotations

import glob
import os
import shlex

from ansible.module_utils.kafka_host import HostError, is_there, why


def variables_of_files(named: list) -> dict:
    """What the files of a unit's EnvironmentFile= set; a later one counts before an earlier. ``named``: paths or
    patterns. One that is not there sets nothing. Raises HostError for one that can't be read.
    """
    found = {}
    for pattern in named:
        for path in _matching(pattern) if glob.has_magic(pattern) else [pattern]:
            try:
                with open(path, encoding="utf-8", errors="replace") as stream:
                    found.update(assignments(stream.read()))
            except FileNotFoundError:
                continue
            except OSError as error:
                raise _unread(path, error) from None
    return found


def _matching(pattern: str) -> list:
    """The files, in their order. Raises HostError where their directory can't be read, of which glob says nothing."""
    directory = os.path.dirname(pattern)
    try:
        if not glob.has_magic(directory) and is_there(directory):
            os.listdir(directory)
    except OSError as error:
        raise _unread(pattern, error) from None
    return sorted(glob.glob(pattern))


def _unread(path: str, error: OSError) -> HostError:
    return HostError(
        f"{path}, which the service's unit names (EnvironmentFile=), could not be read ({why(error)})",
        "let Ansible's user read it, or set reach.become",
    )


def words_of(text: str) -> list:
    """A line's words: those with spaces in quotes, as a shell has them, and as systemctl shows variables; older
    versions of it quote nothing.
    """
    try:
        return shlex.split(text)
    except ValueError:
        return text.split()


def assignments(text: str) -> dict:
    """The variables of such a file (systemd.exec): one a line, # and ; begin comments, a backslash at the end goes on
    with the next line, quotes around a value or part of it go.
    """
    found = {}
    for line in text.replace("\\\n", "").splitlines():
        name, equals, value = line.strip().partition("=")
        if equals and not name.startswith(("#", ";")):
            found[name.strip()] = _unquoted(value.strip())
    return found


def _unquoted(value: str) -> str:
    plain, quote, escaped = [], "", False
    for each in value:
        if escaped:
            plain.append(each)
            escaped = False
        elif each == "\\" and quote != "'":
            escaped = True
        elif each == quote:
            quote = ""
        elif not quote and each in "\"'":
            quote = each
        else:
            plain.append(each)
    return "".join(plain)
