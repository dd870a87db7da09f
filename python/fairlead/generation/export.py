"""export_for_generation: a plan for the model, each part exported, generation.json beside the files."""

from __future__ import annotations

import os
from typing import Any

import fairlead
from fairlead._core import FairleadError, InvalidInput
from fairlead.generation.decoder import plan_decoder
from fairlead.generation.paths import Paths
from fairlead.generation.plan import PartPlan, Plan
from fairlead.generation.settings import settings_of
from fairlead.generation.watch import copied
from fairlead.request import DEFAULT_OPSET
from fairlead.runtime import manifest


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
    if multi_token_decode and plan.components["prefill"] != plan.components["decode"]:
        raise InvalidInput(
            f"[export_for_generation] Expected a model that decodes several tokens at once, because "
            f"multi_token_decode=True, got {type(model).__name__}, whose state takes one at a time."
        )
    paths = Paths(plan, config)
    programs = {part.name: exported(exporter, part, paths) for part in plan.parts}
    manifest.write(paths.folder, manifest_of(model, plan, programs, paths, generation_config))
    return {component: programs[name] for component, name in plan.components.items()}


def plan_for(model: Any, sample_inputs: Any, generation_config: Any = None) -> Plan:
    if not callable(getattr(model, "generate", None)):
        raise InvalidInput(
            f"[export_for_generation] Expected a model with generate(), got {type(model).__name__}. "
            "Export it with fairlead.export."
        )
    sample = copied(sample_inputs)
    return plan_decoder(model, sample, generation_config)


def exported(exporter: Any, part: PartPlan, paths: Paths) -> Any:
    config = paths.config_of(part.name)
    opset = getattr(config, "opset_version", None)
    try:
        result = fairlead.export(
            part.module,
            part.calls,
            paths.file_of(part.name),
            output_names=part.output_names,
            opset=DEFAULT_OPSET if opset is None else opset,
            verify=getattr(config, "verify", True),
        )
    except FairleadError as error:
        raise type(error)(f"[export_for_generation] The part {part.name}: {error}") from error
    result.folder = paths.temporary  # a folder of our own lives as long as the programs in it
    return result


def manifest_of(model: Any, plan: Plan, programs: dict, paths: Paths, generation_config: Any) -> dict[str, Any]:
    parts = {}
    for part in plan.parts:
        contract = programs[part.name].contract
        parts[part.name] = {
            "file": os.path.basename(paths.file_of(part.name)),
            "inputs": [i["name"] for i in contract.inputs],
            "outputs": [o["name"] for o in contract.outputs],
        }
        for key in ("last", "optional"):
            if getattr(part, key) is not None:
                parts[part.name][key] = getattr(part, key)
    return {
        "format": manifest.FORMAT, "fairlead": fairlead.__version__, "model": type(model).__name__, "kind": plan.kind,
        "parts": parts, "once": plan.once, "prefill": plan.prefill, "step": plan.step, "cache": plan.cache,
        "prompt_only": plan.prompt_only, "positions": plan.positions, "tokens": plan.tokens,
        "settings": settings_of(model, generation_config),
    }  # fmt: skip
