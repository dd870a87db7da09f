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
              "hyper-connections", "torch-einops-utils", "torchvision", "performer-pytorch", "linformer",
              "axial-positional-embedding", "axial-attention", "perceiver-pytorch", "conformer", "lambda-networks",
              "nystrom-attention", "taylor-series-linear-attention", "halonet-pytorch", "agent-attention-pytorch",
              "hourglass-transformer-pytorch", "deformable-attention", "rotary-embedding-torch",
              "vector-quantize-pytorch", "beartype", "jaxtyping", "opt-einsum"],
    "kornia": ["kornia", "kornia_rs"],
    "segmentation": ["segmentation_models_pytorch", "timm", "torchvision"],
    "monai": ["monai", "einops"],
    "audio": ["torchaudio", "speechbrain", "hyperpyyaml"],
    "geometric": ["torch_geometric", "aiohttp", "xxhash", "pyparsing"],
    "spandrel": ["spandrel", "einops", "torchvision"],
    "operators": ["neuraloperator", "tensorly", "tensorly-torch", "opt-einsum"],
    "open_clip": ["open_clip_torch", "ftfy", "wcwidth", "timm", "torchvision"],
    "tabular": ["rtdl_revisiting_models", "rtdl_num_embeddings", "pytorch_tabnet"],
    "eeg": ["braindecode", "mne", "skorch", "einops", "lazy_loader", "decorator", "pooch", "mne_bids", "h5py", "wfdb",
            "soundfile", "docstring_inheritance", "torchaudio", "torchinfo", "rotary-embedding-torch", "linformer",
            "linear_attention_transformer", "local_attention", "product_key_memory", "axial_positional_embedding",
            "colt5_attention", "hyper_connections"],
    "yolo": ["ultralytics", "ultralytics_thop", "opencv_python_headless", "matplotlib", "polars", "cycler",
             "kiwisolver", "contourpy", "pyparsing", "fonttools", "seaborn", "torchvision"],
    "forecasting": ["neuralforecast", "coreforecast", "utilsforecast", "pytorch_lightning", "lightning_utilities",
                    "torchmetrics", "pytz", "pyarrow"],
    "parts": ["torchvision", "torchaudio", "speechbrain", "hyperpyyaml", "monai", "kornia", "kornia_rs",
              "vector-quantize-pytorch", "einops", "einx", "frozendict", "loguru", "torch-einops-utils"],
    # Exporters of others, for benchmarks/run.py and families.py.
    "peers": ["mobius-onnx", "onnxscript", "onnx-shape-inference", "onnx_ir", "ml_dtypes", "requests", "sentencepiece"],
}  # fmt: skip
PINS = {"torchvision": "0.28"}  # what goes with torch 2.13


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
    for extension in packages.glob("torchaudio/lib/*.so"):  # built for CUDA; the library does without
        extension.unlink()
    return python
