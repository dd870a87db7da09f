"""Recording: one run of a model becomes a list of ATen operators in the core."""

from fairlead.record.session import Outcome, RecordingSession

__all__ = ["Outcome", "RecordingSession"]
