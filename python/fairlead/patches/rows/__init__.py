"""Our own rows, in the order of application. Each file holds the rows of one kind of problem."""

from fairlead.patches.rows import experts, funnel, idefics, masks, rotary, sam, vision_segments  # noqa: F401
