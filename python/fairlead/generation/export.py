"""export_for_generation: a plan for the model, each part exported, generation.json beside the files."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import Any

import torch

from fairlead._core import FairleadError, InvalidInput, SharedWeights, __version__
from fairlead.api import export_with
from fairlead.base.alone import alone
from fairlead.base.errors import reworded, sentence_of
from fairlead.contract import has_shared_cache
from fairlead.exporters.model_settings import exportable
from fairlead.exporters.onnx import OnnxExporter, options_of
from fairlead.exporters.program import OnnxProgram
from fairlead.generation.decoder import plan_decoder
from fairlead.generation.encoder_decoder import plan_encoder_decoder
from fairlead.generation.merged import plan_merged
from fairlead.generation.multimodal import encodes_images, plan_multimodal
from fairlead.generation.paths import Paths
from fairlead.generation.plan import PartPlan, Plan
from fairlead.generation.settings import settings_of
from fairlead.generation.shortest import shortest_length
from fairlead.generation.together import check_together, is_alone
from fairlead.generation.watch import copied
from fairlead.runtime import manifest


@alone
def export_for_generation(
    exporter: Any,
    model: Any,
    sample_inputs: Any,
    config: Any = None,
    generation_config: Any = None,
    multi_token_decode: bool = False,
) -> dict[str, Any]:
    """Takes a generative model apart and exports every part: {component: program}.

    multi_token_decode is always served: a decoder takes any number of tokens after any past. Only a model whose state
    does not grow (Mamba) cannot, and says so.
    """
    plan = plan_for(model, sample_inputs, generation_config)
    if multi_token_decode and plan.components.get("prefill") != plan.components.get("decode"):
        raise InvalidInput(
            f"[export_for_generation] Expected a model that decodes several tokens at once, because "
            f"multi_token_decode=True, got {type(model).__name__}, whose state takes one at a time."
        )
    paths = Paths(plan, config)
    if not isinstance(exporter, OnnxExporter):  # other formats are made from one call, and have files of their own
        programs = {part.name: other_format(exporter, part, paths) for part in plan.parts}
        return {component: programs[name] for component, name in plan.components.items()}
    with paths.staging() as folder:
        shared = shared_weights(model)
        programs = {part.name: exported(exporter, part, paths, shared) for part in plan.parts}
        files = {part.name: os.path.basename(paths.file_of(part.name)) for part in plan.parts}
        manifest.write(folder, manifest_of(model, plan, programs, files, generation_config))
        if all(exporter.configured(paths.config_of(part.name)).verify for part in plan.parts):
            check_together(model, plan, folder, generation_config, is_alone(programs))
    for name, program in programs.items():
        program.path = program.result.path = paths.file_of(name)
        program.folder = paths.temporary  # a folder of our own lives as long as the programs in it
    return {component: programs[name] for component, name in plan.components.items()}


def shared_weights(model: torch.nn.Module) -> SharedWeights:
    """What several parts hold is written once."""
    shared = SharedWeights()
    for tensor in [*model.parameters(), *model.buffers()]:
        shared.declare(tensor.untyped_storage().data_ptr(), tensor.untyped_storage().nbytes())
    return shared


def plan_for(model: Any, sample_inputs: Any, generation_config: Any = None, merged: bool = False) -> Plan:
    """merged: an encoder-decoder in the parts that other clients know, see merged.py."""
    if not callable(getattr(model, "generate", None)):
        raise InvalidInput(
            f"[export_for_generation] Expected a model with generate(), got {type(model).__name__}. "
            "Export it with fairlead.export."
        )
    sample = copied(sample_inputs)
    if getattr(model.config, "is_encoder_decoder", False):
        return (plan_merged if merged else plan_encoder_decoder)(model, sample, generation_config)
    if encodes_images(model):
        return plan_multimodal(model, sample, generation_config)
    return plan_decoder(model, sample, generation_config)


def other_format(exporter: Any, part: PartPlan, paths: Paths) -> Any:
    with in_part(part, paths):
        return exporter.export(part.module, part.calls[0], exporter.configured(paths.config_of(part.name)))


def exported(exporter: OnnxExporter, part: PartPlan, paths: Paths, shared: SharedWeights) -> OnnxProgram:
    config = exporter.configured(paths.config_of(part.name))
    if config.names != "clients":
        raise InvalidInput(
            f'[export_for_generation] Expected names="clients", by which a Generator connects the parts, got '
            f"{config.names!r}. Leave it out, or export the model with OnnxExporter.export."
        )
    with in_part(part, paths), exportable(part.module) as notes:
        options = options_of(
            config, output_names=part.output_names, notes=notes, shared_weights=shared, own_examples=True,
            dynamic_shapes=part.dynamic_shapes if config.dynamic_shapes is None else config.dynamic_shapes,
        )  # fmt: skip
        result = export_with(options, part.module, part.calls, paths.staged_file_of(part.name))
    return OnnxProgram(result, part.module, part.calls[0])


@contextlib.contextmanager
def in_part(part: PartPlan, paths: Paths) -> Iterator[None]:
    """Errors say in which part they happened."""
    try:
        yield
    except FairleadError as error:
        text = sentence_of(error).replace(paths.stage, paths.folder)
        reworded(error, f"[export_for_generation] In the part {part.name}: {text}", paths.stage, paths.folder)
        raise


def manifest_of(
    model: Any, plan: Plan, programs: dict[str, Any], files: dict[str, str], generation_config: Any
) -> dict[str, Any]:
    """programs and files by the name of the part; files relative to the folder."""
    parts: dict[str, dict[str, Any]] = {}
    for part in plan.parts:
        contract = programs[part.name].contract
        parts[part.name] = {
            "file": files[part.name],
            "inputs": [i.name for i in contract.inputs],
            "outputs": [o.name for o in contract.outputs],
        }
        if part.shortest is not None:
            parts[part.name]["shortest"] = shortest_length(part, programs[part.name])
        for key in ("last", "optional", "gives", "takes"):
            if getattr(part, key) is not None:
                parts[part.name][key] = getattr(part, key)
    dtypes = {row.name: row.dtype for program in programs.values() for row in program.contract.inputs}
    cache = [entry | {"dtype": dtypes.get(entry["past"], entry["dtype"])} for entry in plan.cache]
    shared = all(has_shared_cache(programs[part.name].contract) for part in plan.parts if part.name in plan.step)
    return {
        "format": manifest.FORMAT, "fairlead": __version__, "model": type(model).__name__, "kind": plan.kind,
        "parts": parts, "once": plan.once, "prefill": plan.prefill, "step": plan.step,
        "cache": [entry | {"shared": True} for entry in cache] if shared else cache,
        "prompt_only": plan.prompt_only, "grid": plan.grid, "positions": plan.positions, "tokens": plan.tokens,
        "settings": settings_of(model, generation_config),
    }  # fmt: skip
