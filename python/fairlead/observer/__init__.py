"""Real calls of a model, watched: dynamic shapes, arguments and relations that an exporter has to know."""

from fairlead.observer.observer import InputCandidate, InputObserver, InputObserverInfo, Relations, observe

__all__ = ["InputCandidate", "InputObserver", "InputObserverInfo", "Relations", "observe"]
