"""A TCP proxy that can be cut: what stands behind it then is silent, as behind a network that drops everything."""

from __future__ import annotations

import contextlib
import socket
import threading

Address = tuple[str, int]


class Proxy:
    """Listens at ``address`` and passes everything on to ``behind``, until it is cut."""

    def __init__(self, address: Address, behind: Address) -> None:
        self.address = address
        self._behind = behind
        self._open = threading.Event()
        self._open.set()
        self._ended = False
        self._listener = socket.create_server(address)
        threading.Thread(target=self._accept, name="proxy", daemon=True).start()

    def cut(self) -> None:
        """From now on nothing gets through, in either direction, on old connections and new ones; none is closed."""
        self._open.clear()

    def mend(self) -> None:
        """What was held back is passed on."""
        self._open.set()

    def close(self) -> None:
        self._ended = True
        self._open.set()
        self._listener.close()

    def _accept(self) -> None:
        while not self._ended:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        self._open.wait()
        with client, contextlib.suppress(OSError), socket.create_connection(self._behind, timeout=10) as server:
            server.settimeout(None)
            back = threading.Thread(target=self._pass, args=(server, client), daemon=True)
            back.start()
            self._pass(client, server)
            back.join()

    def _pass(self, source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                self._open.wait()
                target.sendall(data)
        for each in (source, target):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
