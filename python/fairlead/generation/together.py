"""The parts together against model.generate: the logits of a few tokens, for prompts of different lengths.

Each part was compared with eager alone; this is about what joins them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch

from fairlead._core import Discrepancy, InvalidInput
from fairlead.base.errors import sentence_of
from fairlead.contract import SAME_POSITIONS
from fairlead.exporters.prepare import module_dtype
from fairlead.generation.plan import Plan
from fairlead.generation.watch import config_for, copied, untouched
from fairlead.runtime.generator import Generator, Run
from fairlead.verify.runtime_check import LARGE, TOLERANCE, session_options

TOKENS = 3
SLACK = 10  # rounding of the parts adds up, and goes on in the cache


def is_alone(parts: dict[str, Any]) -> bool:
    """Whether a part takes prompts of different lengths one by one."""
    rows = [row for part in parts.values() for row in part.contract.fused or []]
    return any(row.kind == SAME_POSITIONS and row.count for row in rows)


def check_together(
    model: Any, plan: Plan, folder: str, generation_config: Any, alone: bool = False, exact: bool = True,
    floats: bool = True,
) -> None:  # fmt: skip
    """alone: with the last row of the sample, which has padding. exact: otherwise the parts only have to fit. floats:
    otherwise weights are quantised, whose kernels need them packed."""
    if alone:
        plan = replace(plan, sample={name: value[-1:] for name, value in plan.sample.items()})
    config = config_for(model, generation_config)
    config.max_new_tokens = config.min_new_tokens = TOKENS
    config.output_logits = config.return_dict_in_generate = True
    with untouched(model):
        expected = model.generate(**copied(plan.sample), generation_config=config)
    tokens = expected.sequences.numpy()[:, -TOKENS:]
    weights = sum(p.numel() * p.element_size() for p in model.parameters())
    generator = Generator(folder, session_options=session_options(packs=not floats or weights < LARGE))
    run = Run(generator, plan.sample.get("input_ids"), plan.sample.get("attention_mask"), given(plan))
    limit = SLACK * TOLERANCE.get(
        module_dtype(model) or torch.float32, TOLERANCE[torch.float32]
    )  # generate gives float32 always
    fed = run.fed
    for step, logits in enumerate(expected.logits):
        try:
            got, want = run.forward(fed, run.parts_of(step)), logits.float().numpy()
        except InvalidInput as error:
            raise Discrepancy(
                f"[export_for_generation] Expected the parts of {type(model).__name__} to fit together, but at token "
                f"{step}: {sentence_of(error)} No file was written."
            ) from error
        worst = (np.abs(got - want) / np.maximum(1, np.abs(want))).max()
        if exact and not worst <= limit:
            raise Discrepancy(
                f"[export_for_generation] Expected the parts to generate as {type(model).__name__}.generate does, but "
                f"the logits of token {step} differ by {worst:.3g} (scaled), more than {limit:g}. No file was written. "
                "Export the parts with fairlead.export and join them by hand."
            )
        fed = run.take(tokens[:, step])


def given(plan: Plan) -> dict[str, Any]:
    return {name: value for name, value in plan.sample.items() if name not in ("input_ids", "attention_mask")}
