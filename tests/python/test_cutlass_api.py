"""tilewright.cutlass_api: the notebook of the example runs, and each name does what it says."""

from __future__ import annotations

import importlib.util
import itertools
import pathlib
import re
import subprocess
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import tilewright
from tilewright import InvalidArgument, cutlass_api
from tilewright.cutlass_api.arguments import EpilogueArguments, GemmArguments
from tilewright.cutlass_api.utils import leading_dim, strides_to_layout_string

NOTEBOOK = pathlib.Path(__file__).parents[2] / "examples" / "15_cutlass_api_notebook.py"


@pytest.fixture(scope="module")
def notebook() -> Iterator[ModuleType]:
    """The executed notebook, which checks its own results."""
    spec = importlib.util.spec_from_file_location("notebook", NOTEBOOK)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    with tilewright.scoped_registrations():
        spec.loader.exec_module(module)
        yield module


def problem(batch: int = 1, m: int = 20, n: int = 18, k: int = 12, layouts: str = "ttt") -> tuple[Any, Any, Any]:
    random = np.random.default_rng(3)

    def array(letter: str, rows: int, columns: int) -> Any:
        shape = (batch, rows, columns) if letter == "t" else (batch, columns, rows)
        values = random.integers(-4, 5, shape).astype(np.float64)
        return values if letter == "t" else values.swapaxes(1, 2)

    out = array(layouts[2], m, n)
    out[:] = np.nan
    return array(layouts[0], m, k), array(layouts[1], k, n), out


def names(kernels: Any) -> list[str]:
    return [kernel.metadata.kernel_name for kernel in kernels]


def test_the_notebook_finds_its_two_kernels_in_order(notebook: ModuleType) -> None:
    assert names(notebook.kernels) == ["F64GemmKernel_tile32x32_ttt", "F64GemmKernel_tile16x16_ttt"]
    assert notebook.kernels_ctam256 == []


def test_all_sixteen_are_generated_in_order(notebook: ModuleType) -> None:
    expected = [
        f"F64GemmKernel_tile{tile}_{''.join(letters)}"
        for tile in ("32x32", "16x16")
        for letters in itertools.product("tn", repeat=3)
    ]
    assert names(cutlass_api.get_kernels(metadata_filter=notebook.is_f64gemm_kernel)) == expected
    assert names(cutlass_api.get_kernels(metadata_filter=notebook.is_f64gemm_kernel, cc=80)) == expected


@pytest.mark.parametrize("layouts", ["".join(letters) for letters in itertools.product("tn", repeat=3)])
def test_every_layout_is_computed(notebook: ModuleType, layouts: str) -> None:
    a, b, out = problem(2, layouts=layouts)
    kernels = cutlass_api.get_kernels(GemmArguments(a, b, out), providers=["cutedsl"])
    assert [name[-3:] for name in names(kernels)] == [layouts] * 2
    for kernel in kernels:
        out[:] = np.nan
        kernel.run(GemmArguments(a, b, out))
        np.testing.assert_array_equal(out, a @ b)


def test_an_artifact_serves_other_shapes(notebook: ModuleType) -> None:
    args = GemmArguments(*problem())
    kernel = cutlass_api.get_kernels(args, notebook.is_f64gemm_kernel)[0]
    artifact = kernel.compile(args)
    assert isinstance(artifact, cutlass_api.artifact.CompiledArtifact) and artifact.kernel_obj is kernel
    for extents in ((4, 3, 5, 7), (1, 1, 1, 1)):
        a, b, out = problem(*extents)
        kernel.run(GemmArguments(a, b, out), artifact, assume_supported_args=True)
        np.testing.assert_array_equal(out, a @ b)


@pytest.mark.parametrize("compiles", [False, True])
def test_a_generated_kernel_can_be_run_without_a_provider(notebook: ModuleType, compiles: bool) -> None:
    kernel = next(each for each in notebook.F64GemmKernel.generate_kernels(lambda _: True) if each.name.endswith("ttt"))
    a, b, out = problem()
    args = GemmArguments(a, b, out)
    kernel.run(args, kernel.compile(args) if compiles else None)
    np.testing.assert_array_equal(out, a @ b)


def test_run_compiles_once(notebook: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    args = GemmArguments(*problem())
    kernel = cutlass_api.get_kernels(args, notebook.is_f64gemm_kernel)[1]
    compile = type(kernel).compile

    def counted(self: Any, args: Any, cc: int | None = None) -> Any:
        calls.append(cc)
        return compile(self, args, cc)

    monkeypatch.setattr(type(kernel), "compile", counted)
    kernel.__dict__.pop("_artifacts", None)
    kernel.run(args)
    kernel.run(args)
    assert len(calls) == 1


def test_reasons_are_given(notebook: ModuleType) -> None:
    kernel = cutlass_api.get_kernels(GemmArguments(*problem()), notebook.is_f64gemm_kernel)[0]
    flat = GemmArguments(*(array[0] for array in problem()))
    assert cutlass_api.get_kernels(flat, notebook.is_f64gemm_kernel) == []
    assert kernel.supports(flat).reason == "All operands must be rank 3."
    reason = "Kernel does not support the provided arguments: All operands must be rank 3."
    with pytest.raises(ValueError, match=reason):
        kernel.run(flat)
    single = [array.astype(np.float32) for array in problem()]
    assert cutlass_api.get_kernels(GemmArguments(*single), notebook.is_f64gemm_kernel) == []
    assert "f64" in kernel.supports(GemmArguments(*single)).reason
    relu = GemmArguments(*problem(), epilogue=EpilogueArguments(lambda accum: np.maximum(accum, 0)))
    assert cutlass_api.get_kernels(relu, notebook.is_f64gemm_kernel) == []


def test_shipped_kernels_are_found_and_run_by_the_names_of_cutlass_api() -> None:
    a, b, out = (array[0].astype(np.float32) for array in problem())
    args = GemmArguments(a, b, out, accumulator_type=np.float32)
    kernel = cutlass_api.get_kernels(args, providers=["tilewright"])[0]
    artifact = kernel.compile(args, cc=None)
    assert kernel.supports(args)
    kernel.run(args, compiled_artifact=artifact, workspace=None, assume_supported_args=True)
    np.testing.assert_array_equal(out, a @ b)
    with pytest.raises(InvalidArgument, match="got cc sm_80"):
        kernel.compile(args, cc=80)


def test_arguments_show_the_arrays() -> None:
    a, b, out = problem()
    args = GemmArguments(a, b, out)
    assert args.A.tensor is a and args.B.tensor is b and args.out.tensor is out
    assert args.A.shape == (1, 20, 12) and args.out.stride == (360, 18, 1)
    assert args.A.dtype == cutlass_api.cutlass.Float64
    with pytest.raises(AttributeError):
        args.A.colour  # noqa: B018


def test_misuse_is_named(notebook: ModuleType) -> None:
    provider = cutlass_api.providers.cutedsl.CuTeDSLProvider
    with pytest.raises(InvalidArgument, match="derives from CuteDslKernel, got 3"):
        provider.register(3)  # type: ignore[type-var]
    with pytest.raises(InvalidArgument, match="Provider cutedls is not available: there are 'tilewright', 'cutedsl'"):
        cutlass_api.get_kernels(providers=["cutedls"])
    kernel = notebook.kernels[0]
    with pytest.raises(InvalidArgument, match="already set"):
        kernel.metadata = kernel.metadata
    with pytest.raises(InvalidArgument, match="another implementation"):
        kernel.cute_compile(object(), notebook.args.A)
    with pytest.raises(InvalidArgument, match="takes tensors"):
        kernel.cute_run(None, 1)
    with pytest.raises(InvalidArgument, match="no entry of stride is 1"):
        leading_dim((2, 2), (4, 2))
    with pytest.raises(InvalidArgument, match=r"must be \(0, 0, 1\) or \(0, 1, 0\)"):
        strides_to_layout_string((1, 1, 1))


def test_a_class_without_methods_says_what_is_missing() -> None:
    @cutlass_api.providers.cutedsl.CuTeDSLProvider.register
    class Empty(cutlass_api.providers.cutedsl.kernel.CuteDslKernel):
        @staticmethod
        def generate_kernels(metadata_filter: Any, epilogue_args: Any = None, cc: int | None = None) -> Any:
            pass

    try:
        with pytest.raises(InvalidArgument, match=r"Empty.generate_kernels\(\) must return a list of kernels"):
            cutlass_api.get_kernels(GemmArguments(*problem()), providers=["cutedsl"])
    finally:
        cutlass_api.providers.cutedsl.CuTeDSLProvider.unregister(Empty)


def test_manifest_grows_without_duplicates(notebook: ModuleType) -> None:
    manifest = cutlass_api.Manifest()
    args = GemmArguments(*problem())
    for _ in range(2):
        assert len(manifest.add_kernels(args, notebook.is_f64gemm_kernel)) == 2
    assert len(manifest.kernels) == 2


def test_other_providers_can_be_registered() -> None:
    args = GemmArguments(*(array[0] for array in problem()))
    shipped = cutlass_api.get_kernels(args)[0]

    @cutlass_api.providers.register_provider("mine")
    class Mine(cutlass_api.providers.ProviderBase):
        @classmethod
        def generate_kernels(cls, metadata_filter: Any, epilogue_args: Any = None, cc: int | None = None) -> list[Any]:
            return [shipped] if metadata_filter(shipped.metadata) else []

    try:
        assert names(cutlass_api.get_kernels(args, providers=["mine"])) == names([shipped])
        assert cutlass_api.get_kernels(args, lambda metadata: False, providers=["mine"]) == []
    finally:
        del cutlass_api.providers.available_providers["mine"]


def test_the_guide_runs(tmp_path: pathlib.Path) -> None:
    guide = (NOTEBOOK.parents[1] / "docs" / "cutlass_api.md").read_text()
    programs = re.findall(r"^```python\n(.*?)^```", guide, re.MULTILINE | re.DOTALL)
    assert len(programs) == 2
    translated = """
from tilewright.cutlass_api.cutlass import translation
assert "if ((column_v < out_v_at.shape[1]))" in translation.translate(
    Transposed.kernel.function, [Transposed(), args.A, args.out]
).text
"""
    (tmp_path / "guide.py").write_text("".join([*programs, translated]))
    subprocess.run([sys.executable, tmp_path / "guide.py"], timeout=120, check=True)


def test_utils() -> None:
    utils = cutlass_api.utils
    assert strides_to_layout_string((0, 0, 1), (0, 1, 0), (0, 0, 1)) == "tnt"
    assert utils.ceil_div(7, 2) == 4 and utils.round_up(7, 4) == 8
    assert utils.tuple_to_string((64, 64, 32)) == "64x64x32"
    assert utils.get_stride_order((8, 1, 4)) == (1, 2, 0) and utils.get_stride_rank((8, 1, 4)) == (2, 0, 1)
    assert leading_dim((3, 4), (1, 3)) == 0
    assert utils.to_cutlass_type(np.float16) == cutlass_api.cutlass.Float16
    assert utils.is_numpy_available() and utils.is_numpy_tensor(np.zeros(1)) and not utils.is_torch_tensor(1)
    assert utils.device_cc() >= 80 and bool(utils.is_device_cc_supported({utils.device_cc()}))
    assert "not in supported set [10]" in utils.is_device_cc_supported([10]).reason
    assert utils.check_cuda_errors((0, 5)) == 5 and utils.check_cuda_errors((0,)) is None
    with pytest.raises(tilewright.DriverError, match="CUDA error: 2"):
        utils.check_cuda_errors((2,))


def test_fusion_traces_functions_and_has_activations() -> None:
    from tilewright.cutlass_api.fusion import trace, trace_in_out
    from tilewright.cutlass_api.fusion.activation import gelu, leaky_relu, relu

    def epilogue(accum: Any, alpha: Any, C: Any) -> Any:
        F = accum * alpha + C * 2.0
        D = relu(F) + leaky_relu(F, 0.5)
        return D, F

    assert trace_in_out(epilogue) == (["accum", "alpha", "C"], ["D", "F"])
    tensors = {name: np.zeros((4, 6)) for name in ("accum", "C", "D", "F")}
    traced = trace(epilogue, {**tensors, "alpha": 3.0})
    assert [each.name for each in traced.inputs] == ["C"] and [each.name for each in traced.scalars] == ["alpha"]
    with pytest.raises(InvalidArgument, match="example_tensors must have an array for accum"):
        trace(epilogue, {"alpha": 1.0})
    a, b, c = np.eye(4, dtype=np.float32), np.arange(24, dtype=np.float32).reshape(4, 6) - 12, np.ones((4, 6), np.float32)
    d, f = np.empty_like(c), np.empty_like(c)
    operands = cutlass_api.arguments.EpilogueArguments(epilogue, alpha=3.0, C=c, D=d, F=f)
    args = cutlass_api.arguments.GemmArguments(a, b, d, accumulator_type=np.float32, epilogue=operands)
    cutlass_api.get_kernels(args)[0].run(args)
    np.testing.assert_array_equal(f, 3 * b + 2 * c)
    np.testing.assert_array_equal(d, epilogue(b, 3.0, c)[0])
    with pytest.raises(InvalidArgument, match="gelu takes an array of NumPy or PyTorch, got list"):
        gelu([1.0])


def test_typing_has_what_annotations_name() -> None:
    from tilewright.cutlass_api.typing import TensorLike

    assert isinstance(np.zeros(2), TensorLike) and not isinstance(2.0, TensorLike)


def test_the_array_of_d_is_written() -> None:
    def epilogue(accum: Any, C: Any, alpha: Any, beta: Any, extra_scalar: Any) -> Any:
        Aux = (alpha * accum) + (beta * C)
        D = extra_scalar * Aux
        return D, Aux

    a, b, c = np.ones((1, 8, 6), np.float16), np.ones((1, 6, 4), np.float16), np.ones((1, 8, 4), np.float16)
    reference, d, aux = (np.zeros((1, 8, 4), np.float16) for _ in range(3))
    operands = EpilogueArguments(epilogue_fn=epilogue, C=c, alpha=1.0, beta=2.0, extra_scalar=0.5, D=d, Aux=aux)
    args = GemmArguments(A=a, B=b, out=reference, accumulator_type=np.float32, epilogue=operands)
    cutlass_api.get_kernels(args)[0].run(args)
    assert (d == 4).all() and (aux == 8).all() and (reference == 0).all() and args.out.data_ptr == d.ctypes.data
    with pytest.raises(InvalidArgument, match=r"D of the epilogue has shape \(1, 8, 4\), but out has shape \(1, 8, 2\)"):
        GemmArguments(a, b[..., :2], reference[..., :2], np.float32, operands)


def test_accumulators_are_an_output() -> None:
    def epilogue(accum: Any, scale: Any) -> Any:
        D = np.maximum(accum - 5.0, 0.0) * scale
        return D, accum

    a, b = np.ones((1, 8, 6), np.float16), np.ones((1, 6, 4), np.float16)
    d, accum = np.zeros((1, 8, 4), np.float16), np.zeros((1, 8, 4), np.float32)
    args = GemmArguments(a, b, d, np.float32, EpilogueArguments(epilogue, scale=0.5, D=d, accum=accum))
    cutlass_api.get_kernels(args)[0].run(args)
    assert (d == 0.5).all() and (accum == 6).all()


def test_the_names_of_an_epilogue_are_checked() -> None:
    def no_accumulators(alpha: Any, C: Any) -> Any:
        D = C * alpha
        return D

    def no_d(accum: Any, alpha: Any) -> Any:
        F = accum * alpha
        return F

    def with_f(accum: Any, alpha: Any, beta: Any = 2.0) -> Any:
        F = accum * alpha
        D = F * beta
        return D, F

    x = np.ones((8, 4), np.float32)
    for function, operands, reason in (
        (no_accumulators, {"alpha": 1.0, "C": x, "D": x}, "accum must be an input to the epilogue function"),
        (no_d, {"alpha": 1.0, "F": x}, "the epilogue function must return a variable D, got F"),
        (with_f, {"alpha": 1.0, "F": x}, "returns D, which is not given: EpilogueArguments\\(..., D=...\\)"),
        (with_f, {"alpha": 1.0, "D": x}, "returns F, which is not given"),
        (with_f, {"D": x, "F": x}, "reads alpha, which is not given"),
        (with_f, {"alpha": 1.0, "D": x, "F": x, "gama": 3.0}, "no parameter or output named gama: it has accum, alpha"),
        ("def f(accum): D = 2 * accum; return D", {}, "returns D, which is not given"),
    ):
        with pytest.raises(InvalidArgument, match=reason):
            EpilogueArguments(function, **operands)
    EpilogueArguments(with_f, alpha=1.0, D=x, F=x)
    EpilogueArguments(lambda accum: 2 * accum)
    EpilogueArguments("D = relu(acc)")


def test_operands_of_two_types_are_refused_by_kernels() -> None:
    import ml_dtypes

    a, b, out = np.ones((8, 16), np.float16), np.ones((16, 8), np.float16), np.empty((8, 8), np.float16)
    kernel = cutlass_api.get_kernels(GemmArguments(a, b, out, np.float32))[0]
    args = GemmArguments(A=a.astype(ml_dtypes.bfloat16), B=b, out=out, accumulator_type=np.float32)
    status = kernel.supports(args)
    assert not status and status.reason == "A is bf16 and B is f16: they must have the same type"
    assert str(status.error) == status.reason and cutlass_api.get_kernels(args) == []
    assert (args.A.dtype.name, args.B.dtype.name, args.B.shape) == ("bf16", "f16", (16, 8)) and args.B.tensor is b
    for call in (kernel.run, kernel.compile):
        with pytest.raises(InvalidArgument, match="A is bf16 and B is f16"):
            call(args)
    with pytest.raises(InvalidArgument, match="A is bf16 and B is f16"):
        GemmArguments(a.astype(ml_dtypes.bfloat16), b[:8], out, np.float32)


def test_no_kernel_has_a_design_of_sm100() -> None:
    args = GemmArguments(*(np.ones((16, 16), np.float16) for _ in range(3)))
    design = cutlass_api.metadata.Sm100DesignMetadata
    assert cutlass_api.get_kernels(args, metadata_filter=lambda metadata: isinstance(metadata.design, design)) == []


def test_a_workspace_without_bytes_is_not_looked_at() -> None:
    a, b, out = np.ones((16, 16), np.float16), np.ones((16, 16), np.float16), np.zeros((16, 16), np.float16)
    args = GemmArguments(a, b, out, np.float32)
    kernel = next(each for each in cutlass_api.get_kernels(args) if each.get_workspace_size(args) == 0)
    kernel.run(args, workspace=np.empty(kernel.get_workspace_size(args), np.int8))
    assert (out == 16).all()
    with pytest.raises(InvalidArgument, match="workspace must be an array on a GPU, got one on host"):
        kernel.run(args, workspace=np.empty(16, np.int8))


def test_the_notebook_may_pass_arrays(notebook: ModuleType) -> None:
    class OfArrays(notebook.F64GemmKernel):  # type: ignore[misc, name-defined]
        def compile(self, args: Any, cc: Any = None) -> Any:
            compiled = self.cute_compile(self.impl, args.A.tensor, args.B.tensor, args.out.tensor, None)
            return cutlass_api.artifact.CompiledArtifact(compiled, self)

        def _run(self, args: Any, artifact: Any, stream: Any, workspace: Any = None) -> None:
            self.cute_run(artifact.compiled_obj, args.A.tensor, args.B.tensor, args.out.tensor, stream)

    a, b, out = problem(2, layouts="ttt")
    kernel = next(each for each in OfArrays.generate_kernels(lambda _: True) if each.name.endswith("ttt"))
    own = OfArrays(kernel.metadata)
    own.impl = kernel.impl
    own.run(GemmArguments(a, b, out))
    np.testing.assert_array_equal(out, a @ b)
    square = np.arange(9.0).reshape(1, 3, 3)
    result = np.empty_like(square)
    own.run(GemmArguments(square, square, result))
    np.testing.assert_array_equal(result, square @ square)
    with pytest.raises(InvalidArgument, match="takes tensors of a cutlass_api GemmArguments: args.A, args.B, args.out"):
        own.cute_compile(own.impl, np.ones((1, 2, 2)), np.ones((1, 2, 2)), np.ones((1, 2, 2)), None)
