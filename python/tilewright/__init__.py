"""Tilewright turns the description of a GEMM into a running GPU kernel at run time.

    d = tilewright.matmul(a, b, epilogue="relu")          # arrays of PyTorch, NumPy, CuPy or JAX

`matmul` chooses, compiles, caches and launches a kernel. Its steps are also available one by one:

    args = tilewright.GemmArguments(a, b, out)            # the problem
    kernels = tilewright.find_kernels(args)               # the kernels that can compute it, best first
    print(tilewright.explain(args))                       # why the others cannot
    artifact = kernels[0].compile(args)                   # a cubin, which artifact.save() writes to a file
    kernels[0].run(args, artifact)
    call = tilewright.prepare(args)                       # everything but the launch
    call.run()                                            # also while a CUDA graph is captured

profile() verifies, times and counts kernels, and writes reports; tune() and benchmark() measure one problem.
Operation declares an operation other than a GEMM, and register() adds your own kernels. Submodules: `program` records
kernels without CUDA C++, `arch` has the numbers of tensor-core instructions, `layout` is CuTe's layout algebra,
`tracing` translates Python functions to epilogues, `torch` has PyTorch operators with gradients, `jax` has products in
programs of jax.jit, `pycutlass` has the interface of PyCUTLASS and `cutlass_api` that of cutlass_api; `shims` makes
their own names importable.

`import tilewright` is cheap: the extension and the submodules are loaded when a name that needs them is first used.
"""

from __future__ import annotations

import atexit as _atexit
import sys as _sys

from tilewright.errors import (
    CompileError,
    DriverError,
    EmulationError,
    Error,
    FileNotFound,
    InternalError,
    InvalidArgument,
    OutOfMemory,
    RefusedDesign,
    ToolchainNotFound,
    Unsupported,
)

# Type checkers know this name. An import of `typing` takes longer than all else that happens here.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from tilewright._tilewright import (
        Artifact,
        BLASDesignMetadata,
        ContractionArguments,
        Conv2dArguments,
        DType,
        Epilogue,
        Explanation,
        GemmArguments,
        GemmOperandsMetadata,
        GroupedGemmArguments,
        Kernel,
        KernelList,
        KernelMetadata,
        Launch,
        Operand,
        OperandDeclaration,
        OperandsMetadata,
        Operation,
        OperationArguments,
        PointerArray,
        PreparedCall,
        ReduceSplitKArguments,
        ReduceSplitKOperandsMetadata,
        RefusedKernel,
        ShapeOnly,
        Source,
        Status,
        TensorAttributes,
        Workspace,
        allocated_bytes,
        cache_counters,
        compile_kernels,
        configure,
        device_name,
        device_target,
        dtype,
        explain,
        f32,
        f64,
        find_kernels,
        i32,
        i64,
        list_kernels,
        load_artifact,
        make_kernel,
        prepare,
        register,
        run,
        split_k,
        split_k_workspace,
        synchronize,
        u32,
        u64,
        unregister,
    )
    from tilewright import arch as arch
    from tilewright import layout as layout
    from tilewright import program as program
    from tilewright import tracing as tracing
    from tilewright.contraction import contract, einsum
    from tilewright.convolution import conv2d, conv2d_input, conv2d_weight
    from tilewright.epilogue import EpilogueArguments
    from tilewright.grouped_product import grouped_matmul
    from tilewright.product import matmul
    from tilewright.profiling import Profile, benchmark, gemms, profile, tune
    from tilewright.registrations import scoped_registrations
    from tilewright.tracing import TraceError
    from tilewright.weights import PackedWeights, pack_weights, weight_matmul

__version__: str

__all__ = [
    "Artifact",
    "BLASDesignMetadata",
    "CompileError",
    "ContractionArguments",
    "Conv2dArguments",
    "DType",
    "DriverError",
    "EmulationError",
    "Epilogue",
    "EpilogueArguments",
    "Error",
    "Explanation",
    "FileNotFound",
    "GemmArguments",
    "GemmOperandsMetadata",
    "GroupedGemmArguments",
    "InternalError",
    "InvalidArgument",
    "Kernel",
    "KernelList",
    "KernelMetadata",
    "Launch",
    "Operand",
    "OperandDeclaration",
    "OperandsMetadata",
    "Operation",
    "OperationArguments",
    "OutOfMemory",
    "PackedWeights",
    "PointerArray",
    "PreparedCall",
    "Profile",
    "ReduceSplitKArguments",
    "ReduceSplitKOperandsMetadata",
    "RefusedDesign",
    "RefusedKernel",
    "ShapeOnly",
    "Source",
    "Status",
    "TensorAttributes",
    "ToolchainNotFound",
    "TraceError",
    "Unsupported",
    "Workspace",
    "__version__",
    "allocated_bytes",
    "arch",
    "benchmark",
    "cache_counters",
    "compile_kernels",
    "configure",
    "contract",
    "conv2d",
    "conv2d_input",
    "conv2d_weight",
    "device_name",
    "device_target",
    "dtype",
    "einsum",
    "explain",
    "f32",
    "f64",
    "find_kernels",
    "gemms",
    "grouped_matmul",
    "i32",
    "i64",
    "layout",
    "list_kernels",
    "load_artifact",
    "make_kernel",
    "matmul",
    "pack_weights",
    "prepare",
    "profile",
    "program",
    "register",
    "run",
    "scoped_registrations",
    "split_k",
    "split_k_workspace",
    "synchronize",
    "tracing",
    "tune",
    "u32",
    "u64",
    "unregister",
    "weight_matmul",
]

# imported when they are first used
_SUBMODULES = ("arch", "cutlass_api", "emulator", "jax", "layout", "program", "pycutlass", "torch", "tracing")
_MODULE_OF = {
    "EpilogueArguments": "tilewright.epilogue",
    "TraceError": "tilewright.tracing",
    "contract": "tilewright.contraction",
    "conv2d": "tilewright.convolution",
    "conv2d_input": "tilewright.convolution",
    "conv2d_weight": "tilewright.convolution",
    "einsum": "tilewright.contraction",
    "grouped_matmul": "tilewright.grouped_product",
    "matmul": "tilewright.product",
    "scoped_registrations": "tilewright.registrations",
    **dict.fromkeys(("PackedWeights", "pack_weights", "weight_matmul"), "tilewright.weights"),
    **dict.fromkeys(("Profile", "benchmark", "gemms", "profile", "tune"), "tilewright.profiling"),
}  # all other names are in the extension module


_ELSEWHERE = {
    **dict.fromkeys(("mm", "bmm", "dot", "addmm", "gemm"), "tilewright.matmul"),
    "linear": "tilewright.matmul(x, weight.T), torch.ops.tilewright.linear and tilewright.jax.linear",
    "grouped_mm": "tilewright.grouped_matmul, or tilewright.torch.grouped_mm",
    "tensordot": "tilewright.einsum",
}  # names of other libraries, and what does the same here


def __getattr__(name: str) -> object:
    from importlib import import_module

    if name in _SUBMODULES:
        return import_module(f"tilewright.{name}")
    if name not in __all__:
        raise AttributeError(f"module 'tilewright' has no attribute '{name}'{_nearest(name)}", name=name)
    module = _MODULE_OF.get(name, "tilewright._tilewright")
    value: object = getattr(import_module(module), name)
    if module == "tilewright._tilewright" and callable(value):
        from tilewright.checked import checked

        value = checked(value)
    globals()[name] = value
    return value


def _nearest(name: str) -> str:
    from tilewright.missing_name import suggestion

    if name in _ELSEWHERE:
        return f"; see {_ELSEWHERE[name]}"
    return suggestion(name, [*__all__, *_SUBMODULES])


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def _at_exit(name: str) -> None:
    function = getattr(_sys.modules.get("tilewright._tilewright"), name, None)
    if function is not None:
        function()


# atexit calls these in reverse order: first, threads in native code are put to sleep; then kernel classes, engines and
# logging are released while the interpreter and the driver are still alive. They are registered here rather than when
# the extension is loaded, so that functions that a program registers after `import tilewright` run earlier and may
# still compute.
for _name in ("_stop_logging", "_shut_down", "_forget_classes", "_begin_exit"):
    _atexit.register(_at_exit, _name)
del _name
