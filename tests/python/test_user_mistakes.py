"""Mistakes of users, more than a hundred. Each gives one exception, which is a tilewright.Error, a TypeError or an AttributeError, and
whose message says what is wrong, where, and what to do; in the words that the caller wrote."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tilewright
from tilewright import BLASDesignMetadata, EpilogueArguments, GemmArguments, InvalidArgument, Unsupported, pycutlass
from tilewright import TraceError, cutlass_api, emulator, program, pycute
from tilewright.layout import Layout, composition
from tilewright.pycutlass import cutlass

matmul = tilewright.matmul


def z(*shape: int, dtype: Any = np.float32) -> Any:
    return np.ones(shape, dtype)


def args() -> GemmArguments:
    return GemmArguments(z(4, 5), z(5, 7), z(4, 7))


def tile(stages: int) -> Any:
    math = pycutlass.MathInstruction(
        [1, 1, 1],
        cutlass.float32,
        cutlass.float32,
        cutlass.float32,
        cutlass.OpClass.Simt,
        pycutlass.MathOperation.multiply_add,
    )
    return pycutlass.TileDescription([32, 32, 8], stages, [1, 1, 1], math)


def functional_update(acc: Any) -> Any:
    acc[0] = 1
    return acc


def copy_by_threads(threads: int, thread: int | None = None) -> None:
    k = program.Kernel("k", threads=128)
    tile, memory = program.smem_tile("k", "f16", 64, 64), k.shared(64 * 64 * 2, 1024)
    tensor = program.Tensor("a", "f16", [64, 64], [64, 1])
    copy = program.TiledCopyBuilder(k, "cp_async", tensor, tile, threads=threads)
    copy.copy([0, 0], memory.address, thread=k.thread if thread is None else thread)


DOUBLE = tilewright.Operation(
    "double",
    [tilewright.OperandDeclaration("x", ("n",)), tilewright.OperandDeclaration("out", ("n",), access="write")],
    {"factor": 2.0},
)
NOTHING = "__global__ void nothing() {}"


def run_own(source: str, generates: Callable[..., Any] | None = None) -> None:
    """Runs a kernel `mine` of a class of its own, on the emulator."""
    row = tilewright.TensorAttributes("f32", "row")

    def generate(*_: Any) -> list[tilewright.Kernel]:
        metadata = tilewright.KernelMetadata("mine", own, tilewright.GemmOperandsMetadata(row, row, row, "f32"))
        return [own(metadata)]

    methods = {
        "generate_kernels": staticmethod(generates or generate),
        "_source": lambda self: source,
        "_launch": lambda self, call: tilewright.Launch(1, 32, [call.A, call.B, call.out]),
    }
    own = type("Own", (tilewright.Kernel,), methods)
    tilewright.register(own)
    try:
        tilewright.find_kernels(args(), providers=["Own"])[0].run(args())
    finally:
        tilewright.unregister(own)


NO_DRIVER = (tilewright.ToolchainNotFound, tilewright.DriverError, InvalidArgument)
A, B = z(4, 5), z(5, 7)
Case = tuple[Callable[[], object], Any, str]
MISTAKES: dict[str, Case] = {
    # shapes
    "k differs": (
        lambda: matmul(A, z(6, 7)),
        InvalidArgument,
        r"columns of a and rows of b differ: \(4,5\) and \(6,7\)",
    ),
    "b is transposed": (lambda: matmul(A, z(7, 5)), InvalidArgument, r"pass b\.T if b is stored as \(n, k\)"),
    "a is transposed": (lambda: matmul(z(5, 4), B), InvalidArgument, r"pass a\.T if a is stored as \(k, m\)"),
    "out has another shape": (lambda: matmul(A, B, out=z(4, 8)), InvalidArgument, r"out must be \(4,7\), got \(4,8\)"),
    "c has another shape": (
        lambda: matmul(A, B, c=z(4, 8)),
        InvalidArgument,
        r"shapes of c and out differ: \(4,8\) and \(4,7\)",
    ),
    "batches differ": (lambda: matmul(z(2, 4, 5), z(3, 5, 7)), InvalidArgument, r"a has a batch of 2"),
    "batches do not broadcast": (
        lambda: matmul(z(2, 4, 5), z(3, 3, 5, 7)),
        InvalidArgument,
        "batches of a and b do not broadcast",
    ),
    "batches differ": (
        lambda: matmul(z(2, 4, 5), z(3, 5, 7)),
        InvalidArgument,
        "^a and b have batches of 2 and 3: they must be equal, or one operand a single matrix$",
    ),
    "a is a number": (lambda: matmul(3, B), InvalidArgument, "a must be an array of PyTorch, .* got a int"),
    "a is None": (lambda: matmul(None, B), InvalidArgument, "a must be an array of PyTorch, .* got a NoneType"),
    "a list is ragged": (
        lambda: matmul([[1, 2], [3]], [[1], [2]]),
        InvalidArgument,
        "a is a list of numbers whose rows differ",
    ),
    "a list is empty": (lambda: matmul([], B), InvalidArgument, "a is an empty list: it must have at least one array"),
    "C of a function": (
        lambda: matmul(A, B, epilogue=lambda acc, C: acc + C, c=z(4, 7)),
        TraceError,
        r"nothing is bound to 'C'(.|\n)*instead: pass C=, as for every parameter: c= of matmul\(\) is the C of epilogues that",
    ),
    "a parameter has a name of the call": (
        lambda: matmul(A, B, epilogue=lambda acc, alpha: acc * alpha, alpha=2),
        TraceError,
        r"pass EpilogueArguments\(function, alpha=...\): matmul\(\) has its own alpha=",
    ),
    "a parameter has a name of an operand of the call": (
        lambda: matmul(A, B, epilogue=lambda acc, b: acc + b),
        TraceError,
        r"nothing is bound to 'b'(.|\n)*instead: pass b= an array or a number, or give it a default",
    ),
    "an epilogue is an expression": (
        lambda: matmul(A, B, epilogue="relu(acc)"),
        InvalidArgument,
        r"character 5: expected '=', got '\(': a result is assigned to a name",
    ),
    "a dimension too many": (lambda: tilewright.layout.size(Layout((8, 8)), 5), InvalidArgument, "5"),
    # types
    "types differ": (
        lambda: matmul(A, z(5, 7, dtype=np.float16)),
        InvalidArgument,
        "a is f32 and b is f16: they must have the same type",
    ),
    "int64": (
        lambda: matmul(z(4, 5, dtype=np.int64), z(5, 7, dtype=np.int64)),
        InvalidArgument,
        "a: unknown element type 'int64': must be f64",
    ),
    "complex": (lambda: matmul(z(4, 5, dtype=complex), B), InvalidArgument, "a: unknown element type 'complex128'"),
    "out_dtype is misspelt": (
        lambda: matmul(A, B, out_dtype="flaot16"),
        InvalidArgument,
        "unknown element type 'flaot16': must be f64, f32",
    ),
    "accumulator is too narrow": (
        lambda: matmul(A, B, accumulator_type="f16"),
        InvalidArgument,
        "f32 operands accumulate in f32, got f16",
    ),
    "dtype is no type": (lambda: tilewright.dtype(3), InvalidArgument, "unknown element type '3'"),
    "masked array": (
        lambda: matmul(np.ma.ones((4, 5), np.float32), B),
        InvalidArgument,
        r"masked arrays are not supported: pass \.data or \.filled\(\)",
    ),
    "big-endian": (lambda: matmul(z(4, 5, dtype=">f4"), B), InvalidArgument, "a"),
    # strides
    "a is broadcast": (
        lambda: matmul(np.broadcast_to(z(1, 5), (4, 5)), B),
        InvalidArgument,
        r"a of shape \(4,5\) needs a leading dimension .* got 0; pass numpy.ascontiguousarray\(a\)$",
    ),
    "a of a contraction is reversed": (
        lambda: tilewright.contract("mk,kn->mn", A[::-1], B),
        InvalidArgument,
        r"a has a negative stride -5; pass numpy.ascontiguousarray\(a\)$",
    ),
    "c of a contraction is reversed": (
        lambda: tilewright.contract("mk,kn->mn", A, B, c=z(4, 7)[:, ::-1]),
        InvalidArgument,
        r"c has a negative stride -1; pass numpy.ascontiguousarray\(c\)$",
    ),
    "a of groups is reversed": (
        lambda: tilewright.grouped_matmul(A[::-1], B[None], offsets=[4]),
        InvalidArgument,
        r"a has a negative stride -5; pass numpy.ascontiguousarray\(a\)$",
    ),
    "a matrix of a list of groups is reversed": (
        lambda: tilewright.grouped_matmul([A, A[::-1]], [B, B]),
        InvalidArgument,
        r"a\[1\] has a negative stride -5; pass \[numpy.ascontiguousarray\(each\) for each in a\]$",
    ),
    "rows of a matrix of a list of groups overlap": (
        lambda: tilewright.grouped_matmul([np.lib.stride_tricks.as_strided(A, (3, 5), (8, 4))], [B]),
        InvalidArgument,
        r"a\[0\] of shape \(3,5\) needs a leading dimension of at least 5, got 2; pass \[numpy.ascontiguousarray",
    ),
    "the matrices of a list are reversed": (
        lambda: matmul([A[::-1], A[::-1]], B),
        InvalidArgument,
        r"a has a negative stride -5; pass \[numpy.ascontiguousarray\(each\) for each in a\]$",
    ),
    "pairs of an odd number of columns": (
        lambda: matmul(A, B, epilogue="D = swiglu(acc)"),
        InvalidArgument,
        "the epilogue pairs columns of a @ b: n must be even, got 7$",
    ),
    "pairs of columns of a contraction": (
        lambda: tilewright.contract("mk,kn->mn", A, B, epilogue="D = swiglu(acc)"),
        InvalidArgument,
        r"the epilogue pairs columns of a \* b, which a contraction does not have",
    ),
    "a bias is reversed": (
        lambda: matmul(A, B, epilogue=lambda acc, bias: acc + bias, bias=z(7)[::-1]),
        InvalidArgument,
        r"bias has a negative stride -1; pass numpy.ascontiguousarray\(bias\)$",
    ),
    "a bias of images is reversed": (
        lambda: tilewright.conv2d(z(1, 4, 3, 3), z(2, 4, 1, 1), epilogue="D = acc + row(bias)", bias=z(2)[::-1]),
        InvalidArgument,
        r"bias has a negative stride -[0-9]; pass numpy.ascontiguousarray\(bias\)$",
    ),
    "an output is reversed": (
        lambda: matmul(A, B, epilogue="D = acc; rest = acc + 1", rest=z(4, 7)[::-1]),
        InvalidArgument,
        "rest has a negative stride -7; pass an array whose rows or columns are contiguous$",
    ),
    # memory
    "columns are skipped": (
        lambda: matmul(z(4, 10)[:, ::2], B),
        InvalidArgument,
        r"a must have one stride of 1, got \(10,2\); pass numpy.ascontiguousarray\(a\)",
    ),
    "rows are reversed": (
        lambda: matmul(z(4, 5)[::-1], B),
        InvalidArgument,
        r"a has a negative stride -5; pass numpy.ascontiguousarray\(a\)",
    ),
    "out is an input": (lambda: (lambda x: matmul(x, x, out=x))(z(4, 4)), InvalidArgument, "out .* overlaps a"),
    "out is read-only": (lambda: matmul(A, B, out=np.broadcast_to(z(7), (4, 7))), InvalidArgument, "out is read-only"),
    "shapes cannot be run": (lambda: matmul(tilewright.ShapeOnly((4, 5), "f32"), B, out=z(4, 7)), InvalidArgument, "a"),
    # arguments
    "keyword is misspelt": (
        lambda: matmul(A, B, aplha=2.0),
        InvalidArgument,
        r"matmul\(\) has no argument aplha; did you mean 'alpha'\?",
    ),
    "alpha is text": (lambda: matmul(A, B, alpha="2"), TypeError, "alpha must be a number, got '2'"),
    "deterministic is text": (
        lambda: matmul(A, B, deterministic="yes"),
        TypeError,
        "deterministic must be True, False or None, got 'yes'",
    ),
    "stream is text": (
        lambda: matmul(A, B, stream="0"),
        InvalidArgument,
        "stream must be None, an int, a PyTorch or CuPy stream",
    ),
    "math is unknown": (lambda: matmul(A, B, math="tf32"), InvalidArgument, r"unknown math operation 'tf32': known are multiply_add, multiply_add_tf32"),
    "beta that is not used": (lambda: matmul(A, B, beta=1.0, epilogue="D = acc"), InvalidArgument, "beta"),
    "beta without c": (lambda: matmul(A, B, beta=2.0), InvalidArgument, "beta is 2, but no c is given"),
    "an epilogue without its c": (
        lambda: matmul(A, B, epilogue="D = acc + C"),
        InvalidArgument,
        "the epilogue reads c, but no c is given",
    ),
    "a contraction without its c": (
        lambda: tilewright.contract("ab,bc->ac", A, B, beta=2.0),
        InvalidArgument,
        "beta is 2, but no c is given",
    ),
    "groups without their c": (
        lambda: tilewright.grouped_matmul(A, z(1, 5, 7), offsets=np.array([4], np.int32), beta=2.0),
        InvalidArgument,
        "beta is 2, but no c is given",
    ),
    "a convolution without its c": (
        lambda: tilewright.conv2d(z(1, 1, 3, 3), z(1, 1, 3, 3), beta=2.0),
        InvalidArgument,
        "beta is 2, but no c is given",
    ),
    # epilogues
    "epilogue is misspelt": (lambda: matmul(A, B, epilogue="rleu"), InvalidArgument, "unknown epilogue 'rleu': .*relu"),
    "epilogue is a number": (lambda: matmul(A, B, epilogue=3), TypeError, "epilogue must be a Python function, a name"),
    "syntax": (lambda: matmul(A, B, epilogue="D = acc +"), InvalidArgument, "epilogue, character 10: expected a value"),
    "bias is missing": (
        lambda: matmul(A, B, epilogue="D = acc + row(bias)"),
        InvalidArgument,
        "the epilogue reads 'bias', but no tensor has that name",
    ),
    "bias is misspelt": (
        lambda: matmul(A, B, epilogue="D = acc + row(bias)", bais=z(7)),
        InvalidArgument,
        "the epilogue has no tensor 'bais': did you mean 'bias'",
    ),
    "parameter is misspelt": (
        lambda: matmul(A, B, epilogue=lambda acc, bias: acc + bias, bais=z(7)),
        Exception,
        "bias",
    ),
    "bias has another shape": (
        lambda: matmul(A, B, epilogue="D = acc + row(bias)", bias=z(8)),
        InvalidArgument,
        r"'bias' must be \(1,7\), got \(1,8\)",
    ),
    "bias does not broadcast": (
        lambda: matmul(A, B, epilogue=lambda acc, bias: acc + bias, bias=z(4)),
        TraceError,
        r"x\[:, None\] for one value per row",
    ),
    "bias is a list": (
        lambda: matmul(A, B, epilogue=lambda acc, bias: acc + bias, bias=[1.0]),
        TypeError,
        "'bias' of the epilogue must be an array",
    ),
    "softmax": (
        lambda: matmul(A, B, epilogue=lambda acc: np.mean(acc)),
        TraceError,
        "numpy.mean is no function of epilogues",
    ),
    "assignment to elements": (lambda: matmul(A, B, epilogue=functional_update), TraceError, "acc"),
    "operands without an epilogue": (
        lambda: matmul(A, B, bias=z(7)),
        InvalidArgument,
        r"matmul\(\) has no argument bias",
    ),
    "operands of EpilogueArguments": (
        lambda: matmul(A, B, epilogue=EpilogueArguments("relu"), bias=z(7)),
        InvalidArgument,
        "the operands of an EpilogueArguments are given to it",
    ),
    # discovery and kernels
    "arrays are no arguments": (
        lambda: tilewright.find_kernels(A),
        TypeError,
        r"args must be the arguments of an operation, such as GemmArguments\(A, B, out\), got an array of numpy",
    ),
    "target is unknown": (
        lambda: tilewright.find_kernels(args(), target="sm_999"),
        InvalidArgument,
        "unknown target 'sm_999': known are sm_80",
    ),
    "provider is unknown": (
        lambda: tilewright.find_kernels(args(), providers=["sm9_gemm"]),
        InvalidArgument,
        "unknown provider 'sm9_gemm': the registered ones are .*sm90_gemm",
    ),
    "providers is text": (
        lambda: tilewright.find_kernels(args(), providers="sm90_gemm"),
        TypeError,
        "providers must be a list of str or None, got 'sm90_gemm'",
    ),
    "schedule is unknown": (
        lambda: BLASDesignMetadata((32, 32, 8), schedule="pingpong"),
        InvalidArgument,
        "unknown schedule 'pingpong': must be cooperative or ping_pong",
    ),
    "tile is impossible": (
        lambda: tilewright.make_kernel(args(), BLASDesignMetadata((33, 32, 8))),
        InvalidArgument,
        "tile m 33 is not divisible by warp count m 2",
    ),
    "registers no class": (
        lambda: tilewright.register(3),
        InvalidArgument,
        "takes a class that derives from Kernel, got 3",
    ),
    "keyword of a function": (
        lambda: tilewright.prepare(args(), kernal=None),
        TypeError,
        r"prepare\(\) has no argument 'kernal': did you mean 'kernel'\?",
    ),
    "argument is missing": (
        lambda: tilewright.prepare(),
        TypeError,
        r"missing a required argument: 'args'; it takes args, kernel",
    ),
    # files and the environment
    "file is missing": (lambda: tilewright.load_artifact("/nonexistent/x"), FileNotFoundError, "'/nonexistent/x'"),
    "path is a number": (
        lambda: tilewright.load_artifact(3),
        TypeError,
        "path must be a str or an os.PathLike, got int",
    ),
    "device is misspelt": (
        lambda: tilewright.configure(device="emulatr:sm_90a"),
        InvalidArgument,
        "unknown device 'emulatr:sm_90a': use auto, cuda:N",
    ),
    "device is missing": (lambda: tilewright.configure(device="cuda:77"), NO_DRIVER, "."),
    "compiler is unknown": (
        lambda: tilewright.configure(compiler="gcc"),
        InvalidArgument,
        "compiler must be nvrtc, nvrtc_in_process, nvcc or none, got 'gcc'",
    ),
    "cache folder": (lambda: tilewright.configure(cache_dir="/proc/x"), InvalidArgument, "cache_dir '/proc/x': "),
    "option is misspelt": (
        lambda: tilewright.configure(devise="cuda:0"),
        TypeError,
        r"configure\(\) has no argument 'devise': did you mean 'device'\?",
    ),
    "bytes are no int": (
        lambda: tilewright.configure(pool_maximum_bytes=1.5),
        TypeError,
        "pool_maximum_bytes must be an int or None, got 1.5",
    ),
    "name is misspelt": (
        lambda: tilewright.matmull,
        AttributeError,
        "has no attribute 'matmull'; did you mean 'matmul'?",
    ),
    # other operations
    "einsum": (
        lambda: tilewright.einsum("ab,bc->ad", A, B),
        InvalidArgument,
        "the result has the mode 'd', but no operand has it",
    ),
    "groups without ends": (
        lambda: tilewright.grouped_matmul(A, z(2, 5, 7)),
        InvalidArgument,
        "need offsets, the end of each group",
    ),
    "channels differ": (
        lambda: tilewright.conv2d(z(1, 3, 8, 8), z(4, 2, 3, 3)),
        InvalidArgument,
        "w has 2 channels, but x has 3",
    ),
    "filter is too large": (
        lambda: tilewright.conv2d(z(1, 3, 2, 2), z(4, 3, 3, 3)),
        InvalidArgument,
        "the filter of 3 x 3 taps covers 3 x 3 pixels",
    ),
    "layouts do not compose": (lambda: composition(Layout((8, 8), (8, 1)), Layout(3, 5)), InvalidArgument, "divisib"),
    "no stages": (lambda: tile(0), InvalidArgument, "stages must be at least 1, got 0"),
    "a number for b": (lambda: matmul(A, 2.0), InvalidArgument, "b must be an array of PyTorch, .* got a float"),
    "an operand without an epilogue": (
        lambda: matmul(A, B, residual=z(4, 7)),
        InvalidArgument,
        r"no argument residual; operands of an epilogue need one: epilogue=lambda",
    ),
    "a parameter is not bound": (
        lambda: matmul(A, B, epilogue=lambda acc, bias: acc + bias),
        TraceError,
        r"nothing is bound to 'bias'[^$]*pass bias= an array or a number",
    ),
    "out cannot be written": (
        lambda: matmul(A, B, out=np.broadcast_to(np.float32(0), (4, 7))),
        InvalidArgument,
        "^out is read-only$",
    ),
    "the expression comes last": (lambda: tilewright.einsum(A, B, "ik,kj"), TypeError, "expression must be a str"),
    "linear": (lambda: tilewright.linear(A, B), AttributeError, r"see tilewright\.matmul\(x, weight\.T\)"),
    "mm": (lambda: tilewright.mm(A, B), AttributeError, r"no attribute 'mm'; see tilewright\.matmul"),
    "an unknown peer": (
        lambda: tilewright.profile(tilewright.gemms(8, 8, 8), peers=["cublas"]),
        InvalidArgument,
        "peers must be names of torch, cublaslt, cudnn, got 'cublas'",
    ),
    "an unknown device": (lambda: tilewright.synchronize("cuda0"), InvalidArgument, "unknown device 'cuda0': use auto"),
    "offsets decrease": (
        lambda: tilewright.grouped_matmul(A, z(2, 5, 7), offsets=np.array([4, 2], np.int32)),
        InvalidArgument,
        "offsets must not decrease, got 2 after 4 at index 1",
    ),
    "one operand of einsum": (
        lambda: tilewright.einsum("ii->i", z(3, 3), epilogue="relu"),
        InvalidArgument,
        "einsum of one operand is that of its framework, and takes no epilogue",
    ),
    "LayerNorm": (lambda: pycutlass.LayerNorm(), Unsupported, "LayerNorm is not supported: return D, reduction_op"),
    # types that no parameter has
    "a is text": (lambda: matmul("A", B), InvalidArgument, "a must be an array of PyTorch, .* got a str"),
    "an element is no number": (
        lambda: matmul(np.array([[1, None]], object), B),
        InvalidArgument,
        "a: unknown element type 'object': must be f64",
    ),
    "a scalar of numpy": (
        lambda: matmul(np.float32(3), B),
        InvalidArgument,
        r"must be vectors, matrices or batches, got shapes \(\) and \(5, 7\)",
    ),
    "out is a list of numbers": (lambda: matmul(A, B, out=[1, 2]), InvalidArgument, r"out\[0\]: expected an array"),
    "two types for out": (
        lambda: matmul(A, B, out=z(4, 7), out_dtype="f16"),
        InvalidArgument,
        "out_dtype is f16, but out is f32: leave one out",
    ),
    "two types for out of a contraction": (
        lambda: tilewright.contract("mk,kn->mn", A, B, out=z(4, 7), out_dtype="f16"),
        InvalidArgument,
        "out_dtype is f16, but out is f32: leave one out",
    ),
    "two types for out of groups": (
        lambda: tilewright.grouped_matmul(A, B[None], offsets=[4], out=z(4, 7), out_dtype="f16"),
        InvalidArgument,
        "out_dtype is f16, but out is f32: leave one out",
    ),
    "two types for out of a convolution": (
        lambda: tilewright.conv2d(z(1, 2, 2, 3), z(5, 1, 1, 3), layout="nhwc", out=z(1, 2, 2, 5), out_dtype="f16"),
        InvalidArgument,
        "out_dtype is f16, but out is f32: leave one out",
    ),
    "out of several batch modes is a list": (
        lambda: matmul(z(2, 3, 4, 5), B, out=[z(4, 7)] * 6),
        InvalidArgument,
        r"out must be an array of shape \(2, 3, 4, 7\), got a list: a list of matrices is for a batch of one mode",
    ),
    "out of a vector is a number": (
        lambda: matmul(z(5), B, out=3),
        InvalidArgument,
        r"out must be an array of shape \(7,\), got a int",
    ),
    "c is a number": (lambda: matmul(A, B, c=1.0), InvalidArgument, "c: expected an array"),
    "alpha is an array": (lambda: matmul(A, B, alpha=z(3)), TypeError, "alpha must be a number, got array"),
    "math is a number": (lambda: matmul(A, B, math=3), TypeError, "math must be a str, got int"),
    "stream is a float": (lambda: matmul(A, B, stream=1.5), InvalidArgument, "stream must be None, an int, a PyTorch"),
    "epilogue is a class": (lambda: matmul(A, B, epilogue=dict), InvalidArgument, "dict is no function of epilogues"),
    "epilogue returns None": (
        lambda: matmul(A, B, epilogue=lambda acc: None),
        TraceError,
        "expected an elementwise value, got None",
    ),
    "epilogue assigns no D": (lambda: matmul(A, B, epilogue="x = acc"), InvalidArgument, "nothing is assigned to D"),
    "axis is out of range": (
        lambda: matmul(A, B, epilogue=lambda acc: np.max(acc, axis=7)),
        TraceError,
        "axis 7 is out of range for 2 axes",
    ),
    # convolutions, groups and contractions
    "an image has three modes": (
        lambda: tilewright.conv2d(z(3, 8, 8), z(4, 3, 3, 3)),
        InvalidArgument,
        r"x must have rank 4, \(n, c, h, w\), got shape \(3, 8, 8\)",
    ),
    "x is text": (lambda: tilewright.conv2d("x", z(4, 3, 3, 3)), InvalidArgument, "x must be an array .* got a str"),
    "stride is 0": (
        lambda: tilewright.conv2d(z(1, 3, 8, 8), z(4, 3, 3, 3), stride=0),
        InvalidArgument,
        "stride must be at least 1, got 0",
    ),
    "strides is misspelt": (
        lambda: tilewright.conv2d(z(1, 3, 8, 8), z(4, 3, 3, 3), strides=2),
        InvalidArgument,
        r"conv2d\(\) has no argument strides; did you mean 'stride'\?",
    ),
    "groups is text": (
        lambda: tilewright.conv2d(z(1, 3, 8, 8), z(4, 3, 3, 3), groups="a"),
        InvalidArgument,
        "groups must be an int, got 'a'",
    ),
    "padding is unknown": (
        lambda: tilewright.conv2d(z(1, 3, 8, 8), z(4, 3, 3, 3), padding="full"),
        InvalidArgument,
        'padding must be an int, a pair, "valid" or "same", got \'full\'',
    ),
    "offset is misspelt": (
        lambda: tilewright.grouped_matmul(A, z(2, 5, 7), offset=np.array([2, 4], np.int32)),
        InvalidArgument,
        r"grouped_matmul\(\) has no argument offset; did you mean 'offsets'\?",
    ),
    "offsets exceed the rows": (
        lambda: tilewright.grouped_matmul(A, z(2, 5, 7), offsets=np.array([2, 9], np.int32)),
        InvalidArgument,
        r"offsets\[1\] must be from 0 to m = 4, got 9",
    ),
    "offsets are floats": (
        lambda: tilewright.grouped_matmul(A, z(2, 5, 7), offsets=np.array([2.0, 4.0])),
        InvalidArgument,
        "offsets must be an array of int32, got f64",
    ),
    "einsum has no such option": (
        lambda: tilewright.einsum("ab,bc->ac", A, B, optimise=True),
        InvalidArgument,
        r"einsum\(\) has no argument optimise",
    ),
    "an operand of einsum is None": (
        lambda: tilewright.einsum("ab,bc->ac", A, None),
        InvalidArgument,
        "an operand must be an array of PyTorch, .* got a NoneType",
    ),
    "extents of einsum differ": (
        lambda: tilewright.einsum("ab,bc->ac", A, z(6, 7)),
        InvalidArgument,
        "mode 'b' has extent 5 in operand 0, but 6 in operand 1",
    ),
    # profiles, tunings and kernels
    "a profile of nothing": (
        lambda: tilewright.profile(None),  # type: ignore[arg-type]
        TypeError,
        r"problems\[0\] must be the arguments of an operation, .* got NoneType",
    ),
    "kernel is a number": (
        lambda: tilewright.profile(args(), kernel=3),  # type: ignore[arg-type]
        TypeError,
        "kernel must be a str, got 3",
    ),
    "progress is no function": (
        lambda: tilewright.profile(args(), on_progress=3),  # type: ignore[arg-type]
        TypeError,
        "on_progress must be a function or None, got 3",
    ),
    "peers is a number": (
        lambda: tilewright.profile(args(), peers=3),  # type: ignore[arg-type]
        TypeError,
        "peers must be names of torch, cublaslt, cudnn, got 3",
    ),
    "a profile is missing": (
        lambda: tilewright.Profile.load("/nonexistent.json"),
        FileNotFoundError,
        "'/nonexistent.json'",
    ),
    "a profile is no JSON": (lambda: tilewright.Profile.load(__file__), InvalidArgument, "is not JSON: "),
    "a format is unknown": (
        lambda: tilewright.Profile({}).save("x.pdf"),
        InvalidArgument,
        "path must end in one of .csv, .html",
    ),
    "extents are floats": (
        lambda: tilewright.gemms(8.0, 8, 8),  # type: ignore[arg-type]
        TypeError,
        "m must be an int, a range or a list of ints, got 8.0",
    ),
    "several problems": (
        lambda: tilewright.benchmark([args(), args()]),  # type: ignore[arg-type]
        TypeError,
        "args must be the arguments of one operation, .* got list",
    ),
    "a list is tuned": (
        lambda: tilewright.tune([args()]),  # type: ignore[arg-type]
        TypeError,
        r"tune\(\): args must be the arguments of an operation",
    ),
    "a filter is no function": (
        lambda: tilewright.find_kernels(args(), metadata_filter=3),
        TypeError,
        "metadata_filter must be a function or None, got 3",
    ),
    "prepared for other extents": (
        lambda: tilewright.prepare(args()).run(GemmArguments(z(8, 5), z(5, 7), z(8, 7))),
        InvalidArgument,
        "prepared for m = 4, got 8",
    ),
    # programs
    "a name is no identifier": (lambda: program.Kernel("1bad"), InvalidArgument, "'1bad' is no identifier"),
    "too many threads": (
        lambda: program.Kernel("k", threads=2000),
        InvalidArgument,
        "a CTA has 1 to 1024 threads, got 2000",
    ),
    "a loop to a text": (
        lambda: program.Kernel("k").loop("4").__enter__(),  # type: ignore[arg-type]
        TypeError,
        "end must be an int or a Number, got '4'",
    ),
    "if of a kernel's number": (
        lambda: bool(program.Kernel("k").thread < 3),
        TypeError,
        r"is known only when the kernel runs, .* write `with k.If\(condition\):`",
    ),
    "a Number as the operand of an instruction": (
        lambda: program.Kernel("k").instruction("mov.b32 $0, $1;", program.output("b32"), program.Kernel("k").thread),
        TypeError,
        r"instruction\(\): \$1 must be a Value, .* got Number.*; pass number\(\.\.\.\)",
    ),
    "threads that take no part in a copy": (
        lambda: copy_by_threads(64),
        InvalidArgument,
        "64 threads copy the tile, so that `thread` must be from 0 to 63, got a number from 0 to 127",
    ),
    "a copy by one thread of many": (
        lambda: copy_by_threads(128, thread=0),
        InvalidArgument,
        "128 threads copy the tile, so that `thread` must be from 0 to 127, got a number from 0 to 0",
    ),
    "an accumulator type that does not exist": (
        lambda: matmul(A, B, accumulator_type="f17"),
        InvalidArgument,
        "accumulator_type: unknown element type 'f17'",
    ),
    "an out_dtype that does not exist": (
        lambda: tilewright.einsum("ij,jk", A, B, out_dtype="f17"),
        InvalidArgument,
        "out_dtype: unknown element type 'f17'",
    ),
    "an integer that no float can have": (
        lambda: matmul([[10**400]], [[1]]),
        InvalidArgument,
        "a has an integer that is too large for float64",
    ),
    "a list of texts": (
        lambda: matmul([[1.0]], [["1"]]),
        InvalidArgument,
        "b is a list of str: it must have numbers or matrices",
    ),
    "alpha is None": (lambda: matmul(A, B, alpha=None), TypeError, "alpha must be a number, got None"),  # type: ignore[arg-type]
    "an alpha that no float can have": (
        lambda: matmul(A, B, alpha=10**400),
        InvalidArgument,
        "alpha is too large for a float, got 1000",
    ),
    "a beta that no float can have": (
        lambda: GemmArguments(A, B, z(4, 7), C=z(4, 7), beta=10**400),
        InvalidArgument,
        "beta is too large for a float, got 1000",
    ),
    "a big-endian array": (
        lambda: matmul(A, B.astype(">f4")),
        InvalidArgument,
        r"b: big-endian arrays are not supported: pass .astype\('<f4'\)",
    ),
    "a result that no memory can hold": (
        lambda: tilewright.conv2d(z(1, 8, 5, 5), z(8, 8, 3, 3), padding=2**31),
        tilewright.OutOfMemory,
        "the result, .* of float32, does not fit into memory",
    ),
    "a parameter twice": (
        lambda: (lambda k: (k.launch("n"), k.launch("n")))(program.Kernel("k")),
        InvalidArgument,
        "the kernel has two parameters named 'n'",
    ),
    # found by a trial of every interface
    "weights of 4 bits in matmul": (
        lambda: matmul(z(4, 4, dtype=ml_dtypes.int4), z(4, 4, dtype=ml_dtypes.int4)),
        InvalidArgument,
        r"a: elements of s4 have 4 bits, .*pack_weights\(\) packs weights of 4 bits",
    ),
    "a shape of 4-bit elements": (
        lambda: tilewright.ShapeOnly((4, 4), "s4"),
        InvalidArgument,
        "elements of s4 have 4 bits",
    ),
    "a result of tf32": (
        lambda: matmul(A, B, out_dtype="tf32"),
        InvalidArgument,
        "out_dtype is tf32, which no array has: it must be one of f64, f32",
    ),
    "a negative extent": (
        lambda: tilewright.ShapeOnly((4, -5), "f32"),
        InvalidArgument,
        r"shape\[1\] must be at least 0, got -5",
    ),
    "no out": (lambda: GemmArguments(A, B, None), TypeError, r"GemmArguments\(\): out must not be None"),  # type: ignore[arg-type]
    "lists of different lengths": (
        lambda: matmul([A, A], [B, B, B]),
        InvalidArgument,
        "a is a list of 2 matrices, but b is one of 3",
    ),
    "too few results": (
        lambda: matmul([A, A], [B, B], out=[z(4, 7)]),
        InvalidArgument,
        "a has 2 matrices, but out has 1: they must be equal",
    ),
    "addresses in a list": (
        lambda: tilewright.PointerArray([1, 2], (4, 5), "f32"),
        InvalidArgument,
        r"addresses must be an array of int64 or uint64, got \[1, 2\]",
    ),
    "an array for a number of the epilogue": (
        lambda: matmul(A, B, epilogue="D = acc * $scale", scale=z(3)),
        InvalidArgument,
        r"scale must be a number, because the epilogue has \$scale, got an array of shape \(3,\)",
    ),
    "text for a number of the epilogue": (
        lambda: matmul(A, B, epilogue="D = acc * $scale", scale="2"),
        InvalidArgument,
        r"scale must be a number, because the epilogue has \$scale, got str",
    ),
    "a function of epilogues is misspelt": (
        lambda: matmul(A, B, epilogue="D = rleu(acc)"),
        InvalidArgument,
        r"epilogue, character 5: unknown function 'rleu': did you mean 'relu'\?",
    ),
    "an ellipsis": (
        lambda: tilewright.contract("...b,bc->...c", A, B),
        InvalidArgument,
        r"'\.' is not a letter; tilewright.einsum\(\) has ellipses$",
    ),
    "a workspace below 0": (
        lambda: tilewright.Workspace(-1),
        TypeError,
        r"Workspace\(\): bytes is out of range, got -1",
    ),
    "an operand that an operation has not": (
        lambda: tilewright.OperationArguments(DOUBLE, x=z(3), out=z(3), y=z(3)),
        InvalidArgument,
        "double has no operand or scalar 'y': it has factor, x, out",
    ),
    "a provider that is unknown to a profile": (
        lambda: tilewright.profile(args(), providers=["sm9_gemm"]),
        InvalidArgument,
        "unknown provider 'sm9_gemm': the registered ones are .*sm90_gemm",
    ),
    "a provider in place of a list": (
        lambda: tilewright.profile(args(), providers="simt_gemm"),
        TypeError,
        "providers must be a list of str, got 'simt_gemm'",
    ),
    "a profile from a folder": (lambda: tilewright.Profile.load("/"), tilewright.Error, "cannot open /: Is a directory"),
    "a class of results": (
        lambda: tilewright.Artifact(),
        TypeError,
        r"Artifact has no constructor: kernel\.compile\(args\) and load_artifact\(\) return it",
    ),
    "a kernel of nothing": (
        lambda: emulator.Module(""),
        InvalidArgument,
        "source is empty: it must be CUDA C",
    ),
    "a grid of 0": (
        lambda: emulator.Module(NOTHING).launch(grid=0),
        InvalidArgument,
        "grid must be 1 to 3 positive integers, got 0",
    ),
    "a block of fractions": (
        lambda: emulator.Module(NOTHING).launch(block=1.5),  # type: ignore[arg-type]
        InvalidArgument,
        "block must be 1 to 3 positive integers, got 1.5",
    ),
    "a symbol that C++ has changed": (
        lambda: run_own("__global__ void mine(const float* a, const float* b, float* out) {}"),
        tilewright.CompileError,
        'the source must define the kernel extern "C" mine, but the module has the kernels _Z4minePKfS0_Pf',
    ),
    "generate_kernels returns nothing": (
        lambda: run_own("", generates=lambda *_: None),
        InvalidArgument,
        r"Own.generate_kernels\(\) must return a list of kernels, got None",
    ),
    "a name of PyCUTLASS is misspelt": (
        lambda: pycutlass.GemmOperationUniversl,  # type: ignore[attr-defined]
        AttributeError,
        "did you mean 'GemmOperationUniversal'",
    ),
    "a type of PyCUTLASS is misspelt": (
        lambda: cutlass.flaot32,  # type: ignore[attr-defined]
        AttributeError,
        "did you mean 'float32'",
    ),
    "an instruction is misspelt": (
        lambda: program.store_globl,  # type: ignore[attr-defined]
        AttributeError,
        "module 'tilewright.program' has no attribute 'store_globl'; did you mean 'store_global'",
    ),
    "a layout is misspelt": (
        lambda: tilewright.layout.Layot,  # type: ignore[attr-defined]
        AttributeError,
        "did you mean 'Layout'",
    ),
    "a function of PyCuTe is misspelt": (
        lambda: pycute.zipped_divid,  # type: ignore[attr-defined]
        AttributeError,
        "module 'tilewright.pycute' has no attribute 'zipped_divid'; did you mean 'zipped_divide'",
    ),
    "a class of cutlass_api is misspelt": (
        lambda: cutlass_api.metadata.BLASDesignMetadat,  # type: ignore[attr-defined]
        AttributeError,
        "did you mean 'BLASDesignMetadata'",
    ),
    "a type of cutlass_api is misspelt": (
        lambda: cutlass_api.cutlass.Flot32,  # type: ignore[attr-defined]
        AttributeError,
        "did you mean 'Float32'",
    ),
}


def test_there_are_a_hundred() -> None:
    assert len(MISTAKES) >= 100


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_explained(mistake: str) -> None:
    call, kind, message = MISTAKES[mistake]
    with pytest.raises(kind, match=message) as raised:
        call()
    error = raised.value
    assert isinstance(error, (tilewright.Error, TypeError, AttributeError)), repr(error)
    assert len(str(error)) < 1200 and "incompatible function arguments" not in str(error)
    assert error.__cause__ is None or isinstance(error.__cause__, tilewright.Error), "one exception, not a chain"


def test_paths_of_any_kind(tmp_path: pathlib.Path) -> None:
    kernel = tilewright.find_kernels(args())[0]
    artifact = kernel.compile(args())
    for path in (tmp_path / "a", os.fspath(tmp_path / "b"), os.fsencode(tmp_path / "c")):
        artifact.save(path)  # type: ignore[arg-type]
        assert tilewright.load_artifact(path) == artifact  # type: ignore[arg-type]
    with pytest.raises(tilewright.FileNotFound) as raised:
        artifact.save(tmp_path / "missing" / "x")
    assert raised.value.filename == str(tmp_path / "missing")


def test_a_failed_configure_changes_nothing() -> None:
    before = tilewright.device_name()
    with pytest.raises(InvalidArgument):
        tilewright.configure(device="emulator:sm_1")
    assert tilewright.device_name() == before
