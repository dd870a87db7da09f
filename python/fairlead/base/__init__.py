"""What the whole package stands on: locks, signals, names imported on first use, files and texts of strangers."""
