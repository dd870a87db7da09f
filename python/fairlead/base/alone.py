"""One export at a time, and nothing left changed: threads wait for each other, signals for a moment that does no harm.

1. Recording throws switches that PyTorch has once per process. So exports of several threads are done one after the
   other; an export within another belongs to it. Threads that only run models are not waited for: what is switched is
   switched for the thread that records (record/switches.py).
2. Python calls the handler of a signal between any two instructions: also after a change, and before the line that
   would take it back. So what is changed for the length of a block goes through `changed`, which no signal interrupts
   and which notes how it is taken back; and while an export runs, handlers are called through the door below. One
   exception gets out of them, none while the export begins or ends; what was not taken back by then is taken back.
3. SIGTERM is an interrupt too, and ends the process as it would have once everything is tidy.
4. What a handler raised and somebody swallowed, or took for the model's own error, is raised at the end.
"""

from __future__ import annotations

import contextlib
import functools
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import torch
from torch.overrides import _get_current_function_mode_stack, _pop_mode
from torch.utils import _python_dispatch as dispatch

from fairlead.base.signals import Terminated

Function = TypeVar("Function", bound=Callable[..., Any])
INSISTS = 3  # so many signals after the first get through, whatever is half done

_turn = threading.RLock()
_door: Door | None = None  # of the export that runs, whichever thread it is in


class Door:
    """What an export found, the handlers of signals while it runs, and what it has changed so far."""

    def __init__(self) -> None:
        self.thread = threading.get_ident()
        self.shielded = 1  # signals wait while this is more than 0
        self.closed = False
        self.waiting: list[int] = []
        self.raised: BaseException | None = None
        self.raised_by = 0
        self.changes: list[Change] = []
        self.handlers: dict[int, Any] = {}

    # ---- signals -------------------------------------------------------------------------------------

    def install(self) -> None:
        if threading.current_thread() is not threading.main_thread():
            return  # signals do not come here
        for number in (signal.SIGINT, *sorted(signal.valid_signals() - {signal.SIGINT})):
            before = signal.getsignal(number)
            if callable(before) or (number == signal.SIGTERM and before == signal.SIG_DFL):
                self.handlers[number] = before
                signal.signal(number, self.came)

    def came(self, number: int, frame: Any) -> None:
        if self.closed:
            self.hand_over(number, frame)
        elif self.shielded or (self.raised is not None and self.waiting.count(number) < INSISTS):
            self.waiting.append(number)
        else:
            self.deliver(number, frame)

    def deliver(self, number: int, frame: Any) -> None:
        before = self.handlers[number]
        try:
            if callable(before):
                before(number, frame)
            else:
                raise Terminated
        except BaseException as error:
            self.raised, self.raised_by = error, number
            raise

    def deliver_waiting(self) -> None:
        while self.waiting and not self.shielded and self.raised is None:
            self.deliver(self.waiting.pop(0), None)

    def hand_over(self, number: int, frame: Any) -> None:
        """To whoever had the signal before the export."""
        before = self.handlers[number]
        if callable(before):
            before(number, frame)
        else:
            signal.signal(number, before)
            os.kill(os.getpid(), number)

    # ---- what was before -----------------------------------------------------------------------------

    def look(self) -> None:
        self.grad = torch.is_grad_enabled()
        self.random = torch.get_rng_state()
        self.modes = len(dispatch._get_current_dispatch_mode_stack()), len(_get_current_function_mode_stack())
        self.flags = {name: value for name, value in vars(dispatch).items() if name.startswith("_is_in_")}

    def put_back(self) -> None:
        for change in reversed(self.changes):
            change()
        if self.raised is None:  # every block has ended by itself
            return
        while len(_get_current_function_mode_stack()) > self.modes[1]:
            _pop_mode()
        while len(dispatch._get_current_dispatch_mode_stack()) > self.modes[0]:
            dispatch._pop_mode()
        vars(dispatch).update(self.flags)
        torch.set_grad_enabled(self.grad)
        torch.set_rng_state(self.random)

    # ---- open and close ------------------------------------------------------------------------------

    def wait(self) -> None:
        """For the exports of other threads; signals are not kept waiting meanwhile."""
        while not _turn.acquire(timeout=0.05):
            self.shielded = 0
            self.deliver_waiting()
            self.shielded = 1

    def close(self) -> None:
        global _door
        try:
            self.put_back()
        finally:
            _door = None
            _turn.release()
            self.leave()

    def leave(self) -> None:
        self.closed = True
        for number in reversed(self.handlers):
            if signal.getsignal(number) == self.came:
                signal.signal(number, self.handlers[number])
        terminated = self.raised_by if not callable(self.handlers.get(self.raised_by, len)) else 0
        for number in dict.fromkeys([*self.waiting, terminated]):
            if number and (number != self.raised_by or number == terminated):
                self.hand_over(number, None)
        if self.raised is not None and sys.exc_info()[1] is not self.raised:
            raise self.raised


class Change:
    """What takes a change back, at most once."""

    def __init__(self, undo: Callable[..., Any], held: Any):
        self.undo, self.held = undo, [held]

    def __call__(self) -> None:
        with uninterrupted():
            if self.held:
                self.undo(*self.held.pop())


def own_door() -> Door | None:
    """That of the export which runs in this thread."""
    return _door if _door is not None and _door.thread == threading.get_ident() else None


@contextlib.contextmanager
def uninterrupted() -> Iterator[None]:
    """Signals come after the block. Nothing else is in it than a change and the note of it."""
    door = own_door()
    if door is None:
        yield
        return
    door.shielded += 1
    try:
        yield
    finally:
        door.shielded -= 1
    door.deliver_waiting()


def changed(do: Callable[[], tuple[Any, ...]], undo: Callable[..., Any]) -> Change:
    """Does something that `undo`, called with what `do` gave, takes back: when the answer is called, or as the export
    ends."""
    door = own_door()
    with uninterrupted():
        change = Change(undo, do())
        if door is not None:
            door.changes.append(change)
    return change


@contextlib.contextmanager
def during(do: Callable[[], tuple[Any, ...]], undo: Callable[..., Any]) -> Iterator[None]:
    """`changed` for the length of a block."""
    change = changed(do, undo)
    try:
        yield
    finally:
        change()
        forget(change)


@contextlib.contextmanager
def taken_back() -> Iterator[None]:
    """What is changed in the block is taken back as it ends, and not as the export does: for a block within other
    changes, of which it would put back what it found."""
    door = own_door()
    begin = len(door.changes) if door is not None else 0
    try:
        yield
    finally:
        while door is not None and len(door.changes) > begin:
            door.changes[-1]()
            door.changes.pop()


def forget(change: Change) -> None:
    """A change that is over need not be kept until the export ends."""
    door = own_door()
    if door is not None and door.changes and door.changes[-1] is change:
        door.changes.pop()


def pass_on(error: BaseException) -> None:
    """Raises what a handler of a signal raised: it is no answer of the model that was interrupted."""
    door = own_door()
    if door is not None and door.raised is error:
        raise error


def alone(function: Function) -> Function:
    """For what exports: one call at a time, and everything as it was afterwards."""

    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        global _door
        if own_door() is not None:
            return function(*args, **kwargs)
        door = Door()
        try:
            door.install()
            door.wait()
        except BaseException:
            door.leave()
            raise
        # Two blocks, because a signal may come as the inner one ends: at most one does (see `came`).
        try:
            try:
                door.look()
                _door = door
                door.shielded = 0
                door.deliver_waiting()
                return function(*args, **kwargs)
            finally:
                door.shielded = 1
        finally:
            door.shielded = 1
            door.close()

    return run  # type: ignore[return-value]


def _after_fork() -> None:
    """A child has none of the threads that were exporting."""
    global _turn, _door
    if own_door() is None:
        _turn, _door = threading.RLock(), None


os.register_at_fork(after_in_child=_after_fork)
