"""ExecuTorch as a target. `write` is all that knows the executorch package's way of making files."""
