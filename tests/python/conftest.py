"""Shared set-up: one thread per test process, because the processes are what runs in parallel."""

import os

# Before torch or onnxruntime is imported anywhere.
os.environ.setdefault("OMP_NUM_THREADS", "1")
