"""The checker of the tests' own (oracle.py) notices what is wrong."""

import dataclasses

import oracle
import pytest
import torch

import fairlead


class Scaled(torch.nn.Module):
    def __init__(self, far=0.0):
        super().__init__()
        self.far = far

    def forward(self, x):
        return x * (1.0 + (self.far if x.shape[0] > 20 else 0.0))


def exported(watch, tmp_path):
    fairlead.export(Scaled().eval(), (torch.rand(3, 4),), tmp_path / "m.onnx")
    return watch.waiting[-1]


def test_a_right_file_is_compared_at_two_settings(watch, tmp_path):
    assert oracle.compare(exported(watch, tmp_path)) == 2


def test_a_file_that_is_wrong_at_larger_sizes_only_is_found(watch, tmp_path):
    other = dataclasses.replace(exported(watch, tmp_path), model=Scaled(0.5).eval())
    with pytest.raises(AssertionError, match=r"output 'output' of the file at .*: differs by "):
        oracle.compare(other)


def test_a_model_that_refuses_every_setting_is_not_taken_for_compared(watch, tmp_path):
    other = dataclasses.replace(exported(watch, tmp_path), model=torch.nn.Bilinear(2, 2, 2))
    with pytest.raises(oracle.NotComparedError, match="every setting is refused"):
        oracle.compare(other)
