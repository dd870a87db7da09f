"""The helpers under the name that users of transformers.exporters.utils import them from."""

from __future__ import annotations

from fairlead.base.lazy import lazy_names

# Name -> module: imported on first use.
_LAZY = {
    "apply_fx_node_fixes": "fairlead.patches",
    "apply_fx_program_fixes": "fairlead.patches",
    "apply_patches": "fairlead.patches",
    "cast_leaf_tensors": "fairlead.exporters.prepare",
    "check_packages": "fairlead.exporters.packages",
    "decompose_for_generation": "fairlead.exporters.decompose",
    "decompose_multimodal": "fairlead.exporters.decompose",
    "decompose_prefill_decode": "fairlead.exporters.decompose",
    "duplicate_leaf_tensors": "fairlead.exporters.prepare",
    "get_leaf_tensors": "fairlead.tree",
    "is_multimodal": "fairlead.exporters.decompose",
    "module_device": "fairlead.exporters.prepare",
    "module_dtype": "fairlead.exporters.prepare",
    "patch_attribute": "fairlead.patches",
    "patch_attributes": "fairlead.patches",
    "patch_model_config": "fairlead.patches",
    "precompute_export_inputs": "fairlead.exporters.prepare",
    "prepare_for_export": "fairlead.exporters.prepare",
    "register_export_input_preparer": "fairlead.exporters.prepare",
    "register_fx_node_fix": "fairlead.patches",
    "register_fx_program_fix": "fairlead.patches",
    "register_patch": "fairlead.patches",
    "reset_model_state": "fairlead.patches",
}

__all__ = sorted(_LAZY)

__getattr__, __dir__ = lazy_names(__name__, _LAZY)
