"""Attributes of any object replaced for the length of a block."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from fairlead.base.alone import changed
from fairlead.patches.slots import put_on, take_off


@contextlib.contextmanager
def patch_attributes(patches: Iterable[tuple[Any, str, Callable[[Any], Any]]]) -> Iterator[None]:
    """Inside the block each `owner.attribute` is `factory(original)`; put back in reverse order, after errors too.

    >>> with patch_attributes([(model.config, "use_cache", lambda original: False)]):
    ...     model(input_ids)
    """
    with contextlib.ExitStack() as undo:
        for owner, attribute, factory in patches:
            undo.callback(changed(partial(put_on, owner, attribute, object(), factory), take_off))
        yield


def patch_attribute(obj: Any, attribute: str, factory: Callable[[Any], Any]) -> Any:
    """The same for one attribute."""
    return patch_attributes([(obj, attribute, factory)])


@contextlib.contextmanager
def patch_model_config(model: Any, output_flags: Mapping[str, Any]) -> Iterator[None]:
    """Inside the block `model.config` has these flags. None and flags that the config does not know are left alone."""
    config = getattr(model, "config", None)
    given = {name: value for name, value in output_flags.items() if value is not None and hasattr(config, name)}

    def always(value: Any) -> Callable[[Any], Any]:
        return lambda original: value

    with patch_attributes([(config, name, always(value)) for name, value in given.items()]):
        yield
