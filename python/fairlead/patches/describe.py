"""The table of patches in words, for the releases that are installed."""

from __future__ import annotations

from fairlead.patches.apply import look
from fairlead.patches.table import patch_rows


def describe(*backends: str) -> str:
    """Each row: its problem, where it applies, and what was found of it here."""
    import torch

    lines = [f"torch {torch.__version__}, transformers {_transformers()}"]
    for patch in patch_rows(*backends):
        lines.append(f"{patch.backend}: {patch.name} ({patch.versions})")
        lines.append(f"  problem: {patch.problem}")
        if patch.remedy:
            lines.append(f"  remedy: {patch.remedy}")
        for outcome, _, _ in look(patch):
            reason = f" ({outcome.reason})" if outcome.reason else ""
            lines.append(f"  {'applies' if outcome.status == 'applied' else outcome.status}: {outcome.target}{reason}")
    return "\n".join(lines)


def _transformers() -> str:
    try:
        import transformers
    except ImportError:
        return "not installed"
    return str(transformers.__version__)
