"""The feature levels that an installation of Kafka knows, read out of its own jar: no Java is started, and no other
version's table is asked.

Each feature is an enum in ``kafka-server-common``; its levels are the constants that its class initializer makes, one
after the other. So the initializer's few instructions are followed (JVM specification, chapters 4 and 6) until the
first one that is not of that kind; a test compares the result with what the jar's own classes say.
"""

from __future__ import annotations

import json
import os
import re
import struct
import zipfile

from ansible.module_utils.installation import LAYOUTS, jars_directory
from ansible.module_utils.kafka_host import HostError

PACKAGE = "org/apache/kafka/server/common/"
METADATA_VERSION = PACKAGE + "MetadataVersion"
FEATURE_VERSION = PACKAGE + "FeatureVersion"
_JAR = re.compile(r"kafka-server-common-((?![^/]*-(?:javadoc|sources|test)\.jar)\d+\.\d+\.\d+[^/]*)\.jar")
_ENUM = re.compile(re.escape(PACKAGE) + r"\w+Version\.class")
_RECORD = re.compile(r"common/metadata/\w+Record\.json")
_COMMENT = re.compile(r"^\s*//.*$", re.MULTILINE)
_TEST = ("test.", "unit.test.")
_NOT_AS_KNOWN = (
    AttributeError,
    IndexError,
    KeyError,
    StopIteration,
    TypeError,
    ValueError,
    struct.error,
    zipfile.BadZipFile,
)
_PARAMETER = re.compile(r"\[*(?:L[^;]+;|[BCDFIJSZ])")
WAY_OUT = "name the directory that holds Kafka in the cluster file (kafka.home), or reinstall Kafka there"


def levels_of(home: str) -> dict:
    """The version of the Kafka in ``home``, by feature its levels and the range that it supports, and its metadata
    records with their highest versions.

    Raises HostError where there is no such jar, several, or one whose enums are made in another way.
    """
    libs = jars_directory(home)
    try:
        found = sorted(name for name in os.listdir(libs) if _JAR.fullmatch(name))
    except FileNotFoundError:
        places = " or ".join(jars for jars, _ in LAYOUTS)
        raise HostError(f"there is no Kafka in {home}: it has no directory {places}", WAY_OUT) from None
    if len(found) != 1:
        raise HostError(f"{libs} holds {', '.join(found) or 'no kafka-server-common jar'}; one is needed", WAY_OUT)
    path = os.path.join(libs, found[0])
    try:
        with zipfile.ZipFile(path) as jar:
            named = [name for name in jar.namelist() if _ENUM.fullmatch(name)]
            features = _features([ClassFile(jar.read(name)) for name in named])
    except _NOT_AS_KNOWN as error:
        raise HostError(
            f"the feature levels in {path} could not be read ({type(error).__name__}: {error})",
            "use a release of this tool that knows this Kafka",
        ) from None
    version = _JAR.fullmatch(found[0]).group(1)
    return {"version": version, "features": features, "records": _records(libs, version)}


def _records(libs: str, version: str) -> dict:
    """By name, the highest version of each metadata record: in Kafka's own message files, which its jar holds."""
    path = os.path.join(libs, f"kafka-metadata-{version}.jar")
    try:
        with zipfile.ZipFile(path) as jar:
            texts = [jar.read(name).decode() for name in jar.namelist() if _RECORD.fullmatch(name)]
        told = [json.loads(_COMMENT.sub("", text)) for text in texts]
        records = {each["name"]: int(each["validVersions"].rpartition("-")[2]) for each in told}
    except (OSError, *_NOT_AS_KNOWN) as error:
        return {"unread": f"the records in {path} could not be read ({type(error).__name__}: {error})"}
    return {"value": records} if records else {"unread": f"{path} holds no message files of metadata records"}


def _features(classes: list) -> dict:
    metadata = next(each for each in classes if each.name == METADATA_VERSION)
    numbers = {constant.arguments[0]: constant.arguments[2] for constant in metadata.constants}
    latest = numbers[metadata.statics["LATEST_PRODUCTION"].arguments[0]]
    lowest = metadata.statics.get("MINIMUM_VERSION") or metadata.statics["MINIMUM_KRAFT_VERSION"]
    levels = [_metadata_level(each) for each in metadata.constants if each.arguments[2] > 0]
    found = {"metadata.version": {"lowest": numbers[lowest.arguments[0]], "highest": latest, "levels": levels}}
    for each in classes:
        name = each.strings.get("FEATURE_NAME", "")
        if FEATURE_VERSION in each.interfaces and name and not name.startswith(_TEST) and each.name != METADATA_VERSION:
            found[name] = _feature(each, metadata, latest)
    return found


def _metadata_level(constant: Made) -> dict:
    _, _, number, release, part, *changed = constant.arguments
    return {
        "number": number,
        "name": f"{release}-{part}",
        "release": release,
        "changes_metadata": bool(changed[0]) if changed else True,
        "needs": {},
    }


def _feature(found: ClassFile, metadata: ClassFile, latest: int) -> dict:
    levels, production = [], 0
    for constant in found.constants:
        name, _, number, default_from, *further = constant.arguments
        since = metadata.statics[default_from.field].arguments
        needs = further[0].arguments if further and isinstance(further[0], Made) else []
        levels.append(
            {
                "number": number,
                "name": name,
                "release": since[3],
                "changes_metadata": False,
                "needs": {needs[0]: _number(needs[1], metadata)} if len(needs) == 2 else {},
            }
        )
        if since[2] <= latest:  # as Features.latestProduction of 3.9; later ones name it themselves
            production = max(production, number)
    named = found.statics.get("LATEST_PRODUCTION")
    return {"lowest": 0, "highest": named.arguments[2] if named else production, "levels": levels}


def _number(needed: object, metadata: ClassFile) -> int:
    """The level in ``MetadataVersion.X.featureLevel()``, boxed or not."""
    while isinstance(needed, Made) and needed.arguments:
        needed = needed.arguments[0]
    return metadata.statics[needed.field].arguments[2] if isinstance(needed, Static) else int(needed)


class Made:
    """An object, or what a call gave: its class or method, and what it was made of."""

    def __init__(self, what: str) -> None:
        self.what = what
        self.arguments = []


class Static:
    """Another class's static field, by name."""

    def __init__(self, field: str) -> None:
        self.field = field


class ClassFile:
    """One class file: its name, its interfaces, its constant strings, and what its initializer put into static fields.

    ``constants``: of an enum, its constants in order.
    """

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._pool = [None]
        self._at = 10
        magic, _, _, count = struct.unpack_from(">IHHH", data, 0)
        if magic != 0xCAFEBABE:
            raise ValueError("no class file")
        while len(self._pool) < count:
            self._read_constant()
        _, this, _ = self._take(">HHH")
        self.name = self._class(this)
        self.interfaces = [self._class(self._take(">H")[0]) for _ in range(self._take(">H")[0])]
        self.strings = {}
        self.statics = {}
        self.constants = []
        self._read_fields()
        code = self._initializer()
        if code is not None:
            self._follow(code)

    def _take(self, layout: str) -> tuple:
        found = struct.unpack_from(layout, self._data, self._at)
        self._at += struct.calcsize(layout)
        return found

    def _read_constant(self) -> None:
        (tag,) = self._take(">B")
        if tag == 1:
            (size,) = self._take(">H")
            self._pool.append(self._data[self._at : self._at + size].decode("utf-8", "surrogatepass"))
            self._at += size
        elif tag in (5, 6):  # long and double take two places
            self._pool += [self._take(">q" if tag == 5 else ">d"), None]
        else:
            layouts = {3: ">i", 4: ">f", 15: ">BH", 7: ">H", 8: ">H", 16: ">H", 19: ">H", 20: ">H"}
            self._pool.append(self._take(layouts.get(tag, ">HH")))

    def _class(self, index: int) -> str:
        return self._pool[self._pool[index][0]]

    def _member(self, index: int) -> tuple:
        """Class, name and descriptor of a field or method."""
        owner, named = self._pool[index]
        name, descriptor = self._pool[named]
        return self._class(owner), self._pool[name], self._pool[descriptor]

    def _attributes(self) -> dict:
        found = {}
        for _ in range(self._take(">H")[0]):
            name, size = self._take(">HI")
            found[self._pool[name]] = self._data[self._at : self._at + size]
            self._at += size
        return found

    def _read_fields(self) -> None:
        for _ in range(self._take(">H")[0]):
            _, name, _ = self._take(">HHH")
            value = self._attributes().get("ConstantValue")
            constant = self._pool[struct.unpack(">H", value)[0]] if value else None
            if isinstance(constant, tuple) and len(constant) == 1 and isinstance(self._pool[constant[0]], str):
                self.strings[self._pool[name]] = self._pool[constant[0]]

    def _initializer(self) -> bytes | None:
        for _ in range(self._take(">H")[0]):
            _, name, _ = self._take(">HHH")
            code = self._attributes().get("Code")
            if self._pool[name] == "<clinit>" and code is not None:
                return code[8 : 8 + struct.unpack_from(">I", code, 4)[0]]
        return None

    def _loaded(self, index: int) -> object:
        constant = self._pool[index]
        value = constant[0] if isinstance(constant, tuple) else constant
        return self._pool[value] if isinstance(self._pool[value], str) else value

    def _follow(self, code: bytes) -> None:
        stack = []
        at = 0
        while at < len(code):
            operation = code[at]
            wide = struct.unpack_from(">H", code, at + 1)[0] if at + 2 < len(code) else 0
            size = _SIZES.get(operation)
            if size is None:
                break  # the constants are made; what follows (loops over them) is not wanted
            if operation <= 8:
                stack.append(operation - 3 if operation > 1 else None)
            elif operation == BIPUSH:
                stack.append(struct.unpack_from(">b", code, at + 1)[0])
            elif operation == SIPUSH:
                stack.append(struct.unpack_from(">h", code, at + 1)[0])
            elif operation in (LDC, LDC_W):
                stack.append(self._loaded(code[at + 1] if operation == LDC else wide))
            elif operation == DUP:
                stack.append(stack[-1])
            elif operation in (POP, AASTORE):
                del stack[-1 if operation == POP else -3 :]
            elif operation == NEW:
                stack.append(Made(self._class(wide)))
            elif operation == ANEWARRAY:
                stack[-1] = Made("array")
            elif operation == GETSTATIC:
                owner, name, _ = self._member(wide)
                stack.append(self.statics[name] if owner == self.name and name in self.statics else Static(name))
            elif operation == PUTSTATIC:
                self._put(self._member(wide)[1], stack.pop())
            elif operation != CHECKCAST:
                self._call(operation, wide, stack)
            at += size
        if "$VALUES" not in self.statics and self.constants:
            raise ValueError(f"{self.name} makes its constants in a way that is not known")

    def _put(self, name: str, value: object) -> None:
        self.statics[name] = value
        if isinstance(value, Made) and value.what == self.name and value.arguments[:1] == [name]:
            self.constants.append(value)

    def _call(self, operation: int, index: int, stack: list) -> None:
        owner, name, descriptor = self._member(index)
        given, result = descriptor[1:].split(")")
        count = len(_PARAMETER.findall(given))
        arguments = stack[len(stack) - count :]
        del stack[len(stack) - count :]
        if operation != INVOKESTATIC:
            target = stack.pop()
            if name == "<init>":
                target.arguments = arguments
                return
            arguments = [target, *arguments]
        if result != "V":
            made = Made(f"{owner}.{name}")
            made.arguments = arguments
            stack.append(made)


BIPUSH, SIPUSH, LDC, LDC_W, AASTORE, POP, DUP = 16, 17, 18, 19, 83, 87, 89
GETSTATIC, PUTSTATIC, INVOKEVIRTUAL, INVOKESPECIAL, INVOKESTATIC, INVOKEINTERFACE = 178, 179, 182, 183, 184, 185
NEW, ANEWARRAY, CHECKCAST = 187, 189, 192
_SIZES = {
    **dict.fromkeys((1, 2, 3, 4, 5, 6, 7, 8, AASTORE, POP, DUP), 1),
    **dict.fromkeys((BIPUSH, LDC), 2),
    **dict.fromkeys((SIPUSH, LDC_W, GETSTATIC, PUTSTATIC, INVOKEVIRTUAL, INVOKESPECIAL, INVOKESTATIC), 3),
    **dict.fromkeys((NEW, ANEWARRAY, CHECKCAST), 3),
    INVOKEINTERFACE: 5,
}
"""The instructions that make constants, each with its length in bytes."""
