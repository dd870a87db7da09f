"""Folders with weights of GPTQ, AWQ, compressed-tensors, HQQ, fp8 and mxfp4, from their published layouts."""

import json

import checkpoints
import numpy as np
import torch
from safetensors.torch import load_file, save_file
from transformers import LlamaConfig, LlamaForCausalLM
from transformers.integrations.mxfp4 import convert_moe_packed_tensors


def words(integers, axis, bits=4, order=range(32)):
    """Along an axis, 32 / bits to a word, the first one lowest."""
    count = 32 // bits
    last = np.moveaxis(integers.astype(np.uint32), axis, -1)
    integers = last.reshape(*last.shape[:-1], -1, count)
    made = sum(integers[..., place] << np.uint32(bits * k) for k, place in enumerate(list(order)[:count]))
    return torch.from_numpy(np.ascontiguousarray(np.moveaxis(made, -1, axis)).view(np.int32))


def group_of(shape, group, draw, bits=4):
    """Integers [rows, columns], zero points and scales [rows, groups], and what they stand for."""
    rows, columns = shape
    integers = draw.integers(0, 2**bits, shape)
    zeros = draw.integers(1, 2**bits, (rows, columns // group))
    scales = (draw.uniform(0.5, 1.5, zeros.shape) * 0.4 / 2**bits).astype(np.float16)
    spread = [np.repeat(each, group, 1) for each in (zeros, scales.astype(np.float32))]
    return integers, zeros, torch.from_numpy(scales), ((integers - spread[0]) * spread[1]).astype(np.float32)


def gptq(shape, draw, bits=4, less=1):
    q, z, s, w = group_of(shape, 32, draw, bits)
    order = torch.arange(shape[1], dtype=torch.int32) // 32
    made = {"qweight": words(q.T, 0, bits), "qzeros": words(z.T - less, 1, bits), "scales": s.T.contiguous()}
    return made | {"g_idx": order}, w


def awq(shape, draw):
    q, z, s, w = group_of(shape, 64, draw)
    places = (0, 2, 4, 6, 1, 3, 5, 7)
    return {"qweight": words(q.T, 1, 4, places), "qzeros": words(z.T, 1, 4, places), "scales": s.T.contiguous()}, w


def pack_quantized(shape, draw):
    q, z, s, w = group_of(shape, 32, draw)
    made = {"weight_packed": words(q, 1), "weight_scale": s, "weight_zero_point": words(z, 0)}
    return made | {"weight_shape": torch.tensor(shape)}, w


def int_quantized(shape, draw):
    q = draw.integers(-128, 128, shape).astype(np.int8)
    s = torch.from_numpy(draw.uniform(0.5, 1.5, (shape[0], 1)) * 0.002).to(torch.bfloat16)
    return {"weight": torch.from_numpy(q), "weight_scale": s}, q.astype(np.float32) * s.float().numpy()


def hqq(shape, draw, bits=4):
    q, _, s, _ = group_of(shape, 32, draw, bits)
    zeros = torch.from_numpy(draw.uniform(0, 2**bits - 1, s.shape).astype(np.float16))
    spread = [np.repeat(each.double().numpy(), 32, 1) for each in (zeros, s)]
    groups = q.reshape(-1, 32).astype(np.uint8)
    half = len(groups) // 2
    made = groups if bits == 8 else (groups[:half] << 4) | groups[half:]
    tensors = {
        "W_q": torch.from_numpy(made), "scale": s.reshape(-1, 1), "zero": zeros.reshape(-1, 1),
        "shape": torch.tensor(shape), "axis": torch.tensor(1, dtype=torch.int32), "nbits": torch.tensor(bits),
    }  # fmt: skip
    return tensors, ((q - spread[0]) * spread[1]).astype(np.float32)


def of_tensors(form, bits, group):
    return {
        "quant_method": "compressed-tensors", "format": form,
        "config_groups": {"group_0": {"weights": {"num_bits": bits, "type": "int", "group_size": group}}},
    }  # fmt: skip


METHODS = {
    "GPTQ 4 bits": (gptq, {"quant_method": "gptq", "bits": 4, "group_size": 32, "desc_act": False}),
    "GPTQ v2 8 bits": (
        lambda shape, draw: gptq(shape, draw, 8, 0),
        {"quant_method": "gptq", "bits": 8, "group_size": 32, "checkpoint_format": "gptq_v2"},
    ),
    "AWQ": (awq, {"quant_method": "awq", "bits": 4, "group_size": 64, "version": "gemm"}),
    "compressed-tensors 4 bits": (pack_quantized, of_tensors("pack-quantized", 4, 32)),
    "HQQ 4 bits": (hqq, {"quant_method": "hqq", "quant_config": {"weight_quant_params": {"axis": 1}}}),
    "HQQ 8 bits": (lambda shape, draw: hqq(shape, draw, 8), {"quant_method": "hqq"}),
    "compressed-tensors int8": (int_quantized, of_tensors("int-quantized", 8, None)),
}


# ---- floats of 8 and 4 bits ------------------------------------------------------------------------------------


def blocks8(shape, draw, high, wide, dtype=torch.float8_e4m3fn, scale_dtype=torch.float32):
    """Codes, scales of blocks of high by wide, the last ones smaller, and what they stand for."""
    codes = torch.from_numpy(draw.normal(0, 60, shape).astype(np.float32)).to(dtype)
    grid = (-(-shape[0] // high), -(-shape[1] // wide))
    scales = torch.from_numpy(draw.uniform(0.5, 1.5, grid).astype(np.float32) * 0.001).to(scale_dtype)
    spread = scales.float().repeat_interleave(high, 0).repeat_interleave(wide, 1)[: shape[0], : shape[1]]
    return codes, scales, (codes.float() * spread).numpy()


def fp8(shape, draw):
    codes, scales, w = blocks8(shape, draw, 24, 40)
    return {"weight": codes, "weight_scale_inv": scales}, w


def fp8_whole(shape, draw):
    codes, scales, w = blocks8(shape, draw, *shape, dtype=torch.float8_e5m2)
    return {"weight": codes, "weight_scale_inv": scales.reshape(()), "activation_scale": torch.tensor(1.0)}, w


def fp8_rows(shape, draw):
    codes, scales, w = blocks8(shape, draw, 1, shape[1], scale_dtype=torch.bfloat16)
    return {"weight": codes, "weight_scale": scales}, w


def fp8_of_modelopt(shape, draw):
    codes, scales, w = blocks8(shape, draw, *shape)
    return {"weight": codes, "weight_scale": scales.reshape(()), "input_scale": torch.tensor(1.0)}, w


FLOAT8 = {
    "modelopt fp8": (fp8_of_modelopt, {"quant_method": "modelopt", "quant_algo": "FP8"}),
    "fp8 in blocks": (fp8, {"quant_method": "fp8", "weight_block_size": [24, 40]}),
    "fp8": (fp8_whole, {"quant_method": "fp8", "weight_block_size": None}),
    "fp8 by row": (fp8_rows, {"quant_method": "fbgemm_fp8"}),
    "compressed-tensors fp8": (
        fp8_rows,
        of_tensors("float-quantized", 8, None) | {"config_groups": {"group_0": {"weights": {
            "num_bits": 8, "type": "float", "strategy": "channel"}}}},
    ),
}  # fmt: skip


def mxfp4(at, model):
    """The experts of a model in 4 bits, the rest as bfloat16; what the experts stand for."""
    checkpoints.saved(model, at)
    draw, floats, held = torch.Generator().manual_seed(0), {}, {}
    for key, weight in load_file(at / "model.safetensors").items():
        if not key.endswith(("gate_up_proj", "down_proj")):
            held[key] = weight.to(torch.bfloat16)
            continue
        experts, columns, rows = weight.shape
        codes = torch.randint(0, 256, (experts, rows, columns // 32, 16), dtype=torch.uint8, generator=draw)
        scales = torch.randint(118, 123, (experts, rows, columns // 32), dtype=torch.uint8, generator=draw)
        held |= {f"{key}_blocks": codes, f"{key}_scales": scales}
        floats[key] = convert_moe_packed_tensors(codes, scales).float()
    save_file(held, at / "model.safetensors")
    config = json.loads((at / "config.json").read_text())
    (at / "config.json").write_text(json.dumps(config | {
        "dtype": "bfloat16",
        "quantization_config": {"quant_method": "mxfp4", "modules_to_not_convert": ["lm_head"]},
    }))  # fmt: skip
    return floats


def folder_of(at, name, without=None, **changed):
    """A tiny Llama with its linear layers stored so, and these as floats."""
    make, settings = (METHODS | FLOAT8)[name]
    config = LlamaConfig(
        vocab_size=128, hidden_size=64, intermediate_size=128, num_hidden_layers=1, num_attention_heads=4,
        num_key_value_heads=2, bos_token_id=1, eos_token_id=2, pad_token_id=0,
    )  # fmt: skip
    checkpoints.saved(LlamaForCausalLM(config), at)
    checkpoints.tokenizer(at)
    held = load_file(at / "model.safetensors")
    draw, floats = np.random.default_rng(0), {}
    for key in [key for key in held if key.endswith("_proj.weight")]:
        parts, floats[key] = make(tuple(held.pop(key).shape), draw)
        held |= {f"{key.removesuffix('weight')}{part}": tensor for part, tensor in parts.items() if part != without}
    save_file(held, at / "model.safetensors")
    config = json.loads((at / "config.json").read_text())
    (at / "config.json").write_text(json.dumps(config | {"quantization_config": settings | changed}))
    return floats
