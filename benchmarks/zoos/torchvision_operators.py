"""Torchvision's operators in Python, for machines where its extension (built for CUDA) does not load.

Import before torchvision. The same results as the extension's, slowly.
"""

from __future__ import annotations

import torch

_library = torch.library.Library("torchvision", "DEF")
_library.define("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
_library.define(
    "roi_align(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width, "
    "int sampling_ratio, bool aligned) -> Tensor"
)
_library.define(
    "deform_conv2d(Tensor input, Tensor weight, Tensor offset, Tensor mask, Tensor bias, SymInt stride_h, "
    "SymInt stride_w, SymInt pad_h, SymInt pad_w, SymInt dilation_h, SymInt dilation_w, SymInt groups, "
    "SymInt offset_groups, bool use_mask) -> Tensor"
)
_library.define("qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")


def nms(boxes, scores, threshold):
    order = scores.argsort(descending=True, stable=True).tolist()
    area = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
    alive = torch.ones(len(order), dtype=torch.bool)
    kept = []
    for k in order:
        if not alive[k]:
            continue
        kept.append(k)
        low, high = torch.maximum(boxes[k, :2], boxes[:, :2]), torch.minimum(boxes[k, 2:], boxes[:, 2:])
        inner = (high - low).clamp(min=0).prod(1)
        alive &= inner / (area[k] + area - inner) <= threshold
    return torch.tensor(kept, dtype=torch.int64)


_library.impl("nms", nms, "CPU")


def roi_align(x, rois, scale, height, width, ratio, aligned):
    """One region after the other, samples on a grid in each cell, outside of [-1, size] 0."""
    shift = 0.5 if aligned else 0.0
    out = x.new_zeros(len(rois), x.shape[1], height, width)
    for r, (number, x1, y1, x2, y2) in enumerate(rois.tolist()):
        left, top = x1 * scale - shift, y1 * scale - shift
        wide, high = x2 * scale - shift - left, y2 * scale - shift - top
        if not aligned:
            wide, high = max(wide, 1.0), max(high, 1.0)
        rows = ratio if ratio > 0 else max(1, int(-(-high // height)))
        columns = ratio if ratio > 0 else max(1, int(-(-wide // width)))
        ys = top + (torch.arange(height * rows) + 0.5) * (high / height / rows)
        xs = left + (torch.arange(width * columns) + 0.5) * (wide / width / columns)
        taken = samples(x[int(number)], ys, xs)
        out[r] = taken.reshape(x.shape[1], height, rows, width, columns).mean((2, 4))
    return out


def samples(plane, ys, xs):
    def parts(at, size):
        inside = (at >= -1) & (at <= size)
        at = at.clamp(0)
        low = at.floor().long().clamp(max=size - 1)
        high = (low + 1).clamp(max=size - 1)
        rest = torch.where(low >= size - 1, torch.zeros_like(at), at - low)
        return low, high, rest, inside

    y0, y1, ry, iny = parts(ys, plane.shape[1])
    x0, x1, rx, inx = parts(xs, plane.shape[2])
    upper = plane[:, y0][:, :, x0] * (1 - rx) + plane[:, y0][:, :, x1] * rx
    lower = plane[:, y1][:, :, x0] * (1 - rx) + plane[:, y1][:, :, x1] * rx
    both = upper * (1 - ry)[:, None] + lower * ry[:, None]
    return both * (iny[:, None] & inx[None])


_library.impl("roi_align", roi_align, "CPU")


def install() -> None:
    """Tells torchvision that its operators are there."""
    import torchvision

    torchvision.extension._has_ops = lambda: True
