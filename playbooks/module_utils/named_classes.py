"""The classes that a node's configuration names, and where each installation of Kafka has them.

A class is looked for in the names of the jars' entries; no Java is started. Of login configurations (JAAS) and of what
config providers give, nothing leaves the host but names of classes.
"""

from __future__ import annotations

import contextlib
import os
import re
import struct
import zipfile
from collections.abc import Callable, Iterator

from ansible.module_utils.installation import jar_directories
from ansible.module_utils.jvm_options import LOGIN_FILE, beside_the_command_line, java_property, login_file, options
from ansible.module_utils.kafka_host import HostError, is_there, names_in, why
from ansible.module_utils.kafka_user import with_descendants
from ansible.module_utils.login_modules import is_class, modules_of, sections_of
from ansible.module_utils.properties_text import properties_of
from ansible.module_utils.references import NeedsProcess, followed

KAFKA = "kafka.Kafka"
LISTENER = "listener.name."
_NOT_ON_THE_PATH = re.compile(r"(-(test|test-sources|src|scaladoc|javadoc)\.jar|jar\.asc|connect-file.*\.jar)$")
"""What kafka-run-class.sh leaves out."""
_OF_JAVA = tuple(
    f"com.sun.security.auth.module.{name}LoginModule" for name in ("Jndi", "KeyStore", "Krb5", "Ldap", "Unix")
)
_BESIDES = "name the class in the file itself, and let only its options or other properties come from elsewhere"


class Wanted:
    """A class by the key that names it. ``shown``: whether the name stood in the file itself. ``places``: where it is
    looked for besides the homes.
    """

    def __init__(self, key: str, name: str, shown: bool = True, places: tuple = ()) -> None:
        self.key = key
        self.name = name
        self.shown = shown
        self.places = places


class Process:
    """A running broker or controller: its arguments, and its directory. ``service``: its manager's, which tells of its
    environment where that may not be read.
    """

    def __init__(self, pid: int, service: object) -> None:
        self.service = service
        self.pid = next((each for each in with_descendants(pid) if KAFKA in _arguments(each)), 0)
        if not self.pid:
            raise HostError(
                f"process {pid} and its children show no Kafka that runs",
                "it has just ended, or /proc hides other users' processes (hidepid)",
            )
        self.arguments = _arguments(self.pid)

    def class_path(self) -> list:
        for at, each in enumerate(self.arguments):
            if each in ("-cp", "-classpath", "--class-path"):
                return [self.whole(part) for part in self.arguments[at + 1].split(os.pathsep) if part]
        return []

    def login_file(self) -> str | None:
        path = login_file(self.options(LOGIN_FILE))
        return self.whole(path) if path else None

    def property(self, name: str) -> str | None:
        """A Java property that its options set; None where none does."""
        return java_property(self.options(name), name)

    def options(self, wanted: str) -> list:
        """Its JVM's options, to find that property in.

        Another user may not read its environment. Its command line is then all there is, where it has the property, or
        where systemd says that the unit sets no variable from which Java takes options. Else raises HostError.
        """
        own = self.arguments[: self.arguments.index(KAFKA)]
        try:
            return options(self.whole_environment(), own)
        except PermissionError as error:
            if java_property(own, wanted) is not None or self._unit_adds_nothing():
                return own
            raise HostError(
                f"whether process {self.pid} has the Java property {wanted} can't be told: its command line has not,"
                f" its environment can't be read ({why(error)}), and its service's definition does not say that it sets"
                " no JAVA_TOOL_OPTIONS, JDK_JAVA_OPTIONS or _JAVA_OPTIONS",
                "let Ansible's user be the process's own, or set reach.become",
            ) from None

    def _unit_adds_nothing(self) -> bool:
        """Whether the service's definition, as far as it tells, gives Java no option beside the command line."""
        try:
            defined = self.service.environment()
        except HostError:
            return False
        return defined is not None and not beside_the_command_line(defined)

    def whole(self, path: str) -> str:
        return path if os.path.isabs(path) else os.path.join(os.readlink(f"/proc/{self.pid}/cwd"), path)

    def environment(self, name: str) -> str | None:
        return self.whole_environment().get(name)

    def whole_environment(self) -> dict:
        with open(f"/proc/{self.pid}/environ", "rb") as stream:
            pairs = [each.decode(errors="replace").partition("=") for each in stream.read().split(b"\0")]
        return {name: value for name, _, value in reversed(pairs)}  # of two with one name the first counts


def _arguments(pid: int) -> list:
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as stream:
            return [each.decode(errors="replace") for each in stream.read().split(b"\0")[:-1]]
    except OSError:
        return []


def kafka_processes() -> dict:
    """Every Kafka of this host, of whichever cluster, with the number of its user: those that kafka-server-stop.sh
    finds, as far as /proc shows them (hidepid).
    """
    found = {}
    for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
        arguments = _arguments(pid)
        if KAFKA in arguments and any("java" in each for each in arguments):
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it has ended
                found[pid] = os.stat(f"/proc/{pid}").st_uid
    return found


def named_classes(
    text: str | None, service: object, pid: int, homes: list, link: str, table: dict, dynamic: list
) -> dict:
    """Each class by the key that names it, with the jar of each home that has it.

    ``text``: the node's file. ``link``: through which its service finds its home. ``pid``: its service's process, 0
    where none runs. ``table``: the ``keys`` that name classes, and the ``built_in`` words of some. ``dynamic``: keys
    and classes of dynamic configurations. ``unasked``: what could not be followed because no process was seen; None
    where one was.
    """
    found = Search(properties_of(text or ""), table)
    process = None
    if pid:
        try:
            process = found.process = Process(pid, service)
        except HostError as error:
            found.unread.append(f"{error.problem}; {error.way_out}")
    wanted = [*found.of_file(), *(found.of_login_file(process) if process else ())]
    wanted += [Wanted(each["key"], each["name"]) for each in dynamic]
    return {
        "named": _in_homes(wanted, _beside(process, homes, link), homes),
        "unread": found.unread,
        "unasked": None if process else found.unasked,
    }


def _beside(process: Process | None, homes: list, link: str) -> list:
    """What the running process has on its class path that comes from no home: it stays there with another Kafka."""
    if process is None:
        return []
    libs = [each for home in homes for each in jar_directories(home)]
    own = {os.path.realpath(each) for each in libs}
    for each in filter(os.path.isdir, libs):  # jars may be links, and a service may name what they lead to
        own.update(os.path.realpath(os.path.join(each, name)) for name in os.listdir(each))
    through = os.path.join(os.path.normpath(link), "") if link else None
    return [
        each
        for each in process.class_path()
        if os.path.realpath(os.path.dirname(each)) not in own
        and os.path.realpath(each) not in own
        and not (through and os.path.normpath(each).startswith(through))
    ]


class Search:
    """The classes that are wanted, and in ``unread`` what could not be followed, with the way out; in ``unasked`` what
    could be with a process.
    """

    def __init__(self, properties: dict, table: dict) -> None:
        self.properties = {key: value.strip() for key, value in properties.items()}
        self.keys = table["keys"]
        self.built_in = table["built_in"]
        self.process = None
        self.unread = []
        self.unasked = []

    def of_file(self) -> Iterator[Wanted]:
        tiered = self.properties.get("remote.log.storage.system.enable", "").lower() == "true"
        for key, value in sorted(self.properties.items()):
            base = self._base(key)
            if value and base and (tiered or not base.startswith("remote.log.")):
                yield from self._of_property(key, base, value)
        providers = [each.strip() for each in self.properties.get("config.providers", "").split(",")]
        for each in filter(None, providers):
            key = f"config.providers.{each}.class"
            if self.properties.get(key):
                yield from self._of_property(key, key, self.properties[key])

    def _base(self, key: str) -> str | None:
        if key in self.keys:
            return key
        if not key.startswith(LISTENER):
            return None
        return next((each for each in self.keys if key.endswith(f".{each}")), None)

    def _of_property(self, key: str, base: str, value: str) -> Iterator[Wanted]:
        given, unfollowed = followed(value, self.properties, self.process.environment if self.process else None)
        reasons = [each.problem for each in unfollowed]
        kind = self.keys.get(base, "class")
        if kind == "login":
            try:
                yield from (Wanted(key, each) for each in modules_of(given))
            except ValueError as error:
                self._cannot(key, "; ".join([str(error), *reasons]), unfollowed)
            return
        if reasons:
            self._cannot(key, "; ".join(reasons), unfollowed)
            return
        names = [each.strip() for each in given.split(",")] if kind == "classes" else [given.strip()]
        for name in names:
            if name and name not in self.built_in.get(base, ()):
                yield Wanted(key, name, shown=given == value and is_class(name), places=self._class_path_of(base))

    def _class_path_of(self, base: str) -> tuple:
        if not base.startswith("remote.log."):
            return ()
        given = self.properties.get(base[: -len("name")] + "path", "")
        return tuple(each for each in given.split(os.pathsep) if each)

    def _cannot(self, key: str, reason: str, unfollowed: list) -> None:
        with_a_process = unfollowed and all(isinstance(each, NeedsProcess) for each in unfollowed)
        held = self.unasked if with_a_process else self.unread
        held.append(f"which class {key} names can't be told ({reason}): {_BESIDES}")

    def of_login_file(self, process: Process) -> Iterator[Wanted]:
        """Of the sections that Kafka reads; the one of a ZooKeeper client stays behind unread."""
        try:
            path = process.login_file()
        except HostError as error:
            self.unread.append(f"{error.problem}: {error.way_out}")
            return
        if path is None:
            return
        try:
            with open(path, encoding="utf-8", errors="replace") as stream:
                sections = sections_of(stream.read())
        except FileNotFoundError:
            return  # it names none; whether that stops the node is KRB-PRE-076's
        except OSError as error:
            self.unread.append(f"the login file {path} could not be read ({why(error)}): let Ansible's user read it")
            return
        except ValueError as error:
            self.unread.append(f"the login file {path} is not understood ({error}): write it as Kafka's documents do")
            return
        for section, names in sections.items():
            if section == "KafkaClient" or section.split(".")[-1] == "KafkaServer":
                for each in names:
                    yield Wanted(f"{section} in {path}", each)


def _in_homes(wanted: list, beside: list, homes: list) -> list:
    names = sorted({each.name for each in wanted if is_class(each.name)})
    by_home = {home: _part(lambda home=home: find(names, jars_of(home))) for home in homes}
    places = {name: jar for name, jar in find(names, _jars(beside)).items() if jar}
    for each in wanted:
        if each.places and each.name in names:
            places.update({name: jar for name, jar in find([each.name], _jars(each.places)).items() if jar})
    found = []
    for each in wanted:
        has = {}
        for home, part in by_home.items():
            if each.name in _OF_JAVA:
                has[home] = {"value": "Java itself"}
            elif each.name in places:
                has[home] = {"value": places[each.name]}
            else:
                has[home] = part if "unread" in part else _value(part["value"].get(each.name))
        known = each.shown or any(isinstance(part.get("value"), str) for part in has.values())
        found.append({"key": each.key, "name": each.name if known else "", "found": has})
    return found


def _value(jar: str | HostError | None) -> dict:
    return {"unread": jar.problem} if isinstance(jar, HostError) else {"value": jar}


def _part(ask: Callable[[], dict]) -> dict:
    try:
        return {"value": ask()}
    except OSError as error:
        return {"unread": why(error)}


def jars_of(home: str) -> list:
    """The jars of an installation, as kafka-run-class puts them on the class path. Raises OSError."""
    return [
        os.path.join(directory, name)
        for directory in jar_directories(home)
        for name in sorted(os.listdir(directory))
        if name.endswith(".jar") and not _NOT_ON_THE_PATH.search(name)
    ]


def _jars(places: list) -> list:
    """The jars and directories of a class path. What is not there holds nothing. Raises OSError where that can't be
    told.
    """
    found = []
    for each in places:
        if os.path.basename(each) == "*":
            directory = os.path.dirname(each)
            inside = sorted(names_in(directory))
            found += [os.path.join(directory, name) for name in inside if name.endswith((".jar", ".JAR"))]
        elif is_there(each):
            found.append(each)
    return found


def find(names: list, places: list) -> dict:
    """By class, the file name of the first jar, or the directory, that has it; None where none has. Where a jar could
    not be read and no other has the class, HostError as a value.
    """
    found = dict.fromkeys(names)
    unread = None
    for place in places if names else ():
        files = {n: n.replace(".", "/") + ".class" for n in names}
        try:
            if os.path.isdir(place):
                there = [n for n, file in files.items() if is_there(os.path.join(place, file))]
            else:
                listed = _directory_of(place)
                there = [n for n, file in files.items() if _lists(listed, file.encode())]
        except (OSError, zipfile.BadZipFile, struct.error) as error:
            unread = HostError(f"{place} could not be read ({why(error) if isinstance(error, OSError) else error})", "")
            continue
        for each in there:
            found[each] = found[each] or (place if os.path.isdir(place) else os.path.basename(place))
    return {name: unread if jar is None and unread else jar for name, jar in found.items()}


def _directory_of(jar: str) -> bytes:
    """The central directory of a zip file (APPNOTE 4.3.12), as it is: a jar has thousands of entries, and two or three
    names are looked for.
    """
    with open(jar, "rb") as stream:
        size = os.fstat(stream.fileno()).st_size
        stream.seek(max(0, size - 65_557))
        tail = stream.read()
        at = tail.rfind(b"PK\x05\x06")
        if at < 0:
            raise zipfile.BadZipFile("it is no zip file")
        (length,) = struct.unpack_from("<I", tail, at + 12)
        if length == 0xFFFFFFFF:
            with zipfile.ZipFile(jar) as whole:
                return b"".join(_entry(name.encode()) for name in whole.namelist())
        stream.seek(size - len(tail) + at - length)
        return stream.read(length)


_HEAD = 46


def _entry(name: bytes) -> bytes:
    return struct.pack("<4s24xH16x", b"PK\x01\x02", len(name)) + name


def _lists(directory: bytes, name: bytes) -> bool:
    at = directory.find(name)
    while at >= 0:
        begin = at - _HEAD
        is_entry = begin >= 0 and directory[begin : begin + 4] == b"PK\x01\x02"
        if is_entry and struct.unpack_from("<H", directory, begin + 28)[0] == len(name):
            return True
        at = directory.find(name, at + 1)
    return False
