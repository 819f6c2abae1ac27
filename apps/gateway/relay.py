"""Carries a call to its targets and the answer back, and sees to it that it is settled once.

Until the first content another target may be tried; afterwards a failure is told inside the stream.
Every way out of here, also that of a client who leaves, ends in one record.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from typing import TypeVar

import structlog

from apps.core.errors import InferAdminError, InvalidRequestError, UpstreamError
from apps.gateway.adapters.contract import Adapter, Answer, UpstreamRequest
from apps.gateway.adapters.dialects import adapter_for
from apps.gateway.adapters.failures import NOT_IMPLEMENTED, endpoint_not_answered
from apps.gateway.admission.batcher import RedisAwayError
from apps.gateway.admission.refusal import TargetsBusyError
from apps.gateway.call import Call, Ending
from apps.gateway.errors import ModelNotLoadedError, http_status
from apps.gateway.fronts.contract import Front
from apps.gateway.runtime import Runtime
from apps.gateway.snapshot import TargetRow
from apps.gateway.stream import OpenStream, open_stream
from apps.gateway.upstream import UpstreamResponse
from apps.gateway.usage import Usage

log = structlog.get_logger(__name__)

Reached = TypeVar("Reached")


@dataclass(frozen=True, slots=True)
class Try:
    """A target to try, how to speak to it, and until when (loop time)."""

    target: TargetRow
    adapter: Adapter
    request: UpstreamRequest
    deadline: float


class Relay:
    """Serves one admitted call."""

    def __init__(self, runtime: Runtime, call: Call, front: Front) -> None:
        self._runtime = runtime
        self._call = call
        self._front = front

    async def answer(self) -> Answer:
        """The whole answer, settled. Raises InferAdminError when no target gives one."""
        try:
            answer = await self._reach(self._whole)
        except BaseException as exc:
            await self._close_failed(exc)
            raise
        await self._close(Ending("ok", 200, usage=answer.usage))
        return answer

    async def open(self) -> AsyncIterator[bytes]:
        """The stream, once its first content is there; the caller iterates it to its end.

        Raises InferAdminError when no target comes that far.
        """
        try:
            stream = await self._reach(self._stream)
        except BaseException as exc:
            await self._close_failed(exc)
            raise
        return self._events(stream)

    async def _reach(self, run: Callable[[Try], Awaitable[Reached]]) -> Reached:
        """What the first target that works gives; the last failure when none does."""
        call = self._call
        deadline = asyncio.get_running_loop().time() + call.route.timeouts.total
        failure: InferAdminError | None = None
        for target in call.targets:
            if len(call.attempts) >= call.route.policy.max_attempts:
                break
            try:
                attempt = await self._prepared(target, deadline)
            except (InvalidRequestError, TargetsBusyError) as exc:  # another target may do it
                failure = failure or exc
                continue
            try:
                return await self._tried(run, attempt)
            except UpstreamError as exc:
                failure = exc
                if not exc.may_retry or asyncio.get_running_loop().time() >= deadline:
                    break
        raise _told(failure, call)

    async def _prepared(self, target: TargetRow, deadline: float) -> Try:
        """Raises InvalidRequestError for what the target cannot do, TargetsBusyError if full."""
        call = self._call
        adapter = adapter_for(target, call.order.endpoint)
        if adapter is None:
            raise endpoint_not_answered(call.order)
        request = call.prepared.get(target.id) or adapter.request_for(call.order, target)
        if not await self._has_place(target):
            raise TargetsBusyError
        return Try(target, adapter, request, deadline)

    async def _tried(self, run: Callable[[Try], Awaitable[Reached]], attempt: Try) -> Reached:
        """What the target gives; how it fared is noted."""
        call, breakers, target = self._call, self._runtime.breakers, attempt.target
        call.begin(target)
        breakers.begin(target.id)
        try:
            reached = await run(attempt)
        except UpstreamError as exc:
            call.end_attempt("failed", exc.code)
            if exc.code != ModelNotLoadedError.code:
                breakers.failed(target, exc)
            raise
        except InferAdminError:  # the request is wrong; the server works
            breakers.worked(target.id)
            raise
        breakers.worked(target.id)
        return reached

    async def _has_place(self, target: TargetRow) -> bool:
        """Whether the call has, or now gets, a place on the target."""
        call = self._call
        if call.placed is None or call.placed is target or call.held is None:
            return True
        index = call.held.targets.index(target.slot)
        try:
            taken = await self._runtime.gate.swap(call.id, call.held, (index,))
        except RedisAwayError:
            return False
        if taken is None:
            return False
        call.placed = target
        return True

    async def _whole(self, attempt: Try) -> Answer:
        call = self._call
        async with self._runtime.upstream.open(
            attempt.request,
            call.route.timeouts,
            deadline=attempt.deadline,
            request_id=call.request_id,
        ) as response:
            body = await response.whole()
        if response.status != 200:
            raise self._refused(attempt, response, body)
        answer = attempt.adapter.answer_of(call.order, attempt.target, body)
        call.end_attempt("ok")
        return answer

    async def _stream(self, attempt: Try) -> OpenStream:
        call = self._call
        async with AsyncExitStack() as stack:
            response = await stack.enter_async_context(
                self._runtime.upstream.open(
                    attempt.request,
                    call.route.timeouts,
                    deadline=attempt.deadline,
                    request_id=call.request_id,
                )
            )
            if response.status != 200:
                raise self._refused(attempt, response, await response.whole())
            reader = attempt.adapter.reader_for(call.order, attempt.target)
            stream = await open_stream(response, reader)
            stream.keeps = stack.pop_all()
        call.saw_content()
        return stream

    def _refused(self, attempt: Try, response: UpstreamResponse, body: bytes) -> InferAdminError:
        """The error that a status other than 200 stands for."""
        if response.status == NOT_IMPLEMENTED:
            return endpoint_not_answered(self._call.order)
        return attempt.adapter.failure_of(
            attempt.target, response.status, body, response.retry_after_seconds
        )

    async def _events(self, stream: OpenStream) -> AsyncIterator[bytes]:
        """Events for the client. Closing the generator early closes the upstream, too."""
        call = self._call
        presenter = self._front.presenter(call.order, stream.reader.format)
        try:
            yield presenter.take(stream.opening)
            while (chunks := await stream.more()) is not None:
                if chunks and (events := presenter.take(chunks)):
                    yield events
            await stream.see_the_end()
            call.end_attempt("ok")
            await self._close(Ending("ok", 200, usage=stream.usage()))
            yield presenter.take(stream.owed()) + presenter.end()
        except UpstreamError as exc:
            call.end_attempt("cut", exc.code)
            if call.target is not None:
                self._runtime.breakers.failed(call.target, exc)
            await self._close(Ending("partial", 200, exc.code, _flagged(stream.usage())))
            yield presenter.fail(exc)
        except Exception:
            call.end_attempt("failed", "internal_error")
            await self._close(Ending("partial", 200, "internal_error", _flagged(stream.usage())))
            raise
        finally:
            if not call.is_closed:  # the client has gone
                call.end_attempt("cancelled", "client_gone")
                self._close_later(_cancelled(_flagged(stream.usage())))
            await stream.close()

    async def _close_failed(self, exc: BaseException) -> None:
        """Settle a call that gave no answer."""
        call = self._call
        if isinstance(exc, InferAdminError):
            call.end_attempt("failed", exc.code)
            await self._close(Ending("error", http_status(exc), exc.code))
        elif isinstance(exc, Exception):
            call.end_attempt("failed", "internal_error")
            await self._close(Ending("error", 500, "internal_error"))
        else:
            call.end_attempt("cancelled", "client_gone")
            guess = Usage(call.order.input_tokens_held, 0, is_estimated=True)
            self._close_later(_cancelled(guess))

    def _close_later(self, ending: Ending) -> None:
        """Settle in a task of its own: this one is being cancelled."""
        self._runtime.background(self._close(ending))

    async def _close(self, ending: Ending) -> None:
        call = self._call
        if call.is_closed:
            return
        call.is_closed = True
        self._runtime.frames.take(call.measured(ending))
        await self._runtime.gate.settle(call.id, call.settlement(ending))
        self._runtime.waiting.freed(call.route.id)


def _cancelled(usage: Usage) -> Ending:
    return Ending("cancelled", 499, "client_gone", usage)


def _flagged(usage: Usage) -> Usage:
    """Usage of an answer that has no end: what a server counted until then may not be all."""
    return replace(usage, is_estimated=True)


def _told(failure: InferAdminError | None, call: Call) -> InferAdminError:
    """What the client is told when no target has worked."""
    if failure is None:
        return UpstreamError("no model server could be asked")
    if failure.code == ModelNotLoadedError.code:
        return ModelNotLoadedError(
            f"the model “{call.route.name}” is not loaded at the moment; try again when it is",
            retry_after_seconds=5,
        )
    return failure
