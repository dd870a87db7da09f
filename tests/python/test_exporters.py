"""The classes of fairlead.exporters: configurations, auto classes, what they refuse, and that no name is missing."""

import dataclasses
import importlib
import inspect
import re
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
from fairlead.exporters import (
    AutoExportConfig,
    AutoHfExporter,
    DynamoConfig,
    ExecutorchConfig,
    ExportConfigMixin,
    ExportFormat,
    HfExporter,
    OnnxConfig,
    OnnxExporter,
    OpenVINOConfig,
    get_hf_exporter,
    register_export_config,
    register_exporter,
)
from fairlead.exporters import auto as auto_module
from fairlead.exporters.utils import check_packages

import fairlead

CONFIGS = [DynamoConfig, OnnxConfig, ExecutorchConfig, OpenVINOConfig]
ROOT = Path(__file__).parents[2]


def refused(error, call, *args, **kwargs) -> str:
    """The one line that a call is refused with; it is of our class as well as of Python's."""
    with pytest.raises(error) as caught:
        call(*args, **kwargs)
    assert isinstance(caught.value, (fairlead.InvalidInput, ImportError))
    text = str(caught.value)
    assert "\n" not in text
    return text


# ---- configurations ---------------------------------------------------------------------------------


@pytest.mark.parametrize("cls", CONFIGS)
def test_a_config_becomes_a_dict_and_an_equal_config_again(cls):
    config = cls(dynamic=True, dynamic_shapes={"x": {0: "batch"}})
    made = config.to_dict()
    assert cls.from_dict(made) == config == AutoExportConfig.from_dict(made)
    assert dict(config) == made
    made["dynamic_shapes"]["x"][0] = "other"
    assert config.dynamic_shapes == {"x": {0: "batch"}}


def test_a_format_may_be_given_by_its_name():
    config = OnnxConfig.from_dict({"export_format": "onnx", "dynamic": True})
    assert config.export_format is ExportFormat.ONNX
    assert AutoExportConfig.from_dict({"export_format": "dynamo"}) == DynamoConfig()


def test_positional_arguments_are_in_the_order_of_transformers():
    config = OnnxConfig(ExportFormat.ONNX, True, False, None, False, None, "model.onnx", 20, False, True, True, True)
    assert (config.output_path, config.opset_version, config.external_data) == ("model.onnx", 20, False)
    assert config.keep_initializers_as_inputs


@pytest.mark.parametrize("cls", CONFIGS)
def test_fields_and_defaults_are_those_of_transformers(cls):
    theirs = getattr(pytest.importorskip("transformers.exporters"), cls.__name__)
    ours = {f.name: f.default for f in dataclasses.fields(cls)}
    for field in dataclasses.fields(theirs):
        if field.name == "export_format":
            assert ours[field.name].value == field.default.value
        else:
            assert ours[field.name] == field.default, field.name


def test_unknown_fields_are_refused_with_the_one_that_was_meant():
    expected = "[OnnxConfig] Expected fields among export_format, dynamic, strict, dynamic_shapes, "
    for call in (lambda: OnnxConfig(opset=20), lambda: OnnxConfig.from_dict({"opset": 20})):
        text = refused(TypeError, call)
        assert text.startswith(expected)
        assert text.endswith("got opset. Did you mean opset_version?")
    assert refused(TypeError, DynamoConfig, backend="xnnpack", colour=1).endswith("got backend, colour. Leave it out.")


@pytest.mark.parametrize(
    ("cls", "given", "text"),
    [
        (OnnxConfig, {"dynamic": "yes"}, "[OnnxConfig] Expected dynamic as True or False, got 'yes'."),
        (DynamoConfig, {"strict": 1}, "[DynamoConfig] Expected strict as True or False, got 1."),
        (OnnxConfig, {"opset_version": "20"}, "[OnnxConfig] Expected opset_version as a number or None, got '20'."),
        (
            OnnxConfig, {"external_data": "maybe"},
            "[OnnxConfig] Expected external_data among True, False, 'auto', 'always', 'never', got 'maybe'.",
        ),
        (
            OnnxConfig, {"output_path": 3},
            "[OnnxConfig] Expected output_path as a string, an os.PathLike or None, got 3.",
        ),
        (
            DynamoConfig, {"tracer": "fx"},
            "[DynamoConfig] Expected tracer among 'observe', 'torch.export', got 'fx'.",
        ),
        (
            ExecutorchConfig, {"backend": "tpu"},
            "[ExecutorchConfig] Expected backend among 'xnnpack', 'cuda', 'mlx', 'portable', None, got 'tpu'.",
        ),
        (
            ExecutorchConfig,
            {"max_size": 0},
            "[ExecutorchConfig] Expected max_size as a number of 1 or more, or such numbers by name, got 0.",
        ),
        (
            DynamoConfig, {"quantizer": "int8"},
            "[DynamoConfig] Expected quantizer as an ExportQuantizer or None, got str.",
        ),
        (
            DynamoConfig, {"dynamic_shapes": "batch"},
            "[DynamoConfig] Expected dynamic_shapes as a dict, a tuple or None, got str. "
            'Write {"input_ids": {0: "batch"}} for a dynamic first axis.',
        ),
        (
            OnnxConfig, {"export_format": "executorch"},
            "[OnnxConfig] Expected export_format 'onnx', got 'executorch'. "
            "Use the configuration of that format, or AutoExportConfig.from_dict.",
        ),
        (
            OnnxConfig, {"export_format": 3},
            "[OnnxConfig] Expected export_format as an ExportFormat or its name, got 3.",
        ),
    ],
)  # fmt: skip
def test_values_that_cannot_be_used_are_refused_when_the_config_is_made(cls, given, text):
    assert refused((TypeError, ValueError), cls, **given) == text


# ---- which config goes where ------------------------------------------------------------------------


class Plain(HfExporter):
    """An exporter that returns its configuration."""

    config_class = OnnxConfig

    def export(self, model, sample_inputs, config=None):
        return self.configured(config)


class PlainDynamo(Plain):
    config_class = DynamoConfig


def test_configs_are_accepted_where_they_make_sense():
    assert Plain().export(None, {}, None) == OnnxConfig()
    assert Plain().export(None, {}, {"dynamic": True}) == OnnxConfig(dynamic=True)
    assert Plain().export(None, {}, {"export_format": "onnx", "dynamic": True}) == OnnxConfig(dynamic=True)
    assert Plain().export(None, {}, DynamoConfig(strict=True)) == OnnxConfig(strict=True)
    onnx = OnnxConfig(opset_version=20)
    assert PlainDynamo().export(None, {}, onnx) is onnx


def test_configs_of_transformers_are_accepted_by_their_fields():
    theirs = pytest.importorskip("transformers.exporters")
    exporter = OnnxExporter()
    given = theirs.OnnxConfig(dynamic=True, optimize=False, opset_version=19)
    found = exporter.configured(given)
    assert type(found) is OnnxConfig
    assert (found.dynamic, found.optimize, found.opset_version) == (True, False, 19)
    assert exporter.configured(theirs.DynamoConfig(dynamic=True)) == OnnxConfig(dynamic=True)
    assert isinstance(AutoHfExporter.from_config(given), OnnxExporter)

    class Own(theirs.OnnxConfig):
        pass

    assert exporter.configured(Own(dynamic=True)) == OnnxConfig(dynamic=True)
    with pytest.raises(TypeError, match="Expected OnnxConfig or a dict of its fields, got ExecutorchConfig"):
        exporter.configured(theirs.ExecutorchConfig())
    quantizer = theirs.quantizers.OnnxRuntimeQuantizer.__new__(theirs.quantizers.OnnxRuntimeQuantizer)
    with pytest.raises(TypeError, match="OnnxRuntimeQuantizer of Transformers"):
        exporter.configured(theirs.OnnxConfig(quantizer=quantizer))


def test_a_config_of_the_wrong_kind_is_one_clear_error():
    export = Plain().export
    text = "[Plain] Expected OnnxConfig or a dict of its fields, got"
    assert refused(TypeError, export, None, {}, ExecutorchConfig()) == f"{text} ExecutorchConfig."
    assert refused(TypeError, export, None, {}, "onnx") == f"{text} str."
    assert refused(TypeError, export, None, {}, {"export_format": "dynamo"}) == (
        "[Plain] Expected a configuration for 'onnx', got one for 'dynamo'. "
        "Use OnnxConfig, or AutoHfExporter.from_config for the exporter of that format."
    )
    assert "got opset. Did you mean opset_version?" in refused(TypeError, export, None, {}, {"opset": 3})


def test_the_base_class_is_abstract():
    with pytest.raises(TypeError, match="abstract"):
        HfExporter()


# ---- packages ---------------------------------------------------------------------------------------


def test_missing_packages_are_one_import_error_with_the_command():
    class Needs(Plain):
        required_packages = ["numpy", "no_such_package"]  # noqa: RUF012
        min_versions = {"torch": "99.1", "other_missing": "1.2"}  # noqa: RUF012

    torch = importlib.import_module("torch").__version__.partition("+")[0]
    assert refused(ImportError, Needs) == (
        "[Needs] Expected no_such_package and torch>=99.1 and other_missing>=1.2, got no no_such_package and torch "
        f'{torch} and no other_missing. Install with: pip install no_such_package "torch>=99.1" "other_missing>=1.2"'
    )


def test_versions_that_were_not_tested_are_a_warning():
    with pytest.warns(
        UserWarning, match=r"\[It\] Runs with versions it was not tested with: numpy .* \(tested with 0.1\)"
    ):
        check_packages("It", ["numpy"], {}, {"numpy": "0.1"})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_packages("It", ["numpy"], {"numpy": "1.0"})


def test_configs_need_no_torch():
    code = "import sys, fairlead.exporters as e; e.OnnxConfig(dynamic=True); print('torch' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"


# ---- auto classes -----------------------------------------------------------------------------------


@pytest.fixture
def tables(monkeypatch):
    monkeypatch.setattr(auto_module, "AUTO_EXPORTER_MAPPING", dict(auto_module.AUTO_EXPORTER_MAPPING))
    monkeypatch.setattr(auto_module, "AUTO_EXPORT_CONFIG_MAPPING", dict(auto_module.AUTO_EXPORT_CONFIG_MAPPING))


def test_the_exporter_of_a_config():
    for config in (OnnxConfig(), {"export_format": "onnx"}, {"export_format": ExportFormat.ONNX}):
        assert isinstance(AutoHfExporter.from_config(config), fairlead.exporters.OnnxExporter)
        assert isinstance(get_hf_exporter(config), fairlead.exporters.OnnxExporter)
    assert AutoHfExporter.supports_export_format({"export_format": "onnx"})


def test_a_format_of_ones_own(tables):
    @register_export_config("text")
    @dataclasses.dataclass
    class TextConfig(ExportConfigMixin):
        export_format: str = "text"
        width: int = 80

    with pytest.warns(UserWarning, match="Expected an exporter for 'text'"):
        assert not AutoHfExporter.supports_export_format({"export_format": "text"})
    assert refused(ValueError, AutoHfExporter.from_config, TextConfig()) == (
        "[AutoHfExporter] Expected an exporter for 'text', got only a configuration class. "
        "Add @register_exporter('text')."
    )

    @register_exporter("text")
    class TextExporter(HfExporter):
        config_class = TextConfig

        def __init__(self, shout=False):
            super().__init__()
            self.shout = shout

        def export(self, model, sample_inputs, config=None):
            return str(model)[: self.configured(config).width]

    config = AutoExportConfig.from_dict({"export_format": "text", "width": 3})
    exporter = AutoHfExporter.from_config(config, shout=True)
    assert isinstance(exporter, TextExporter)
    assert exporter.shout
    assert exporter.export("model", {}, config) == "mod"
    with pytest.warns(UserWarning, match=r"\[register_exporter\] 'text' was registered before and is replaced"):
        register_exporter("text")(TextExporter)


def test_what_the_auto_classes_refuse(tables):
    known = "dynamo, executorch, onnx, openvino"
    assert refused(ValueError, AutoExportConfig.from_dict, {"dynamic": True}) == (
        f"[AutoExportConfig] Expected a dict with export_format among {known}, got None."
    )
    assert refused(ValueError, AutoExportConfig.from_dict, {"export_format": "tflite"}).endswith("got 'tflite'.")
    assert refused(ValueError, AutoHfExporter.from_config, {}) == (
        f"[AutoHfExporter] Expected export_format in the configuration, got none. It is one of {known}."
    )
    assert refused(ValueError, AutoHfExporter.from_config, {"export_format": "tflite"}) == (
        f"[AutoHfExporter] Expected export_format among {known}, got 'tflite'."
    )
    assert refused(ValueError, AutoHfExporter.from_config, 3).endswith("got int.")
    with pytest.warns(UserWarning, match="got 'tflite'"):
        assert not AutoHfExporter.supports_export_format({"export_format": "tflite"})
    text = "[register_exporter] Expected a subclass of HfExporter, got dict."
    assert refused(TypeError, register_exporter("x"), dict) == text
    text = "[register_export_config] Expected a subclass of ExportConfigMixin, got int."
    assert refused(TypeError, register_export_config("x"), 3) == text
    assert "Expected the name of a format, got 3" in refused(TypeError, register_exporter, 3)
    with pytest.raises(NotImplementedError, match="from_config"):
        AutoHfExporter.from_pretrained("org/model")


# ---- no name is missing -----------------------------------------------------------------------------

# Modules that other changes bring: their names are asked for as soon as they are there.
COMING = {"fairlead.patches", "fairlead.exporters.dynamo", "fairlead.exporters.executorch"}


def names_of_transformers() -> dict[str, str]:
    """Public names of transformers.exporters and of its helpers -> the module here that must have them."""
    theirs = pytest.importorskip("transformers.exporters")
    names = dict.fromkeys((n for n in theirs.__all__ if not n.startswith(("exporter_", "_"))), "fairlead.exporters")
    names = {n: m for n, m in names.items() if n not in ("auto", "base", "configs", "quantizers", "utils")}
    helpers = importlib.import_module("transformers.exporters.utils")
    for name, value in vars(helpers).items():
        if inspect.isfunction(value) and value.__module__ == helpers.__name__ and not name.startswith("_"):
            names[name] = "fairlead.exporters.utils"
    return names


def test_every_name_of_transformers_is_here_and_in_the_table():
    page = (ROOT / "docs" / "exporters.md").read_text()
    listed = set(re.findall(r"`([A-Za-z_0-9]+)[(`]", "\n".join(x for x in page.splitlines() if x.startswith("| `"))))
    names = names_of_transformers()
    assert len(names) > 35
    missing = []
    for name, module in names.items():
        if name not in listed:
            missing.append(f"{name} (docs/exporters.md)")
        try:
            getattr(importlib.import_module(module), name)
        except (AttributeError, ImportError) as error:
            if error.name not in COMING:
                missing.append(f"{name} ({module})")
    assert not missing
