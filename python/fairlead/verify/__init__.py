"""What was written against eager: runs compared, draws, state that a model keeps, the operator that differs first."""
