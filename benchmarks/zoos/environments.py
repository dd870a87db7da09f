"""One environment per zoo: the packages of this one, and the library without what it would pull along."""

from __future__ import annotations

import pathlib
import subprocess
import sys
import sysconfig

# Installed with --no-deps: the libraries would bring another PyTorch with them.
PACKAGES = {
    "timm": ["timm", "torchvision"],
    "torchvision": ["torchvision"],
    "diffusers": ["diffusers", "importlib_metadata", "zipp"],
    "lucid": ["vit-pytorch", "x-transformers", "einops", "einx", "frozendict", "loguru", "local-attention",
              "hyper-connections", "torch-einops-utils", "torchvision"],
    "segmentation": ["segmentation-models-pytorch", "timm", "torchvision"],
    "open_clip": ["open_clip_torch", "timm", "ftfy", "wcwidth", "torchvision"],
    "kornia": ["kornia", "kornia_rs"],
    "monai": ["monai", "einops"],
    "geometric": ["torch_geometric", "aiohttp", "psutil", "pyparsing", "xxhash", "tqdm"],
    "audio": ["torchaudio", "speechbrain", "hyperpyyaml", "sentencepiece", "joblib", "ruamel.yaml"],
    "yolo": ["ultralytics", "ultralytics-thop", "opencv-python-headless", "matplotlib", "pandas", "psutil",
             "torchvision", "polars", "contourpy", "cycler", "fonttools", "kiwisolver", "python-dateutil", "pyparsing"],
    "forecasting": ["neuralforecast", "coreforecast", "utilsforecast", "pandas", "python-dateutil", "pytz", "tzdata",
                    "pytorch-lightning", "lightning-utilities", "torchmetrics"],
    "tabular": ["pytorch-tabnet", "rtdl_revisiting_models", "rtdl_num_embeddings"],
    "eeg": ["braindecode", "mne", "einops", "skorch"],
    "operators": ["neuraloperator", "tensorly", "tensorly-torch", "opt_einsum"],
    "spandrel": ["spandrel", "einops", "torchvision"],
}  # fmt: skip
PINS = {"torchvision": "0.28", "torchaudio": "2.11"}  # what goes with torch 2.13


def python_of(zoo: str, folder: pathlib.Path) -> pathlib.Path:
    """The environment's Python; it is made on first use."""
    home = folder / zoo
    python = home / "bin" / "python"
    if python.exists():
        return python
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(home)], check=True)
    (packages,) = home.glob("lib/python*/site-packages")
    (packages / "zz_base.pth").write_text(f"import site; site.addsitedir({sysconfig.get_path('purelib')!r})\n")
    wanted = [f"{name}=={PINS[name]}.*" if name in PINS else name for name in PACKAGES[zoo]]
    install = [sys.executable, "-m", "pip", "--python", str(python), "install", "-q", "--no-deps", *wanted]
    subprocess.run(install, check=True)
    return python
