"""Reversible patches: a table of what keeps a model from being exported, and what is put in its place for a block."""

from fairlead.patches.apply import Applied, Outcome, apply_patches
from fairlead.patches.attributes import patch_attribute, patch_attributes, patch_model_config
from fairlead.patches.describe import describe
from fairlead.patches.fx_fixes import (
    apply_fx_node_fixes,
    apply_fx_program_fixes,
    register_fx_node_fix,
    register_fx_program_fix,
    unregister_fx_fix,
)
from fairlead.patches.model_state import reset_model_state
from fairlead.patches.table import Patch, patch_rows, register_patch, unregister_patch
from fairlead.patches.torch_export import torch_export_patches

__all__ = [
    "Applied",
    "Outcome",
    "Patch",
    "apply_fx_node_fixes",
    "apply_fx_program_fixes",
    "apply_patches",
    "describe",
    "patch_attribute",
    "patch_attributes",
    "patch_model_config",
    "patch_rows",
    "register_fx_node_fix",
    "register_fx_program_fix",
    "register_patch",
    "reset_model_state",
    "torch_export_patches",
    "unregister_fx_fix",
    "unregister_patch",
]
