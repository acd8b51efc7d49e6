"""HTTP to a server that may be slow, gone for a while, or started anew: a reading goes on until it is answered, a
change is never made twice.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, TypeVar

import httpx
from tenacity import RetryCallState, Retrying, retry_if_exception_type, wait_exponential

from kraft_runbook.errors import RunbookError, StepFailed, Unreachable

T = TypeVar("T")
FAULTY = 600.0
"""Seconds for which a server that answers, but with errors of its own (5xx), is asked again."""
GONE = 60.0
"""Seconds that a server whose processes have ended is given to be started anew."""
TOLD_AFTER = 30.0
"""Seconds after which a person is told what is waited for, and again each minute."""
NEVER_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)


class _Again(Exception):
    """One attempt was in vain. ``answered``: the server said so itself."""

    def __init__(self, why: str, *, answered: bool = False) -> None:
        super().__init__(why)
        self.answered = answered


class PatientHttp:
    """Calls of one server by one user.

    ``log_in`` asks for a token: it is called at the beginning and whenever the server does not take the token any more.
    ``patience``: seconds that a call goes on while the server is silent; None: as long as it is not ``gone()``, which
    says in words why nobody will answer any more, or None. ``say`` tells a person what is waited for. ``timeout``:
    seconds for one attempt; ``told_after``: before a person is told; ``gone_after``: that a server whose processes have
    ended is given to be started anew.
    """

    def __init__(
        self,
        server: str,
        url: str,
        log_in: Callable[[httpx.Client], httpx.Response],
        *,
        patience: float | None,
        gone: Callable[[], str | None],
        say: Callable[[str], None],
        timeout: float = 60,
        told_after: float = TOLD_AFTER,
        gone_after: float = GONE,
    ) -> None:
        self._told_after, self._gone_after = told_after, gone_after
        self._server, self._log_in, self._patience, self._gone, self._say = server, log_in, patience, gone, say
        self._http = httpx.Client(base_url=url, timeout=timeout)
        self._patiently("POST", "its login", self._renew)

    def get(self, path: str, *, absent: tuple[int, ...] = (), **given: Any) -> httpx.Response:
        """Read, again and again until it is answered. ``absent``: answers of 4xx that are no error. Raises Unreachable,
        RunbookError.
        """

        def attempt() -> httpx.Response:
            return self._sent("GET", path, **given)

        answer = self._patiently("GET", path, attempt)
        if answer.is_error and answer.status_code not in absent:
            raise self._refused("GET", path, answer)
        return answer

    def change(self, method: str, path: str, body: Any, *, done: Callable[[], T | None] | None = None) -> T | Any:
        """Make one change; its answer, or what ``done`` found.

        An attempt that surely changed nothing is repeated. One of which that is not known is not: ``done`` looks first
        whether the change is there, and only if it says None it is asked for again. Raises StepFailed where there is no
        ``done`` to look, Unreachable, RunbookError.
        """
        unknown = False

        def attempt() -> T | Any:
            nonlocal unknown
            if unknown and done is not None and (found := done()) is not None:
                return found
            try:
                answer = self._sent(method, path, json=body)
            except NEVER_SENT as error:
                raise _Again(_words(error)) from None
            except (httpx.TransportError, _Again) as error:
                if isinstance(error, _Again) and "Database error" in str(
                    error
                ):  # SQLite lets one writer through at a time: nothing was changed
                    raise
                unknown = True
                if done is None:
                    raise StepFailed(
                        f"{self._server} did not say whether it did {method} {path} ({_words(error)})",
                        way_out="look whether it is done; if it is not, do it again",
                    ) from None
                raise _Again(_words(error)) from None
            if answer.is_error:
                if unknown and done is not None and (found := done()) is not None:
                    return found
                raise self._refused(method, path, answer)
            return answer.json()

        return self._patiently(method, path, attempt)

    def _sent(self, method: str, path: str, **given: Any) -> httpx.Response:
        """One attempt. Raises httpx.TransportError, and _Again for an error of the server's own or a token that was
        renewed.
        """
        answer = self._http.request(method, path, **given)
        if answer.status_code == 401 or (answer.status_code == 403 and "Invalid JWT token" in answer.text):
            self._renew()
            answer = self._http.request(method, path, **given)
        if answer.is_server_error:
            raise _Again(f"{answer.status_code} {' '.join(answer.text.split())[:200]}", answered=True)
        return answer

    def _renew(self) -> None:
        answer = self._log_in(self._http)
        if answer.is_server_error:
            raise _Again(f"{answer.status_code} to the login", answered=True)
        if answer.is_error:
            raise self._refused("POST", str(answer.url), answer)
        self._http.headers["Authorization"] = f"Bearer {answer.json()['access_token']}"

    def _refused(self, method: str, path: str, answer: httpx.Response) -> RunbookError:
        return RunbookError(
            f"{self._server} answered {answer.status_code} to {method} {path}: {answer.text[:300]}",
            way_out="look at the API server's log",
        )

    def _patiently(self, method: str, path: str, attempt: Callable[[], T]) -> T:
        gone_since: float | None = None
        told = self._told_after

        def in_vain(state: RetryCallState) -> bool:
            """Whether to give up; also notes since when the server is gone."""
            nonlocal gone_since
            waited, error = state.seconds_since_start or 0.0, state.outcome.exception() if state.outcome else None
            if isinstance(error, _Again) and error.answered:
                gone_since = None
                return waited > (FAULTY if self._patience is None else self._patience)
            gone_since = (gone_since or time.monotonic()) if self._gone() else None
            gone_for_good = gone_since is not None and time.monotonic() - gone_since > (
                self._gone_after if self._patience is None else min(self._gone_after, self._patience)
            )
            return gone_for_good or (self._patience is not None and waited > self._patience)

        def tell(state: RetryCallState) -> None:
            nonlocal told
            waited, error = state.seconds_since_start or 0.0, state.outcome.exception() if state.outcome else None
            if waited > told and error is not None:
                self._say(
                    f"{self._server} has not answered for {waited:.0f} s ({_words(error)}):"
                    f" {self._gone() or 'it runs'}; asking again"
                )
                told = waited + 60

        retrying = Retrying(
            retry=retry_if_exception_type((_Again, httpx.TransportError)),
            wait=wait_exponential(multiplier=0.25, max=5),
            stop=in_vain,
            before_sleep=tell,
            reraise=True,
        )
        began = time.monotonic()
        try:
            return retrying(attempt)
        except (_Again, httpx.TransportError) as error:
            said = (
                f"{self._server} did not answer {method} {path} within {time.monotonic() - began:.0f} s"
                f" ({_words(error)})"
            )
            gone = self._gone()
            raise Unreachable(
                f"{said}: {gone}" if gone else said,
                way_out="read its log, start it anew where it has ended, and repeat this",
            ) from None


def _words(error: BaseException) -> str:
    """The error with its kind: a timeout of httpx has no text of its own."""
    return str(error) if isinstance(error, _Again) else f"{type(error).__name__}{f': {error}' if str(error) else ''}"
