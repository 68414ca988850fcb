"""Tilewright: from the description of a GEMM to a running GPU kernel, at run time.

`import tilewright` is cheap: what needs the extension, or more, is loaded when it is first named.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilewright.errors import (
    CompileError,
    DriverError,
    EmulationError,
    Error,
    InternalError,
    InvalidArgument,
    OutOfMemory,
    ToolchainNotFound,
    Unsupported,
)

if TYPE_CHECKING:
    from tilewright._tilewright import (
        Artifact,
        BLASDesignMetadata,
        DType,
        Epilogue,
        Explanation,
        GemmArguments,
        GemmOperandsMetadata,
        Kernel,
        KernelList,
        KernelMetadata,
        Launch,
        Operand,
        Prepared,
        RefusedKernel,
        Scratch,
        ShapeOnly,
        Source,
        Status,
        TensorAttributes,
        allocated_bytes,
        cache_counters,
        compile_kernels,
        configure,
        device_name,
        device_target,
        dtype,
        explain,
        find_kernels,
        list_kernels,
        load_artifact,
        make_kernel,
        prepare,
        register,
        synchronize,
        unregister,
    )
    from tilewright.epilogue import EpilogueArguments
    from tilewright.product import matmul
    from tilewright.tracing import TraceError

__version__: str

__all__ = [
    "Artifact",
    "BLASDesignMetadata",
    "CompileError",
    "DType",
    "DriverError",
    "EmulationError",
    "Epilogue",
    "EpilogueArguments",
    "Error",
    "Explanation",
    "GemmArguments",
    "GemmOperandsMetadata",
    "InternalError",
    "InvalidArgument",
    "Kernel",
    "KernelList",
    "KernelMetadata",
    "Launch",
    "Operand",
    "OutOfMemory",
    "Prepared",
    "RefusedKernel",
    "Scratch",
    "ShapeOnly",
    "Source",
    "Status",
    "TensorAttributes",
    "ToolchainNotFound",
    "TraceError",
    "Unsupported",
    "__version__",
    "allocated_bytes",
    "cache_counters",
    "compile_kernels",
    "configure",
    "device_name",
    "device_target",
    "dtype",
    "explain",
    "find_kernels",
    "list_kernels",
    "load_artifact",
    "make_kernel",
    "matmul",
    "prepare",
    "register",
    "synchronize",
    "unregister",
]

# Where each name lives that is loaded when it is first used.
_LAZY = {
    "__version__": "tilewright._tilewright",
    "Artifact": "tilewright._tilewright",
    "BLASDesignMetadata": "tilewright._tilewright",
    "DType": "tilewright._tilewright",
    "Epilogue": "tilewright._tilewright",
    "Explanation": "tilewright._tilewright",
    "GemmArguments": "tilewright._tilewright",
    "GemmOperandsMetadata": "tilewright._tilewright",
    "Kernel": "tilewright._tilewright",
    "KernelList": "tilewright._tilewright",
    "KernelMetadata": "tilewright._tilewright",
    "Launch": "tilewright._tilewright",
    "Operand": "tilewright._tilewright",
    "Prepared": "tilewright._tilewright",
    "RefusedKernel": "tilewright._tilewright",
    "Scratch": "tilewright._tilewright",
    "ShapeOnly": "tilewright._tilewright",
    "Source": "tilewright._tilewright",
    "Status": "tilewright._tilewright",
    "TensorAttributes": "tilewright._tilewright",
    "allocated_bytes": "tilewright._tilewright",
    "cache_counters": "tilewright._tilewright",
    "compile_kernels": "tilewright._tilewright",
    "configure": "tilewright._tilewright",
    "device_name": "tilewright._tilewright",
    "device_target": "tilewright._tilewright",
    "dtype": "tilewright._tilewright",
    "explain": "tilewright._tilewright",
    "find_kernels": "tilewright._tilewright",
    "list_kernels": "tilewright._tilewright",
    "load_artifact": "tilewright._tilewright",
    "make_kernel": "tilewright._tilewright",
    "prepare": "tilewright._tilewright",
    "register": "tilewright._tilewright",
    "synchronize": "tilewright._tilewright",
    "unregister": "tilewright._tilewright",
    "EpilogueArguments": "tilewright.epilogue",
    "matmul": "tilewright.product",
    "TraceError": "tilewright.tracing",
}


def __getattr__(name: str) -> object:
    if name not in _LAZY:
        raise AttributeError(f"module 'tilewright' has no attribute '{name}'")
    import importlib

    value: object = getattr(importlib.import_module(_LAZY[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})
