"""Our own rows, in the order of application. Each file holds the rows of one kind of problem."""

from fairlead.patches.rows import masks, rotary, vision_segments  # noqa: F401
