"""What a host tells of a node's secrets, so that none leaves it: whether its file holds what would be written there,
and whom login lines name. A password is told as a digest, with a key that this one look has and nothing keeps.
"""

from __future__ import annotations

import hashlib
import hmac
from typing import Callable

from ansible.module_utils.kafka_host import HostError, part, read_text, why
from ansible.module_utils.login_modules import meaning_of, options_of, stored_key
from ansible.module_utils.properties_text import properties_of
from ansible.module_utils.references import followed

NOT_UNDERSTOOD = "it is not understood: write it as Kafka's documents do"


def digest(key: str, text: str) -> str:
    return hmac.new(bytes.fromhex(key), text.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()


def told(asked: dict, refused: Callable[[str], str]) -> dict:
    """``logins``: by property, of its line, whose references the host follows. ``compared``: by property of the node's
    file, whether it is as it would be written; one that the file lacks is left out. ``files``: by path, why Kafka's
    user can't read it; empty where it can. ``refused``: tells that of a path that is there.
    """
    logins = {key: part(lambda key=key, text=text: _login(asked, key, text)) for key, text in asked["logins"].items()}
    files = {path: part(lambda path=path: _unusable(path, refused)) for path in asked["files"]}
    return {"logins": logins, "compared": _compared(asked), "files": files}


def _unusable(path: str, refused: Callable[[str], str]) -> str:
    try:
        return refused(path)
    except (FileNotFoundError, NotADirectoryError):
        return f"{path} is not there"


def _login(asked: dict, name: str, text: str) -> dict:
    """``stored``: of what a broker would keep of its password by SCRAM, where the user's salt is given."""
    key = asked["key"]
    try:
        options = options_of(_whole(text, asked["providers"]))
    except ValueError:
        raise HostError(NOT_UNDERSTOOD, "") from None
    users = {name[len("user_") :]: digest(key, each) for name, each in options.items() if name.startswith("user_")}
    user, own, scram = options.get("username"), options.get("password"), asked["scram"] or {}
    found = {"user": user, "password": None if own is None else digest(key, own), "users": users, "stored": None}
    given = scram["users"].get(user) if scram.get("key") == name else None
    if given and own is not None:
        made = stored_key(scram["mechanism"], own, bytes.fromhex(given["salt"]), given["iterations"])
        found["stored"] = digest(key, made.hex())
    return found


def _compared(asked: dict) -> dict:
    every = {**asked["wanted"], **asked["wanted_in_kraft"]}
    if not every:
        return {}
    try:
        held = properties_of(read_text(asked["config_file"]) or "")
    except OSError as error:
        return {name: {"unread": why(error)} for name in every}
    return {
        name: part(lambda name=name, wanted=wanted: _is_same(asked, name, held, wanted))
        for name, wanted in (every if "process.roles" in held else asked["wanted"]).items()
        if name in held
    }


def _is_same(asked: dict, name: str, held: dict, wanted: dict) -> bool:
    """``wanted``: the digest of the value, or the text whose references the host follows."""
    if wanted.get("text") is not None and wanted["text"].strip() == held[name].strip():
        return True
    found = digest(asked["key"], meaning_of(name, _whole(held[name], held)))
    if wanted.get("text") is None:
        return found == wanted["digest"]
    return found == digest(asked["key"], meaning_of(name, _whole(wanted["text"], asked["providers"])))


def _whole(text: str, properties: dict) -> str:
    value, unfollowed = followed(text, properties)
    if unfollowed:
        raise HostError("; ".join(each.problem for each in unfollowed), "")
    return value
