"""Where the parts are written: a folder, a pattern with {component} in it, or a folder that goes away by itself."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from typing import Any

from fairlead._core import InvalidInput
from fairlead.base.staged import staged_folder
from fairlead.generation.plan import Plan


class Paths:
    def __init__(self, plan: Plan, config: Any):
        self.temporary: Any = None
        self.plan = plan
        self.by_component = dict(config) if is_by_component(config) else None
        self.config = None if self.by_component is not None else config
        if self.by_component is not None:
            missing = [name for name in plan.components if name not in self.by_component]
            if missing:
                raise InvalidInput(
                    f"[export_for_generation] Expected a config for each of {', '.join(plan.components)}, got none for "
                    f"{missing[0]}. Pass one config for all, or one per component."
                )
        self.files = self.chosen()
        folders = {os.path.dirname(os.path.abspath(file)) for file in self.files.values()}
        if len(folders) > 1:
            raise InvalidInput(
                f"[export_for_generation] Expected the parts in one folder, got {', '.join(sorted(folders))}. "
                "generation.json lies beside them."
            )
        self.folder = self.stage = folders.pop()

    @contextlib.contextmanager
    def staging(self) -> Iterator[str]:
        """A folder beside the final one: at the end of the block its files are there, all in one step where no others
        work in it; after an error none is.
        """
        with staged_folder(self.folder, "export_for_generation") as self.stage:
            yield self.stage

    def config_of(self, part: str) -> Any:
        if self.by_component is None:
            return self.config
        return self.by_component[next(c for c, p in self.plan.components.items() if p == part)]

    def file_of(self, part: str) -> str:
        """The final name."""
        return os.path.abspath(self.files[part])

    def staged_file_of(self, part: str) -> str:
        return os.path.join(self.stage, os.path.basename(self.files[part]))

    def chosen(self) -> dict[str, str]:
        names = [part.name for part in self.plan.parts]
        given = {name: output_path(self.config_of(name)) for name in names}
        if all(path is None for path in given.values()):
            self.temporary = tempfile.TemporaryDirectory(prefix="fairlead-")
            given = dict.fromkeys(names, self.temporary.name)
        files = {name: file_in(path, name, len(names)) for name, path in given.items()}
        twice = next((f for f in files.values() if list(files.values()).count(f) > 1), None)
        if twice is not None:
            raise InvalidInput(
                f"[export_for_generation] Expected one file per part ({', '.join(names)}), got {twice} for several. "
                "Give a folder, or a pattern such as out/{component}.onnx."
            )
        return files


def file_in(path: str | None, name: str, count: int) -> str:
    if path is None:
        raise InvalidInput(f"[export_for_generation] Expected an output_path for {name}, got None beside others.")
    if "{component}" in path:
        return path.replace("{component}", name)
    if path.endswith(".onnx"):
        if count > 1:
            raise InvalidInput(
                f"[export_for_generation] Expected a folder for {count} parts, got the file '{path}'. "
                "Give a folder, or a pattern such as out/{component}.onnx."
            )
        return path
    return os.path.join(path, f"{name}.onnx")


def output_path(config: Any) -> str | None:
    path = config.get("output_path") if isinstance(config, dict) else getattr(config, "output_path", None)
    return None if path is None else os.fsdecode(path)


def is_by_component(config: Any) -> bool:
    """{"decode": OnnxConfig(...)} rather than the fields of one config."""
    return (
        isinstance(config, dict)
        and bool(config)
        and all(isinstance(value, dict) or hasattr(value, "export_format") for value in config.values())
    )
