"""Calls of a server that stalls, breaks off, is started anew or forgets its tokens, against a real one that does all
that.
"""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx
import pytest

from kraft_runbook.errors import RunbookError, StepFailed, Unreachable
from lab.patient_http import PatientHttp

STALL, CUT, DONE_THEN_CUT = "stall", "cut", "done, then cut"


class Server:
    """A server with tokens and one counter. ``faults``: what it does to the next requests that are not logins; a number
    is the status it answers with.
    """

    def __init__(self, port: int = 0) -> None:
        self.faults: list[str | int] = []
        self.connections: list[socket.socket] = []
        self.token, self.logins, self.made, self.released = "first", 0, 0, threading.Event()
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def setup(self) -> None:
                super().setup()
                server.connections.append(self.connection)

            def do_GET(self) -> None:
                self._serve(lambda: {"made": server.made})

            def do_POST(self) -> None:
                self.rfile.read(int(self.headers.get("Content-Length", 0)))
                if self.path == "/login":
                    server.logins += 1
                    self._answer(201, {"access_token": server.token})
                else:
                    self._serve(self._make)

            def _make(self) -> dict[str, int]:
                server.made += 1
                return {"made": server.made}

            def _serve(self, work: Callable[[], Any]) -> None:
                fault = server.faults.pop(0) if server.faults else None
                if fault == STALL:
                    server.released.wait(30)
                if fault == DONE_THEN_CUT:
                    work()
                if fault in (STALL, CUT, DONE_THEN_CUT):
                    self.close_connection = True
                    self.connection.shutdown(socket.SHUT_RDWR)
                elif isinstance(fault, int):
                    self._answer(fault, {"detail": "Database error" if fault == 500 else "broken"})
                elif self.headers.get("Authorization") != f"Bearer {server.token}":
                    self._answer(401, {"detail": "Token Expired"})
                else:
                    self._answer(200, work())

            def _answer(self, status: int, body: Any) -> None:
                text = json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *_: object) -> None: ...

        self._http = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self._http.daemon_threads = True
        self.port = self._http.server_port
        threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def end(self) -> None:
        self.released.set()
        self._http.shutdown()
        self._http.server_close()
        for each in self.connections:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    yield made
    made.end()


def client(server: Server, **given: Any) -> PatientHttp:
    settings: dict[str, Any] = {"patience": 30, "gone": lambda: None, "say": lambda _: None, "timeout": 0.3} | given
    return PatientHttp(
        "the server", f"http://127.0.0.1:{server.port}", lambda http: http.post("/login", json={}), **settings
    )


@pytest.mark.parametrize("fault", [STALL, CUT, 500, 502, 503])
def test_a_reading_goes_on_until_it_is_answered(server: Server, fault: str | int) -> None:
    http = client(server)
    server.faults = [fault, fault]
    assert http.get("/counter").json() == {"made": 0}


def test_a_reading_outlives_a_server_that_is_started_anew(server: Server) -> None:
    http = client(server)
    assert http.get("/counter").json() == {"made": 0}
    server.end()
    anew: list[Server] = []
    later = threading.Timer(1, lambda: anew.append(Server(server.port)))
    later.start()
    try:
        assert http.get("/counter").json() == {"made": 0}
    finally:
        later.join()
        anew[0].end()
    assert anew[0].logins == 0


def test_a_token_that_is_not_taken_any_more_is_renewed(server: Server) -> None:
    http = client(server)
    server.token = "second"
    assert http.get("/counter").json() == {"made": 0}
    server.token = "third"
    assert http.change("POST", "/counter", {}) == {"made": 1}
    assert (server.logins, server.made) == (3, 1)


def test_what_is_absent_is_an_answer_and_every_other_refusal_an_error(server: Server) -> None:
    http = client(server)
    server.faults = [404, 404]
    assert http.get("/counter", absent=(404,)).status_code == 404
    with pytest.raises(RunbookError, match="the server answered 404 to GET /counter"):
        http.get("/counter")


@pytest.mark.parametrize("fault", [DONE_THEN_CUT, CUT, 502])
def test_a_change_is_looked_for_before_it_is_made_again(server: Server, fault: str | int) -> None:
    http = client(server)
    server.faults = [fault]

    def done() -> dict[str, int] | None:
        seen = http.get("/counter").json()
        return dict(seen) if seen["made"] else None

    assert http.change("POST", "/counter", {}, done=done) == {"made": 1}
    assert server.made == 1


def test_a_change_that_nobody_can_look_for_is_not_made_again(server: Server) -> None:
    http = client(server)
    server.faults = [DONE_THEN_CUT]
    with pytest.raises(StepFailed, match="did not say whether it did POST /counter"):
        http.change("POST", "/counter", {})
    assert server.made == 1


def test_a_change_that_was_surely_not_made_is_made_again(server: Server) -> None:
    http = client(server)
    server.faults = [500, 500]  # "Database error": SQLite was busy
    assert http.change("POST", "/counter", {}) == {"made": 1}


def test_a_server_that_runs_is_waited_for_without_end_and_a_person_is_told(server: Server) -> None:
    said: list[str] = []
    http = client(server, patience=None, say=said.append, told_after=0.0, gone_after=0.0)
    server.faults = [STALL, STALL]
    assert http.get("/counter").json() == {"made": 0}
    assert said
    assert "the server has not answered for" in said[0]
    assert "ReadTimeout" in said[0]
    assert "it runs; asking again" in said[0]


def test_a_server_whose_processes_have_ended_is_given_up_with_its_last_error(server: Server) -> None:
    why = "nothing of it runs; the last error in its log: no space left"
    http = client(server, patience=None, gone=lambda: why, gone_after=0.5)
    server.end()
    with pytest.raises(
        Unreachable,
        match=r"the server did not answer GET /counter within \d+ s \(ConnectError.*nothing of it runs.*no space left",
    ):
        http.get("/counter")


def test_patience_ends(server: Server) -> None:
    http = client(server, patience=0.5)
    server.faults = [STALL] * 20
    with pytest.raises(Unreachable, match="did not answer GET /counter"):
        http.get("/counter")


def test_a_wrong_password_is_no_reason_to_ask_again(server: Server) -> None:
    asked: list[int] = []

    def refused(http: httpx.Client) -> httpx.Response:
        asked.append(1)
        return http.get("/counter")  # 401: no token was given

    with pytest.raises(RunbookError, match="answered 401"):
        PatientHttp("the server", f"http://127.0.0.1:{server.port}", refused, patience=30, gone=lambda: None, say=print)
    assert asked == [1]
