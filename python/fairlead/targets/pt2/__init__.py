"""torch.export.ExportedProgram as a target: through torch.export itself, or rebuilt from the recorded graph."""
