"""The page of the zoos: one table of libraries, and the cause of every model that is not right or lost a size."""

from __future__ import annotations

import json
import pathlib
import re
import statistics

TEMPORARY = re.compile(r"\S*/tmp\w+/(?=model\.onnx)")
RIGHT = ("right", "right at the example")
SECONDS, PASSES = 60, 40  # an export is slow that takes more of both
HEADER = """# Other libraries

Models of libraries other than Transformers, small configurations with random weights, by
`python benchmarks/zoos/run.py`: a sample of each library, on two cores that had other work. Each is exported from one
example call; a checker of its own then runs the file and eager at sizes near the example and far from it, within what
the contract allows. Rows are of the last run of each model, not all of the same code; limits are of the processor's
time on a machine that had other work. Whole lists were run, of an earlier code, of `torchvision`, `segmentation`,
`yolo`, `diffusers`, `eeg`, `monai`, `forecasting`, `geometric`, `kornia`, `open_clip` and `tabular`; of `timm` the
transformers and mixed networks, of `spandrel` 21 models, of `lucid` 11; lately all of `operators`, and 39 of `audio`.
Run again since then were most of those of `diffusers`, `monai`, `yolo`, `spandrel` and `eeg` that had
lost a size or were not right, and one of `timm`; for the first time 32 of `kornia`, four of `diffusers`, three of `eeg`
and one of `spandrel`. Models that the lists of `timm`, `torchvision`, `geometric`, `lucid`, `monai`, `spandrel`,
`diffusers`, `audio`, `kornia`, `eeg` and `forecasting` gained since then are in no row yet. `parts` was run whole: what
libraries have for use by itself.

In no row either are 500 models drawn from the lists of twelve libraries (timm, torchvision, diffusers, vit-pytorch,
x-transformers, vector-quantize-pytorch, monai, torch_geometric, segmentation_models_pytorch, ultralytics,
speechbrain, kornia), none of which had been tried before: 485 were right, none was wrong in a file; 5 files refused
calls of the checker, 6 differed and were not written (3 of them draw numbers in eager, 2 were `nms`, which is
mended), 2 were refused for an operator, 2 took over 85 s with the checks. 15 of the right ones had lost a size.

| column | what it is |
| --- | --- |
| models | that could be built, and run in eager |
| exported | a file was written |
| right | it computes what eager computes wherever the checker called both |
| batch | files with a dynamic batch, or whose model takes one size of it |
| space | files that take every other size that eager takes |
| seconds | median of the export, verification included, of one processor |
"""


def write_page(folder: pathlib.Path, path: str) -> None:
    zoos = {file.stem: [json.loads(line) for line in file.open()] for file in sorted(folder.glob("*.jsonl"))}
    lines = [HEADER, "| library | models | exported | right | batch | space | seconds |", "| --- " * 7 + "|"]
    causes = ["", "## What is not right yet", ""]
    lost = ["", "## Sizes that eager takes and the file does not", ""]
    for zoo, rows in zoos.items():
        built = [row for row in rows if row["outcome"] != "does not build"]
        written = [row for row in built if "batch" in row]
        right = [row for row in built if row["outcome"] in RIGHT]
        batch = sum(row["batch"] != "lost" for row in written)
        space = sum(not row["space"].startswith("lost") for row in written)
        seconds = statistics.median(row["seconds"] for row in written) if written else 0
        counts = f"{len(built)} | {len(written)} | {len(right)} | {batch} | {space} | {seconds:.0f}"
        lines.append(f"| {zoo} | {counts} |")
        for row in built:
            if row["outcome"] not in RIGHT:
                causes.append(f"- {zoo} `{row['model']}`, {row['outcome']}: {plain(row.get('error', ''))}")
                continue
            if row["seconds"] > max(SECONDS, PASSES * row["eager"]):
                causes.append(f"- {zoo} `{row['model']}`, slow: {row['seconds']:.0f} s, forward {row['eager']:.2f} s")
            if row["batch"] == "lost" or row["space"].startswith("lost"):
                reasons = [plain(words) for words in row.get("fixed", [])]
                lost.append(
                    f"- {zoo} `{row['model']}`: batch {row['batch']}, space {row['space']}; {'; '.join(reasons)}"
                )
    pathlib.Path(path).write_text("\n".join(lines + causes + lost) + "\n")


def plain(text: str) -> str:
    """One line that Markdown leaves alone, without the folder that its file was to be in."""
    text = TEMPORARY.sub("", text)
    return "`" + " ".join(text.replace("`", "'").split())[:280] + "`"
