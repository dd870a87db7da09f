"""Torchvision's operators, against plain loops that say what they compute; torchvision itself is not needed."""

import math

import onnx
import pytest
import torch
from test_unseen_sizes import assert_same, exported
from wrapped import Wrap

import fairlead


def iou(a, b):
    width = min(a[2], b[2]) - max(a[0], b[0])
    height = min(a[3], b[3]) - max(a[1], b[1])
    inner = max(width, 0) * max(height, 0)
    area = lambda box: (box[2] - box[0]) * (box[3] - box[1])  # noqa: E731
    either = area(a) + area(b) - inner
    return inner / either if either else math.nan


def nms(boxes, scores, threshold):
    assert boxes.shape[1:] == (4,)
    kept = []
    for k in scores.argsort(descending=True).tolist():
        if not any(iou(boxes[k].tolist(), boxes[j].tolist()) > threshold for j in kept):
            kept.append(k)
    return torch.tensor(kept, dtype=torch.int64)


def sample(plane, y, x):
    """Between the four pixels around (y, x); what lies outside is 0."""
    height, width = plane.shape
    total = 0.0
    for i in (math.floor(y), math.floor(y) + 1):
        for j in (math.floor(x), math.floor(x) + 1):
            if 0 <= i < height and 0 <= j < width:
                total += plane[i, j].item() * (1 - abs(y - i)) * (1 - abs(x - j))
    return total


def deform_conv2d(x, weight, offset, mask, bias, sh, sw, ph, pw, dh, dw, groups, parts, use_mask):
    out_channels, per_group, kh, kw = weight.shape
    assert x.shape[1] == per_group * groups
    oh = (x.shape[2] + 2 * ph - dh * (kh - 1) - 1) // sh + 1
    ow = (x.shape[3] + 2 * pw - dw * (kw - 1) - 1) // sw + 1
    out = bias.view(1, -1, 1, 1).expand(x.shape[0], out_channels, oh, ow).clone()
    assert not use_mask or mask.shape[1:] == (parts * kh * kw, oh, ow)
    offset = offset.view(x.shape[0], parts, kh, kw, 2, oh, ow)
    per_part = x.shape[1] // parts
    for b in range(x.shape[0]):
        for o in range(out_channels):
            group = o // (out_channels // groups)
            for c in range(per_group):
                channel = group * per_group + c
                part = channel // per_part
                for i, j, k, n in torch.cartesian_prod(*map(torch.arange, (kh, kw, oh, ow))).tolist():
                    dy, dx = offset[b, part, i, j, :, k, n].tolist()
                    value = sample(x[b, channel], k * sh - ph + i * dh + dy, n * sw - pw + j * dw + dx)
                    if use_mask:
                        value *= mask.view(x.shape[0], parts, kh, kw, oh, ow)[b, part, i, j, k, n].item()
                    out[b, o, k, n] += weight[o, c, i, j] * value
    return out


def roi_align(x, rois, scale, height, width, ratio, aligned):
    out = torch.zeros(rois.shape[0], x.shape[1], height, width)
    for r, (image, x1, y1, x2, y2) in enumerate((rois * torch.tensor([1] + [scale] * 4)).tolist()):
        shift = 0.5 if aligned else 0.0
        x1, y1, x2, y2 = x1 - shift, y1 - shift, x2 - shift, y2 - shift
        wide, high = (x2 - x1, y2 - y1) if aligned else (max(x2 - x1, 1.0), max(y2 - y1, 1.0))
        for c, i, j in torch.cartesian_prod(*map(torch.arange, out.shape[1:])).tolist():
            values = []
            for u in range(ratio):
                for v in range(ratio):
                    y = y1 + (i + (u + 0.5) / ratio) * high / height
                    z = x1 + (j + (v + 0.5) / ratio) * wide / width
                    inside = -1 <= y <= x.shape[2] and -1 <= z <= x.shape[3]
                    y, z = min(max(y, 0), x.shape[2] - 1), min(max(z, 0), x.shape[3] - 1)
                    values.append(sample(x[int(image), c], y, z) if inside else 0.0)
            out[r, c, i, j] = sum(values) / len(values)
    return out


SCHEMAS = {
    "nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor": nms,
    "deform_conv2d(Tensor input, Tensor weight, Tensor offset, Tensor mask, Tensor bias, SymInt stride_h, "
    "SymInt stride_w, SymInt pad_h, SymInt pad_w, SymInt dilation_h, SymInt dilation_w, SymInt groups, "
    "SymInt offset_groups, bool use_mask) -> Tensor": deform_conv2d,
    "roi_align(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width, "
    "int sampling_ratio, bool aligned) -> Tensor": roi_align,
}


@pytest.fixture(scope="module", autouse=True)
def library():
    if hasattr(torch.ops.torchvision, "nms"):
        yield
        return
    made = torch.library.Library("torchvision", "DEF")
    for schema, fn in SCHEMAS.items():
        made.define(schema)
        made.impl(schema.partition("(")[0], fn, "CPU")
    yield
    made._destroy()


def boxes(n):
    corners = torch.rand(n, 4) * 10
    corners[:, 2:] += corners[:, :2] + 1
    return corners


def test_boxes_that_overlap_are_left_out(tmp_path):
    model, run = exported(
        lambda b, s: torch.ops.torchvision.nms(b, s, 0.3), (boxes(9), torch.rand(9)), tmp_path / "m.onnx"
    )
    for n in (1, 9, 30):
        inputs = boxes(n), torch.rand(n)
        assert_same(run(*inputs), model(*inputs))
    flipped = boxes(30) * (torch.rand(30, 1) > 0.2)  # some are empty, and some have their corners the other way round
    flipped[::3] = flipped[::3, [2, 1, 0, 3]]
    flipped[::5] = flipped[::5, [2, 3, 0, 1]]
    scores = torch.rand(30)
    assert_same(run(flipped, scores), model(flipped, scores))


@pytest.mark.parametrize("aligned", [True, False])
def test_regions_are_sampled(aligned, tmp_path):
    def fn(x, b):
        return torch.ops.torchvision.roi_align(x, torch.cat([b[:, :1] * 0, b], 1), 0.5, 2, 3, 2, aligned)

    model, run = exported(fn, (torch.randn(2, 2, 12, 10), boxes(3)), tmp_path / "m.onnx")
    for n, h, w in ((3, 12, 10), (5, 9, 14)):
        inputs = torch.randn(1, 2, h, w), boxes(n)
        assert_same(run(*inputs), model(*inputs))


@pytest.mark.parametrize("use_mask", [True, False])
def test_convolutions_whose_samples_move(use_mask, tmp_path):
    weight, bias = torch.randn(4, 1, 2, 1), torch.arange(4.0)

    def fn(x, offset, mask):
        kept = mask if use_mask else mask.new_zeros(0)
        return (
            torch.ops.torchvision.deform_conv2d(x, weight, offset, kept, bias, 2, 1, 1, 0, 1, 1, 2, 2, use_mask)
            * mask.sum()
        )

    def inputs(batch):
        return torch.randn(batch, 2, 4, 3), torch.randn(batch, 8, 3, 3) * 2, torch.rand(batch, 4, 3, 3)

    batch = {0: torch.export.Dim("batch", max=4)}
    model, run = exported(fn, inputs(2), tmp_path / "m.onnx", dynamic_shapes=(batch, batch, batch))
    given = inputs(3)
    assert_same(run(*given), model(*given))


@pytest.mark.parametrize("use_mask", [True, False])
def test_another_runtime_gets_the_operator_of_the_standard(use_mask, tmp_path):
    from onnx.reference import ReferenceEvaluator

    weight, bias = torch.randn(4, 1, 2, 1), torch.arange(4.0)

    def fn(x, offset, mask):
        kept = mask if use_mask else mask.new_zeros(0)
        moved = torch.ops.torchvision.deform_conv2d(x, weight, offset, kept, bias, 2, 1, 1, 0, 1, 1, 2, 2, use_mask)
        return moved * mask.sum()

    inputs = torch.randn(2, 2, 4, 3), torch.randn(2, 8, 3, 3) * 0.3, torch.rand(2, 4, 3, 3)
    fairlead.export(Wrap(fn), inputs, tmp_path / "m.onnx", runtime="portable", verify=False, dynamic_shapes={})
    model = onnx.load(tmp_path / "m.onnx")
    assert "DeformConv" in {node.op_type for node in model.graph.node}
    names = [each.name for each in model.graph.input]
    (got,) = ReferenceEvaluator(model).run(None, {n: t.numpy() for n, t in zip(names, inputs, strict=True)})
    torch.testing.assert_close(torch.from_numpy(got), fn(*inputs), rtol=1e-4, atol=1e-4)
