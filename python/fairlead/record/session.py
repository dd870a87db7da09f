"""The recording session of one model: runs it under a dispatch mode and a function mode, and puts everything back."""

from __future__ import annotations

import contextlib
import math
import os
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from fairlead import _core
from fairlead.base.alone import changed, forget, pass_on
from fairlead.base.memory import at_most_more, free_memory, raise_if_memory_lacks
from fairlead.patches.model_state import ModelState
from fairlead.record.control_flow import register_rules
from fairlead.record.direct import set_direct
from fairlead.record.given_data import watch_data
from fairlead.record.indexing import CANONICAL
from fairlead.record.light import Light, NeedsWeightsError, device_of, needs_data, stays
from fairlead.record.memos import Memos
from fairlead.record.operators import Kept, define, kept_functions, parts_of
from fairlead.record.quantized_modules import Quantized, is_packed
from fairlead.record.switches import tracing_switches
from fairlead.record.threads import recorded_here, recorded_threads
from fairlead.tree.caches import Kind, kind_of, remember_sizes
from fairlead.tree.dtypes import DTYPES
from fairlead.tree.leaves import leaf_tensors, with_numbers

_KEPT: dict[Any, Any] = {}  # by function


def snapshot(tensor: torch.Tensor) -> tuple[Any, ...]:
    """A contiguous copy of a tensor that came from outside, and its address: it may be written later in the run."""
    with torch._C._DisableTorchDispatch(), torch._C.DisableTorchFunction():
        if tensor.is_meta:  # nn.Parameter(self.weight * 2), in a run without weights
            raise NeedsWeightsError("what the weights decide is in a tensor that no operator made")
        copy = tensor.detach().contiguous().clone()
        return copy, copy.data_ptr()


def snapshot_of(session: RecordingSession) -> Callable[[torch.Tensor, bool], tuple[Any, ...]]:
    """For its core, which it holds."""
    held = weakref.ref(session)

    def copied(tensor: torch.Tensor, constant: bool) -> tuple[Any, ...]:
        owner = held()
        if (
            tensor.is_meta and not constant
        ):  # an operator made it of weights alone, and stays one: there is nothing to keep
            return None, 0
        if constant and tensor.is_meta and tensor.numel() and owner is not None and owner.placed is not None:
            # Elsewhere a run with weights has them.
            raise NeedsWeightsError("a constant that it makes beside a tensor without data has none either")
        return snapshot(tensor)

    return copied


def complex_number(value: complex, wide: bool) -> torch.Tensor:
    with torch._C._DisableTorchDispatch(), torch._C.DisableTorchFunction():
        return torch.tensor(value, dtype=torch.complex128 if wide else torch.complex64)


_OWN_WAY: dict[type, bool] = {}  # by class of tensors
_PLAIN: Any = torch.Tensor.__torch_function__


def goes_its_way(types: Any) -> bool:
    """Whether a class of tensors (quantized weights) computes functions in a way of its own: what it executes is looked
    at, and not the function, since it has no bytes that a file could hold."""
    for cls in types:
        own = _OWN_WAY.get(cls)
        if own is None:
            function, dispatch = cls.__torch_function__, cls.__torch_dispatch__
            plain = function is torch._C._disabled_torch_function_impl or (
                getattr(function, "__func__", function) is _PLAIN.__func__
            )
            own = _OWN_WAY[cls] = cls is not torch.nn.Parameter and not (
                plain and dispatch is torch._C._disabled_torch_dispatch_impl
            )
        if own:
            return True
    return False


class _Dispatch(TorchDispatchMode):
    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """No: the wrapper that this asks for costs more than the recording itself."""
        return False

    def __init__(self, session: RecordingSession):
        super().__init__()  # type: ignore[no-untyped-call]  # torch has no types there
        self.session = session

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        session = self.session
        if session.muted or func.namespace == "profiler":  # record_function: a name for what is within
            return func(*args, **kwargs) if kwargs else func(*args)
        if types and goes_its_way(types):
            return NotImplemented  # its own class is asked next, and this mode sees what that executes
        parts = parts_of(func)
        if parts is not None:
            with self:
                return parts(*args, **kwargs or {})
        if session.light is not None:
            out = session.light.call(func, args, kwargs)
        else:
            out = func(*args, **kwargs) if kwargs else func(*args)
        session.add(func, args, kwargs, out)
        return out


_READS = {
    torch.Tensor.tolist: Kept("fairlead.tolist", "self"),
    torch.Tensor.numpy: Kept("fairlead.numpy", "self"),
    torch.Tensor.__array__: Kept("fairlead.numpy", "self"),
}


def _shape(session: Any, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    found = session.core.shape_of(args[0])
    return func(*args, **kwargs or {}) if found is None else found


def _size(session: Any, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    axis = args[1] if len(args) > 1 else (kwargs or {}).get("dim")
    found = session.core.shape_of(args[0]) if axis is None else session.core.size_of(args[0], axis)
    return func(*args, **kwargs or {}) if found is None else found


def _count(session: Any, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    found = session.core.count_of(args[0] if args else kwargs["input"])
    return func(*args, **kwargs or {}) if found is None else found


def _item(session: Any, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return session.core.read_result(func(*args, **kwargs or {}))


def _truth(session: Any, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The truth of a number is whether it is not 0: a question that is recorded, as those of bools are."""
    tensor = args[0] if args else kwargs["input"]
    return func(tensor if tensor.dtype == torch.bool else tensor != 0)


def _equal(session: Any, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """torch.equal: its answer is read from a tensor, where the sizes are the same."""
    one, other = args if len(args) == 2 else (args[0] if args else kwargs["input"], kwargs["other"])
    shape, wanted = session.core.shape_of(one), session.core.shape_of(other)
    if shape is None or wanted is None or one.dtype != other.dtype:
        return func(one, other)
    return bool(shape == wanted) and bool((one == other).all())


def _layout(session: Any, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Strides say whether a size is 1: a question about each."""
    for size in session.core.shape_of(args[0]) or ():
        bool(size == 1)
    return func(*args, **kwargs or {})


def _canonical(replacement: Any) -> Any:
    def call(session: Any, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        session.core.note_call(func, args, kwargs)
        return replacement(session, *args, **kwargs or {})

    return call


# Functions whose results remember where they come from, and those that have one form at every size.
_SHAPE: Any = torch.Tensor.shape  # a descriptor
_WATCHED: dict[Any, Callable[..., Any]] = {
    _SHAPE.__get__: _shape,
    torch.Tensor.size: _size,
    torch.Tensor.numel: _count,
    torch.Tensor.nelement: _count,
    torch.numel: _count,
    torch.Tensor.item: _item,
    torch.Tensor.__bool__: _truth,
    torch.Tensor.is_nonzero: _truth,
    torch.is_nonzero: _truth,
    torch.Tensor.equal: _equal,
    torch.equal: _equal,
    torch.Tensor.is_contiguous: _layout,
    torch.Tensor.stride: _layout,
    torch.Tensor.device.__get__: device_of,
    torch.Tensor.to: stays,
    torch.Tensor.cpu: stays,
    torch.Tensor.cuda: stays,
    **{func: _canonical(replacement) for func, replacement in CANONICAL.items()},
}


def _reshaped_as(session: Any, tensor: Any, other: Any) -> Any:
    return torch.Tensor.reshape, (tensor, session.core.shape_of(other) or other.shape), None


def _raveled(session: Any, input: Any) -> Any:
    return torch.Tensor.reshape, (input, -1), None


def _deep_copied(session: Any, input: torch.Tensor, memo: Any) -> Any:
    """A clone, where the tensor is all of its memory: of views of one memory the copies are views of one, too."""
    with torch._C.DisableTorchFunction(), torch._C._DisableTorchDispatch():
        memory = input.untyped_storage()
        key = (__name__, memory.data_ptr())
        whole = input.is_contiguous() and memory.nbytes() == input.nbytes
    if not whole or key in memo or input.is_meta:
        return torch.Tensor.__deepcopy__, (input, memo), None
    memo[key] = memory
    return torch.clone, (input,), None


def _unflattened(session: Any, input: Any, dim: Any, sizes: Any) -> Any:
    shape = session.core.shape_of(input)
    if shape is None or not isinstance(dim, int) or not all(isinstance(size, int) for size in sizes):
        return torch.Tensor.unflatten, (input, dim, sizes), None
    plain = [int.__pos__(size) for size in sizes]  # looked at without a question
    if not -len(shape) <= dim < len(shape) or 0 in plain or plain.count(-1) > 1:
        return torch.Tensor.unflatten, (input, dim, sizes), None
    place, whole = dim % len(shape), list(sizes)
    if -1 in plain:  # of this axis: of all of them it would be unknown where there is no element
        at = plain.index(-1)
        whole[at] = shape[place] // math.prod(whole[:at] + whole[at + 1 :])
    return torch.Tensor.view, (input, (*shape[:place], *whole, *shape[place + 1 :])), None


def _fake_quantized(
    session: Any, x: Any, observes: Any, quantizes: Any, low: Any, high: Any, scale: Any, zero: Any, share: Any,
    least: int, most: int, axis: int, by_row: bool = False, symmetric: bool = False,
) -> Any:  # fmt: skip
    """What a fake quantizer computes once it observes no longer."""
    with torch._C._DisableTorchDispatch():
        watching, active = bool(observes.any()), bool(quantizes.any())
    if watching:
        raise _core.Unsupported(
            "[record] Expected fake quantization whose scales are settled, got one that still observes what goes "
            "through it, and so changes at each call. Call model.apply(torch.ao.quantization.disable_observer) first."
        )
    if not active:
        return torch.Tensor.clone, (x,), None
    if by_row:
        return torch.fake_quantize_per_channel_affine, (x, scale, zero, axis, least, most), None
    return torch.fake_quantize_per_tensor_affine, (x, scale, zero, least, most), None


# Calls that another function stands for: some copy at some sizes and not at others, one computes sizes below Python.
_STAND_IN: dict[Any, Callable[..., Any]] = {
    torch.Tensor.reshape_as: _reshaped_as,
    torch.Tensor.ravel: _raveled,
    torch.ravel: _raveled,
    torch.Tensor.__deepcopy__: _deep_copied,
    torch.Tensor.unflatten: _unflattened,
    torch.unflatten: _unflattened,
    torch.fused_moving_avg_obs_fake_quant: _fake_quantized,
}


class _Functions(TorchFunctionMode):
    def __init__(self, session: RecordingSession):
        super().__init__()
        self.session = session

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        session = self.session
        if session.muted or (types and goes_its_way(types)):
            return func(*args, **kwargs) if kwargs else func(*args)
        if torch._C._functorch.maybe_current_level() is not None:
            # Tensors of vmap and grad are none of memory: what these make of a function is looked at.
            session.core.note_call(func, args, kwargs)
            return func(*args, **kwargs) if kwargs else func(*args)
        if not kwargs:
            out = session.call_directly(func, args)
            if out is not None:
                return out
        if func in _STAND_IN:
            func, args, kwargs = _STAND_IN[func](session, *args, **kwargs or {})
        whole = _KEPT.get(func)
        kept = whole.form(args, kwargs) if whole is not None else None
        if kept is None:
            watched = _WATCHED.get(func)
            if watched is not None:
                return watched(session, func, args, kwargs)
            session.core.note_call(func, args, kwargs)
            if kwargs:
                return func(*args, **kwargs)
            out = func(*args)
            if whole is None:
                session.core.learn_call(func, args, out)
            return out
        session.core.note_call(func, args, kwargs)
        if kept.check is not None:
            kept.check(*args, **(kwargs or {}))
        # Its parts are not looked at, so they need not come by.
        session.muted = True
        try:
            with torch._C._DisableTorchDispatch():
                if session.light is not None:
                    out = session.light.call(func, args, kwargs)
                else:
                    out = func(*args, **kwargs) if kwargs else func(*args)
        finally:
            session.muted = False
        args, kwargs = kept.arguments(args, kwargs)
        if kept.name == "fairlead.tolist":
            session.add(kept, args, kwargs, out if isinstance(out, list) else [out])
            read = session.core.read_result(out)
            if args[0].dim() == 1:
                _core.note_list(read, args[0])
            return read
        elif kept.name == "fairlead.numpy":
            session.add(kept, args[:1], None, [])
        else:
            session.add(kept, args, kwargs, out)
        return out


# Whose lines are not the model's. Ours comes first; code made by torch or dataclasses has no file.
LIBRARIES = (
    os.path.join(os.path.dirname(os.path.dirname(__file__)), ""),
    os.path.join(os.path.dirname(torch.__file__), ""),
    "<",
)


def place_of(error: BaseException) -> str:
    """The line of the model that raised, as the recorder names lines; nothing where no line is the model's."""
    found = ""
    step = error.__traceback__
    while step is not None:
        file = step.tb_frame.f_code.co_filename
        if not file.startswith(LIBRARIES):
            found = f" (at {file.rpartition('site-packages/')[2]}:{step.tb_lineno})"
        step = step.tb_next
    return found


def watched_modules(core: Any) -> tuple[Any, ...]:
    """Hooks that tell the core which module runs. PyTorch has them for all threads: others are not ours."""
    modules = torch.nn.modules.module
    return (
        modules.register_module_forward_pre_hook(lambda module, _: core.enter(module) if recorded_here() else None),
        modules.register_module_forward_hook(
            lambda module, _, out: core.leave() if recorded_here() else None, always_call=True
        ),
    )


# Bytes of parameters from which on a run without them saves time: PyTorch finds sizes alone in Python, operator by
# operator, which takes as long as to compute with a few million weights.
HEAVY = 200 << 20
MOST_ANSWERED = 8  # lines whose questions one run is given the answers to


def instead(before: str, now: str) -> str:
    """What a run that parted executes; the same operator may be called otherwise."""
    return f"{now} with other arguments" if now == before else f"{now} where it executed {before}"


@dataclass
class Outcome:
    """What came of one run: a run number, or why there is none."""

    run: int = -1
    error: str = ""  # the model's own error
    parted: tuple[Any, ...] | None = None  # (operator number, in the reference, in this run)
    line: int = 0  # of the question that parted it from the reference
    enough: bool = False  # a brief run went as far as it should, like the reference
    outputs: Any = None
    visible: bool = True  # some number of the run differs from the reference

    @property
    def ok(self) -> bool:
        return self.run >= 0


class RecordingSession:
    """Records runs of one model. Use as a context manager; leaving it restores model, torch and Transformers.

    With `roll`, runs that only differ in how often they go through a loop are one program."""

    def __init__(self, model: torch.nn.Module, roll: bool = False, flags: bool = True):
        self.model = model
        self.roll = roll
        self.flags = flags  # torch's "am I being traced" is yes
        self.carry = True  # sizes remember where they come from
        self.numbers = False  # that forward returns are outputs, too
        self.weightless = Light(model)
        self._light: Light | None = None
        self.in_vain: set[tuple[int, int]] = set()  # (reference, line): its answers make another program of a run
        self.needs_weights = False  # a run without them failed where one with them did not
        self.refuses_alike = False  # a run without them failed where one with them did, too
        self.placed: Any = None  # weights that stay in files, and are read only where nothing else works
        self.about_weights = False  # the last error says that a tensor has no data
        self.real = self.lean = self.checked = 0  # runs with weights, without, and of eager in checks
        self.muted = False
        self.quantized = Quantized() if any(map(is_packed, model.modules())) else None
        self.follows_functions = False  # torch.cond and its like are run, and not recorded
        if not _KEPT:
            _KEPT.update(kept_functions())
            _KEPT.update(_READS)
        register_rules(_Dispatch, LIBRARIES)
        self.core = _core.Recorder(
            torch.Tensor, torch.Size, DTYPES, define, snapshot_of(self), complex_number, list(LIBRARIES)
        )
        set_direct(self.core)
        self.add, self.call_directly = self.core.add, self.core.call_directly
        self.core.set_modules([(module, name) for name, module in model.named_modules()])
        tensors = list(model.named_parameters()) + list(model.named_buffers())
        self.core.set_persistent([(name, tensor) for name, tensor in tensors])
        self._stack = contextlib.ExitStack()
        self._entered = 0
        self.state = ModelState(model)
        self.memos = Memos()
        changed(tuple, self.state.restore)

    @property
    def light(self) -> Light | None:
        """While a run goes without weights."""
        return self._light

    @light.setter
    def light(self, light: Light | None) -> None:
        self._light = light
        self.core.set_light(None, None) if light is None else self.core.set_light(light.calls, light.call)

    def __enter__(self) -> Any:
        self._entered += 1
        if self._entered == 1:
            self._stack.enter_context(torch.no_grad())
            self._stack.enter_context(tracing_switches(self.flags))
            self._stack.enter_context(watch_data(self.core.note_data))
        return self

    def __exit__(self, *exc: Any) -> Any:
        self._entered -= 1
        return self._stack.__exit__(*exc) if self._entered == 0 else None

    def execute(self, func: Any, *args: Any) -> Any:
        """One operator, recorded with its arguments as they are given: sizes keep their memory."""
        self.muted = True
        try:
            with torch._C._DisableTorchDispatch():
                out = self.light.call(func, args, None) if self.light is not None else func(*args)
        finally:
            self.muted = False
        self.core.note_call(func, args, None)
        self.add(func, args, None, out)
        return out

    def run_cheaply(
        self,
        call: Callable[[], tuple[tuple[Any, ...], dict[str, Any]]],
        reference: int,
        heavy: bool,
        spare: bool = False,
        brief: bool = False,
    ) -> Outcome | None:
        """Without weights where that saves something and works; with them otherwise, or None where `spare` forbids it.
        `call` makes the arguments: a run may change them."""
        if self.placed is not None:
            return self.run_in_place(call, reference, spare, brief)
        if self.needs_weights or not (heavy or self.weightless.bytes > HEAVY):
            return None if spare else self.run_alike(call, reference, brief)
        self.light = self.weightless
        try:
            outcome = self.run_alike(call, reference, brief)
        finally:
            self.light = None
        if not outcome.error or (self.refuses_alike and not self.about_weights):
            return outcome
        if spare:
            return None
        outcome = self.run_alike(call, reference, brief)
        self.needs_weights = not outcome.error
        self.refuses_alike = bool(outcome.error)
        return outcome

    def run_in_place(
        self,
        call: Callable[[], tuple[tuple[Any, ...], dict[str, Any]]],
        reference: int,
        spare: bool = False,
        brief: bool = False,
    ) -> Outcome | None:
        """Without weights, and with them only where the model reads what they decide."""

        def run() -> Outcome:
            return self.run(*call(), keep=True) if reference < 0 else self.run_alike(call, reference, brief)

        if self.needs_weights:
            return None if spare else run()
        self.light = self.weightless
        try:
            outcome = run()
        finally:
            self.light = None
        if not outcome.error or not self.about_weights:
            return outcome
        if spare:
            return None
        self.placed.read(outcome.error)
        self.needs_weights = True
        return run()

    def run_leanly(self, args: tuple[Any, ...], kwargs: dict[str, Any], reference: int) -> Outcome:
        """With weights, but for those that stay in files."""
        self.light = self.weightless if self.placed is not None and not self.needs_weights else None
        try:
            return self.run(args, kwargs, reference)
        finally:
            self.light = None

    def run_alike(
        self, call: Callable[[], tuple[tuple[Any, ...], dict[str, Any]]], reference: int, brief: bool = False
    ) -> Outcome:
        """A run that parts from the reference by a question is made again with the answers of the reference: a model
        that leaves out what would do nothing (`if pad > 0`) executes the same program then, and computes the same."""
        parted = outcome = self.run(*call(), reference, brief=brief)
        lines: list[int] = []
        while outcome.parted is not None and outcome.line and len(lines) < MOST_ANSWERED:
            if outcome.line in lines or (reference, outcome.line) in self.in_vain:
                return parted
            lines.append(outcome.line)
            outcome = self.run(*call(), reference, lines=lines)
        if not lines:
            return parted
        if outcome.ok:
            own = self.run(*call())
            alike = own.ok and self.core.same_but_neutral(own.run, outcome.run)
            for each in (own, outcome):
                if each.ok and not (alike and each is outcome):
                    self.core.forget(each.run)
            if alike:
                return outcome
        self.in_vain.add((reference, lines[-1]))
        return parted

    @contextlib.contextmanager
    def modes(self) -> Iterator[None]:
        with _Dispatch(self), _Functions(self), self.quantized or contextlib.nullcontext():
            yield

    def run(
        self,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        reference: int = -1,
        keep: bool = False,
        lines: list[int] | None = None,
        brief: bool = False,
    ) -> Outcome:
        """Runs the model once and records it. Errors of the model are an outcome, not an exception.
        Questions of `lines` have the answers of the reference."""
        inputs = leaf_tensors((list(args), kwargs))
        self.real, self.lean = self.real + (self.light is None), self.lean + (self.light is not None)
        core = self.core
        self.memos.forget()
        if self.quantized is not None:
            self.quantized.known.clear()
        core.begin(inputs, reference, keep, self.roll, self.carry, brief, lines or [])
        for value in (*args, *kwargs.values()):
            if kind_of(value) is not Kind.NOT:
                remember_sizes(value, core.size_of)
        hooks = changed(lambda: watched_modules(core), lambda *handles: [handle.remove() for handle in handles])
        # A trial may ask for far more than the example did. With a GPU the system counts otherwise.
        trial = reference >= 0 and not torch.cuda.is_initialized()
        try:
            try:
                with (
                    recorded_threads(self.modes),
                    at_most_more(free_memory() // 2) if trial else contextlib.nullcontext(),
                ):
                    outputs = self.model(*args, **kwargs)
                    if self.numbers:
                        outputs = with_numbers(outputs)
            except _core.FairleadError:
                raise
            except Exception as error:  # the model refused these sizes: whatever it raised is the answer
                pass_on(error)
                if reference < 0:  # at other sizes the model may take more than there is
                    raise_if_memory_lacks(error)
                self.about_weights = self.light is not None and needs_data(error)
                words = f"{type(error).__name__}: {error}".strip().split("\n")[0][:300]
                return Outcome(error=words + place_of(error))
            core.returned()
            leaves = leaf_tensors(outputs)
            run = core.end(leaves)
            if reference >= 0:
                parted = core.difference(reference, run, self.roll)
                if parted is not None:
                    return Outcome(parted=parted, line=core.deciding_line(reference, run, parted[0]))
            visible = reference < 0 or not core.same_numbers(reference, run)
            return Outcome(run=run, outputs=outputs, visible=visible)
        except _core.Enough:
            return Outcome(enough=True, visible=core.visible_so_far(reference))
        except _core.Parted as parted:
            op = parted.args[0]
            line = core.deciding_line(reference, -1, op)
            return Outcome(parted=(op, core.describe(reference, op), core.describe_current()), line=line)
        finally:
            self.muted = False
            hooks()
            forget(hooks)
            core.abort()
            self.memos.forget()
            self.state.restore()
