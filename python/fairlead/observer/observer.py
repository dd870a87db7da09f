"""Watches real calls of a model's method and infers what an exporter has to know: shapes, arguments,
relations.

observer = InputObserver()
with observer(model):
    model.generate(**tokens, max_new_tokens=4)
shapes = observer.infer_dynamic_shapes(set_batch_dimension_for=True)
kwargs = observer.infer_arguments()
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from fairlead.observer.observed import InputCandidate, InputObserverInfo, Relations
from fairlead.tree.capture import Parameters

__all__ = ["InputCandidate", "InputObserver", "InputObserverInfo", "Relations", "observe"]


class _Hub:
    """Stands in for one method of one object, for all observers of it, and takes itself away with the last
    of them.
    """

    def __init__(self, owner: Any, name: str, method: Callable[..., Any]):
        self.owner, self.name, self.method = owner, name, method
        self.had_own = name in getattr(owner, "__dict__", {})
        self.own = owner.__dict__[name] if self.had_own else None
        self.observers: list[InputObserver] = []

        @functools.wraps(method)
        def observed(*args: Any, **kwargs: Any) -> Any:
            return self.call(args, kwargs)

        # generate() reads the signature to know which arguments the model takes.
        observed.__signature__ = inspect.signature(method)  # type: ignore[attr-defined]
        observed.__fairlead_hub__ = self  # type: ignore[attr-defined]
        self.stand_in = observed

    @classmethod
    def of(cls, owner: Any, name: str) -> _Hub:
        method = getattr(owner, name)
        hub = getattr(method, "__fairlead_hub__", None)
        if isinstance(hub, cls) and hub.owner is owner:
            return hub
        hub = cls(owner, name, method)
        try:
            setattr(owner, name, hub.stand_in)
        except (AttributeError, TypeError) as error:
            raise ValueError(
                f"[observer] Expected an object whose method {name} can be replaced while it is observed, "
                f"got {type(owner).__name__} ({error})."
            ) from error
        return hub

    def leave(self, observer: InputObserver) -> None:
        for index, one in enumerate(self.observers):
            if one is observer:
                del self.observers[index]
                break
        if self.observers or getattr(self.owner, "__dict__", {}).get(self.name) is not self.stand_in:
            return
        if self.had_own:
            setattr(self.owner, self.name, self.own)
        else:
            delattr(self.owner, self.name)

    def call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        # An observer that is entered twice still sees one call.
        asked = [(one, one._begin(args, kwargs)) for one in dict.fromkeys(self.observers)]
        begun = [(one, candidate) for one, candidate in asked if candidate is not None]
        start = time.perf_counter()
        try:
            result = self.method(*args, **kwargs)
        except BaseException:
            for one, candidate in begun:
                one._failed(candidate)
            raise
        latency = time.perf_counter() - start
        for one, candidate in begun:
            one._done(candidate, result, latency)
        return result


class InputObserver:
    """Records the inputs and outputs of a method while the model is used.

    `value_if_missing`: values to note for arguments that a call does not have, by name or position, for
    example
    {"pixel_values": torch.empty(0, 3, 224, 224)}. They are never given to the model.
    """

    def __init__(self, value_if_missing: dict[str | int, Any] | None = None):
        for key in value_if_missing or {}:
            if isinstance(key, bool) or not isinstance(key, (str, int)):
                raise TypeError(
                    f"[InputObserver] Expected names or positions in value_if_missing, got {key!r} "
                    f"({type(key).__name__})."
                )
        self.value_if_missing = dict(value_if_missing or {})
        self.info: InputObserverInfo | None = None
        self._budget = 0
        self._unrecorded: list[str] = []

    # ---- recording

    @contextlib.contextmanager
    def __call__(self, model: Any, store_n_calls: int = 3, method_name: str = "forward") -> Iterator[InputObserver]:
        """Records up to `store_n_calls` calls more of `model.method_name` inside the block."""
        if not isinstance(store_n_calls, int) or store_n_calls < 0:
            raise ValueError(f"[observer] Expected a number of calls to store, got {store_n_calls!r}.")
        method = getattr(model, method_name, None)
        if not callable(method):
            raise ValueError(f"[observer] Expected an object with a method {method_name}, got {type(model).__name__}.")
        try:
            parameters = Parameters.of(method)
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"[observer] Expected a method with a readable signature, got "
                f"{type(model).__name__}.{method_name} ({error})."
            ) from error
        self._prepare(parameters)
        before = self._budget
        hub = _Hub.of(model, method_name)
        hub.observers.append(self)
        self._budget += store_n_calls
        try:
            yield self
        finally:
            hub.leave(self)
            self._budget = min(before, self._budget)

    def _prepare(self, parameters: Parameters) -> None:
        missing = self._missing_by_name(parameters)
        if self.info is None:
            self.info = InputObserverInfo(parameters, missing)
            return
        known = self.info.parameters
        if parameters.names != known.names and len(self.info):
            raise ValueError(
                f"[observer] Expected a method with the arguments ({', '.join(known.names)}) observed "
                "before, "
                f"got ({', '.join(parameters.names)}). Use another InputObserver."
            )

    def _missing_by_name(self, parameters: Parameters) -> dict[str, Any]:
        result = {}
        for key, value in self.value_if_missing.items():
            if isinstance(key, int):
                if not 0 <= key < len(parameters.positional):
                    raise ValueError(
                        f"[observer] Expected positions below {len(parameters.positional)} in "
                        f"value_if_missing, got {key}."
                    )
                key = parameters.positional[key]
            elif key not in parameters.names and not parameters.kwargs_name:
                raise ValueError(
                    f"[observer] Expected names of arguments ({', '.join(parameters.names)}) in "
                    f"value_if_missing, got {key}."
                )
            result[key] = value
        return result

    def _begin(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> InputCandidate | None:
        if self._budget <= 0 or self.info is None:
            return None
        try:
            candidate = self.info.add_inputs(args, kwargs)
        except Exception as error:  # the user's own call has to go on; the inference says what happened
            self._unrecorded.append(str(error))
            return None
        self._budget -= 1
        return candidate

    def _done(self, candidate: InputCandidate, result: Any, latency: float) -> None:
        try:
            self._stored().add_outputs(result, latency, candidate)
        except Exception as error:
            self._unrecorded.append(str(error))

    def _failed(self, candidate: InputCandidate) -> None:
        self._stored().discard(candidate)
        self._budget += 1

    # ---- questions

    def _stored(self) -> InputObserverInfo:
        if self.info is None or not len(self.info):
            why = f" {self._unrecorded[0]}" if self._unrecorded else ""
            raise RuntimeError(f"No inputs were captured. Run the model inside the observer's block first.{why}")
        return self.info

    def num_obs(self) -> int:
        """Number of stored calls."""
        return len(self.info) if self.info is not None else 0

    def is_empty(self) -> bool:
        return self.num_obs() == 0

    def infer_dynamic_shapes(self, set_batch_dimension_for: Any = None, dim_names: Any = None) -> Any:
        """Which axes vary, in the structure that torch.export.export takes as dynamic_shapes.

        `set_batch_dimension_for`: True, or names and positions of arguments whose axis 0 is dynamic whatever
        was seen.
        `dim_names`: True for labels instead of Dim.DYNAMIC, or {argument: {axis: label}}.
        """
        return self._stored().infer_dynamic_shapes(set_batch_dimension_for, dim_names=dim_names)

    def infer_arguments(
        self, index_or_args_or_kwargs: Any = None, flat: bool = False, as_args_kwargs: bool = False
    ) -> Any:
        """One complete set of arguments: a stored call (by default the first that lacks least), or the given
        tuple or dict.

        Tensors that it lacks are made to fit it, empty along an axis that varies.
        """
        return self._stored().infer_arguments(index_or_args_or_kwargs, flat, as_args_kwargs)

    def relations(self) -> Relations:
        """Dims that move together in all calls, and sums: attention_mask.1 == input_ids.1 +
        past_key_values.0.key.2.
        """
        return self._stored().relations()

    def calls(self, filled: bool = False) -> list[tuple[tuple[Any, ...], dict[str, Any]]]:
        """(args, kwargs) of every stored call, as they were made; `filled=True` completes each with what it
        lacks.
        """
        return self._stored().calls(filled)

    def example(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """(args, kwargs) without empty tensors, put together from several calls where none has everything."""
        return self._stored().example()

    def remove_inputs(self, input_names: Sequence[str | int]) -> int:
        """Forgets arguments in every stored call; the number of values gone. Unknown names are ignored."""
        names = [input_names] if isinstance(input_names, (str, int)) else list(input_names)
        return self._stored().remove_inputs(names)

    def check_discrepancies(
        self,
        onnx_model: Any,
        atol: float = 1e-4,
        rtol: float = 0.1,
        hist: Sequence[float] = (0.1, 0.01),
        progress_bar: bool = False,
        include_io: bool = True,
        skip_none: bool = True,
    ) -> list[dict[str, Any]]:
        """Runs an ONNX model on every stored call and compares with the stored outputs: one row per call.

        An output that was None has no counterpart in the file: it is left out, or refused with skip_none=False.
        """
        from fairlead.observer.discrepancies import check_calls

        for number, call in enumerate(self._stored().inputs):
            if call.none_outputs and not skip_none:
                raise RuntimeError(
                    f"[check_discrepancies] Expected outputs without None because skip_none=False, got None at "
                    f"{call.none_outputs[0]} in call {number}. Pass skip_none=True to compare the others."
                )
        return check_calls(self._stored(), onnx_model, atol, rtol, hist, progress_bar, include_io)


@contextlib.contextmanager
def observe(
    model: Any,
    store_n_calls: int = 3,
    method_name: str = "forward",
    value_if_missing: dict[str | int, Any] | None = None,
) -> Iterator[InputObserver]:
    """with fairlead.observe(model) as seen: ...    then fairlead.export(model, seen, "model.onnx")."""
    observer = InputObserver(value_if_missing)
    with observer(model, store_n_calls, method_name):
        yield observer
