"""Models whose weights are not in this process's memory: on meta with a checkpoint, offloaded, on other devices."""
