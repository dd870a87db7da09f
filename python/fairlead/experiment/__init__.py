"""One export: an experiment on the model (decided by the core), done step by step, and what came of it."""
