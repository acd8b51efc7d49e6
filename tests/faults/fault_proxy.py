"""A TCP proxy that can be cut, or slow, for some processes: what stands behind it is silent to them then, as behind a
network that drops everything.
"""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Collection, Mapping

import psutil

Address = tuple[str, int]


class Proxy:
    """Listens at each address of ``behind`` and passes all on to what is behind it, but for processes cut off."""

    def __init__(self, behind: Mapping[Address, Address]) -> None:
        self._changed = threading.Condition()
        self._cut_off: frozenset[int] = frozenset()
        self._slowed: frozenset[int] = frozenset()
        self._pause = 0.0
        self._listeners = [socket.create_server(address) for address in behind]
        for listener, server in zip(self._listeners, behind.values(), strict=True):
            threading.Thread(target=self._accept, args=(listener, server), name="proxy", daemon=True).start()

    def cut(self, pids: Collection[int]) -> None:
        """From now on nothing gets through to or from these processes, on old connections and new ones;
        none is closed.
        """
        self._set(frozenset(pids))

    def slow(self, pids: Collection[int], pause: float) -> None:
        """From now on each reply, or what comes of it at once, reaches these processes so many seconds later."""
        self._slowed, self._pause = frozenset(pids), pause

    def mend(self) -> None:
        """What was held back is passed on, and nothing is slow any more."""
        self.slow((), 0.0)
        self._set(frozenset())

    def close(self) -> None:
        for listener in self._listeners:
            listener.close()
        self.mend()

    def _set(self, cut_off: frozenset[int]) -> None:
        with self._changed:
            self._cut_off = cut_off
            self._changed.notify_all()

    def _wait(self, pid: int | None) -> None:
        with self._changed:
            self._changed.wait_for(lambda: pid not in self._cut_off)

    def _accept(self, listener: socket.socket, behind: Address) -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client, behind), daemon=True).start()

    def _serve(self, client: socket.socket, behind: Address) -> None:
        pid = self._process_behind(client)
        self._wait(pid)
        with client, contextlib.suppress(OSError), socket.create_connection(behind, timeout=10) as server:
            server.settimeout(None)
            back = threading.Thread(
                target=self._pass, args=(server, client, pid), kwargs={"replies": True}, daemon=True
            )
            back.start()
            self._pass(client, server, pid, replies=False)
            back.join()

    def _process_behind(self, client: socket.socket) -> int | None:
        """The process at the other end: of the machine's sockets, the one that goes from that port to our address.

        Java's are IPv6 sockets, to which an IPv4 address is ``::ffff:127.0.0.1``.
        """
        wanted = (client.getpeername()[1], *client.getsockname())
        found = (each for each in psutil.net_connections("tcp") if each.raddr)
        ends = ((each.pid, (each.laddr.port, each.raddr.ip.removeprefix("::ffff:"), each.raddr.port)) for each in found)
        return next((pid for pid, end in ends if end == wanted), None)

    def _pass(self, source: socket.socket, target: socket.socket, pid: int | None, *, replies: bool) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                self._wait(pid)
                if replies and pid in self._slowed:
                    time.sleep(self._pause)
                target.sendall(data)
        for each in (source, target):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
