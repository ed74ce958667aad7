"""Number types by card: what each generation is good at, and what is refused."""

from __future__ import annotations

import pytest

from llmtui.core.errors import MachineError
from llmtui.core.preset import Preset
from llmtui.core.worker.precision import Precision, choose_precision, good_type


def preset(dtype: str = "auto", lora: bool = True, quantization: str = "none") -> Preset:
    values = {"model": {"name_or_path": "x", "dtype": dtype, "quantization": quantization}}
    return Preset.model_validate(values | ({"lora": {}} if lora else {}))


@pytest.mark.parametrize(
    ("card", "capability", "expected"),
    [
        ("V100", (7, 0), "float16"),
        ("T4", (7, 5), "float16"),
        ("A100", (8, 0), "bfloat16"),
        ("H100", (9, 0), "bfloat16"),
    ],
)
def test_auto_is_what_the_card_is_good_at(card: str, capability: tuple[int, int], expected: str) -> None:
    assert good_type("cuda", capability) == expected
    assert choose_precision(preset(), "cuda", capability) == Precision(expected, expected)
    # Whole training keeps its weights in float32: small updates would be rounded away, and float16 gradients cannot be
    # unscaled.
    assert choose_precision(preset(lora=False), "cuda", capability) == Precision("float32", expected)


def test_the_cpu_trains_in_float32() -> None:
    assert choose_precision(preset(), "cpu", None) == Precision("float32", None)
    assert choose_precision(preset("bfloat16"), "cpu", None) == Precision("bfloat16", None)
    with pytest.raises(MachineError, match="float16 does not train on the CPU"):
        choose_precision(preset("float16"), "cpu", None)


@pytest.mark.parametrize("capability", [(7, 0), (7, 5)])
def test_bfloat16_is_refused_where_it_is_not_native(capability: tuple[int, int]) -> None:
    with pytest.raises(MachineError, match="no native bfloat16"):
        choose_precision(preset("bfloat16"), "cuda", capability)


def test_a_named_type_is_obeyed() -> None:
    assert choose_precision(preset("float32"), "cuda", (9, 0)) == Precision("float32", None)
    assert choose_precision(preset("float16"), "cuda", (9, 0)) == Precision("float16", "float16")
    assert choose_precision(preset("float16", lora=False), "cuda", (7, 0)) == Precision("float32", "float16")
