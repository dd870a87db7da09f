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
        alive &= ~(inner / (area[k] + area - inner) > threshold)  # of empty boxes it is no number
    return torch.tensor(kept, dtype=torch.int64)


_library.impl("nms", nms, "CPU")


def roi_align(x, rois, scale, height, width, ratio, aligned):
    """Samples on a grid in each cell, outside of [-1, size] 0; regions with as many samples at once."""
    shift = 0.5 if aligned else 0.0
    left, top, right, bottom = (rois[:, k].double() * scale - shift for k in range(1, 5))
    wide, high = right - left, bottom - top
    if not aligned:
        wide, high = wide.clamp(min=1), high.clamp(min=1)
    out = x.new_zeros(len(rois), x.shape[1], height, width)
    rows = torch.full_like(high, ratio) if ratio > 0 else (high / height).ceil().clamp(min=1)
    columns = torch.full_like(wide, ratio) if ratio > 0 else (wide / width).ceil().clamp(min=1)
    for r, c in set(zip(rows.int().tolist(), columns.int().tolist(), strict=True)):
        for some in ((rows == r) & (columns == c)).nonzero()[:, 0].split(64):
            ys = top[some, None] + (torch.arange(height * r) + 0.5) * (high[some, None] / height / r)
            xs = left[some, None] + (torch.arange(width * c) + 0.5) * (wide[some, None] / width / c)
            taken = samples(x, rois[some, 0].long(), ys.to(x.dtype), xs.to(x.dtype))
            out[some] = taken.reshape(len(some), x.shape[1], height, r, width, c).mean((3, 5))
    return out


def samples(x, number, ys, xs):
    def parts(at, size):
        inside = (at >= -1) & (at <= size)
        at = at.clamp(0)
        low = at.floor().long().clamp(max=size - 1)
        high = (low + 1).clamp(max=size - 1)
        rest = torch.where(low >= size - 1, torch.zeros_like(at), at - low)
        return low, high, rest, inside

    y0, y1, ry, iny = parts(ys, x.shape[2])
    x0, x1, rx, inx = parts(xs, x.shape[3])
    last = x.permute(0, 2, 3, 1)
    ry, rx = ry[:, :, None, None], rx[:, None, :, None]

    def row(y):
        at = last[number[:, None, None], y[:, :, None], x0[:, None, :]]
        return at * (1 - rx) + last[number[:, None, None], y[:, :, None], x1[:, None, :]] * rx

    both = row(y0) * (1 - ry) + row(y1) * ry
    return (both * (iny[:, :, None, None] & inx[:, None, :, None])).permute(0, 3, 1, 2)


_library.impl("roi_align", roi_align, "CPU")


def install() -> None:
    """Tells torchvision that its operators are there."""
    import torchvision

    torchvision.extension._has_ops = lambda: True
