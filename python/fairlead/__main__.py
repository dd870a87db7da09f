"""`python -m fairlead` is the command `fairlead`."""

import os
import sys

# `python -m` looks into the working folder first: a torch.py that lies there with a model is not PyTorch.
if not getattr(sys.flags, "safe_path", False) and sys.path and os.path.abspath(sys.path[0]) == os.getcwd():
    del sys.path[0]

from fairlead.cli import main

if __name__ == "__main__":
    main()
