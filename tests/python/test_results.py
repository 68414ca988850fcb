"""Metadata, artifacts and explanations can be pickled and shown; the log says what was chosen, compiled and loaded."""

from __future__ import annotations

import copy
import inspect
import logging
import pathlib
import pickle
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import tilewright
from tilewright import EpilogueArguments, GemmArguments, ShapeOnly


@pytest.fixture(scope="module")
def args() -> GemmArguments:
    return GemmArguments(*(np.ones(shape, np.float32) for shape in ((20, 12), (12, 16), (20, 16))))


@pytest.fixture(scope="module")
def kernel(args: GemmArguments) -> tilewright.Kernel:
    return tilewright.find_kernels(args)[0]


def again(value: Any) -> Any:
    return pickle.loads(pickle.dumps(value))


def test_metadata_can_be_pickled(kernel: tilewright.Kernel) -> None:
    metadata = kernel.metadata
    for part in (metadata.design, metadata.operands, metadata.operands.A, tilewright.DType.f16):
        assert again(part) == part and copy.deepcopy(part) == part and hash(again(part)) == hash(part)
    with_c = tilewright.GemmOperandsMetadata(
        *[tilewright.TensorAttributes("f16", "row")] * 3, "f32", C=metadata.operands.A
    )
    assert again(with_c) == with_c and with_c != metadata.operands and repr(again(with_c)) == repr(with_c)
    mine = tilewright.KernelMetadata("mine", "Mine", metadata.operands, metadata.design, min_cc=80, deterministic=True)
    assert again(mine) == mine and again(mine).deterministic and again(mine).min_cc == 80
    saved = again(metadata)  # of a built-in kernel
    assert again(saved) == saved and saved.to_json() == metadata.to_json() and repr(saved).startswith("SavedMetadata(simt")
    for name in ("kernel_name", "family", "operation", "deterministic", "batch_invariant"):
        assert getattr(saved, name) == getattr(metadata, name)
    assert saved.design["stages"] == metadata.design.stages and saved.operands["a"]["layout"] == "row"
    assert saved._repr_html_() == metadata._repr_html_() and copy.deepcopy(metadata) == saved


def test_designs_of_every_family_can_be_pickled() -> None:
    args = GemmArguments(
        *(ShapeOnly(shape, "f16") for shape in ((128, 64), (64, 256), (128, 256))), accumulator_type="f32"
    )
    kernels = [
        *tilewright.find_kernels(args, target="sm_80"),
        *tilewright.find_kernels(args, target="sm_90a"),
        *tilewright.find_kernels(args, target="sm_90a", providers=["cuda_program"]),
    ]
    families = {kernel.metadata.family: kernel.metadata.design for kernel in kernels}
    assert {"simt_gemm", "sm80_gemm", "sm90_gemm", "cuda_program"} <= set(families)
    designs = list(families.values())
    for mix in (None, "tma_wgmma", "cp_async_wgmma", "tma_mma", "tma_register_wgmma"):
        designs.append(tilewright.BLASDesignMetadata((64, 64, 64), op_class="tensor_op", mix=mix))
    for design in designs:
        for same in (again(design), copy.deepcopy(design)):
            assert same == design and same.mix == design.mix and repr(same) == repr(design)


def double(acc: Any) -> Any:
    return 2 * acc


def test_descriptions_of_problems_can_be_pickled() -> None:
    for shape in (ShapeOnly((4, 5), "f16"), ShapeOnly((7,), "f32", (3,))):
        assert again(shape) == shape and hash(again(shape)) == hash(shape)
        assert eval(repr(shape), {"ShapeOnly": ShapeOnly}) == shape and shape != ShapeOnly((4, 5), "f32")
    bias = np.arange(5, dtype=np.float32)
    epilogue = again(EpilogueArguments("D = relu(acc + row(bias))", bias=bias))
    assert (epilogue.operands["bias"] == bias).all()
    assert repr(epilogue) == "EpilogueArguments('D = relu(acc + row(bias))', bias=float32(5,))"
    a = np.ones((3, 3), np.float32)
    assert (tilewright.matmul(a, a, epilogue=again(EpilogueArguments(double))) == 6).all()
    assert repr(EpilogueArguments(double)) == "EpilogueArguments(double)"


def test_artifacts_can_be_pickled(args: GemmArguments, kernel: tilewright.Kernel) -> None:
    artifact = again(kernel.compile(args))
    assert artifact == kernel.compile(args) and artifact.cubin == kernel.compile(args).cubin
    kernel.run(args, artifact)
    with pytest.raises(ValueError):
        pickle.loads(pickle.dumps(artifact).replace(artifact.name.encode()[:20], b"x" * 20))


def test_explanations_can_be_pickled(args: GemmArguments) -> None:
    explanation = tilewright.explain(args)
    saved = again(explanation)
    assert str(saved) == str(explanation) and saved.to_json() == explanation.to_json()
    assert len(saved.kernels) == len(explanation.kernels) and saved.target == explanation.target
    assert again(saved) == saved and saved._repr_html_() == explanation._repr_html_()
    assert repr(saved).startswith("<SavedExplanation: ") and repr(explanation).startswith("<Explanation: ")


def test_notebooks_show_tables(args: GemmArguments, kernel: tilewright.Kernel) -> None:
    for value, word in (
        (kernel.metadata, "simt_gemm"),
        (kernel.compile(args), "registers per thread"),
        (tilewright.explain(args), "predicted us"),
    ):
        shown = value._repr_html_()
        assert shown.startswith("<b>") and "<table>" in shown and word in shown


def test_signatures_can_be_inspected() -> None:
    assert str(inspect.signature(tilewright.load_artifact)) == "(path: 'str | os.PathLike[str]') -> 'Artifact'"
    parameters = inspect.signature(tilewright.GemmArguments).parameters
    assert [*parameters][:5] == ["A", "B", "out", "accumulator_type", "epilogue"] and parameters["alpha"].default == 1.0
    assert parameters["C"].kind is inspect.Parameter.KEYWORD_ONLY
    callables = [getattr(tilewright, name) for name in tilewright.__all__]
    functions = [each for each in callables if callable(each) and not isinstance(each, type)]
    for each in functions:
        if each is not tilewright.make_kernel:  # it has two signatures
            assert inspect.signature(each).parameters is not None and each.__doc__, each


def test_the_log_says_what_was_done(caplog: pytest.LogCaptureFixture, tmp_path: pathlib.Path) -> None:
    a = np.ones((7, 9), np.float32)
    with caplog.at_level(logging.DEBUG, logger="tilewright"):
        tilewright.configure(cache_dir=str(tmp_path))
        tilewright.matmul(a, a.T.copy())
        tilewright.configure(cache_dir=str(tmp_path))
        tilewright.matmul(a, a.T.copy())
    text = caplog.text
    assert "gemm on emulator:sm_" in text and ": chose simt_gemm" in text and ", predicted " in text
    assert ": compiled by nvrtc" in text and ": found in the cache" in text


def test_the_emulator_is_announced_once() -> None:
    program = (
        "import logging; logging.basicConfig(level=logging.INFO)\n"
        "import numpy as np, tilewright\n"
        "a = np.ones((4, 4), np.float32)\n"
        "tilewright.matmul(a, a); tilewright.matmul(a, a)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=True, cwd="/"
    )
    if tilewright.device_name().startswith("emulator"):
        assert done.stderr.count("no GPU was found: kernels run on emulator:") == 1
