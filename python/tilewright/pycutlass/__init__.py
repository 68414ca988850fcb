"""The interface of PyCUTLASS, implemented by Tilewright's kernels.

`import tilewright.pycutlass as pycutlass` and `from tilewright.pycutlass import *`. See docs/pycutlass.md.
"""

import importlib.util
import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright.missing_name import refuse_unknown
from tilewright.submodules import add_submodules

from . import (
    conversions,
    convolution,
    cutlass,
    device,
    gemm_operation,
    library,
    memory_pool,
    reduction,
    reference_model,
    testbed,
)
from .activation import ActivationFunctor, gelu, hardswish, identity, leaky_relu, relu, sigmoid, silu, tanh
from .arguments import GemmArguments
from .compiler import ArtifactManager, CompilationOptions
from .convolution import Conv2dArguments, Conv2dOperation
from .cutlass.conv import Conv2dProblemSize, IteratorAlgorithm
from .cutlass.conv import Operator as ConvKind
from .device import device_cc
from .epilogue import (
    FastLinearCombinationClamp,
    LayerNorm,
    LinearCombination,
    LinearCombinationClamp,
    LinearCombinationGeneric,
)
from .grouped import GemmGroupedArguments, GemmOperationGrouped, GroupedGemmArguments
from .library import (
    DataTypeNames,
    DataTypeSize,
    DataTypeSizeBytes,
    DataTypeTag,
    OpcodeClassNames,
    ShortLayoutTypeNames,
)
from .keywords import suggest_keywords
from .kinds import ConvMode, GemmKind, OperationKind, SchedulerMode, StrideSupport
from .math_instruction import MathInstruction, MathOperation
from .memory_pool import PoolMemoryManager, align_size, get_allocated_size, get_memory_pool
from .operation import ApiVersion, GemmOperationUniversal, api_version
from .reduction import ReductionArguments, ReductionOperation
from .reference_model import Conv2dReferenceModule, ReferenceModule
from .template import SubstituteTemplate
from .tensor import TensorDescription
from .tile import TileDescription
from .unsupported import SymmetricTensorDescription, TriangularTensorDescription
from .visitor import EpilogueVisitTree, reduction_op

compiler = ArtifactManager()

# The modules have the names that programs for PyCUTLASS import.
utils = conversions
add_submodules(
    __name__,
    conv2d_operation=convolution,
    memory_manager=memory_pool,
    reduction_operation=reduction,
    test=testbed,
    utils=conversions,
)
add_submodules(
    f"{__name__}.test",
    conv2d_testbed=testbed,
    gemm_grouped_testbed=testbed,
    gemm_testbed=testbed,
    profiler=testbed,
    utils=testbed,
)
add_submodules(f"{__name__}.utils", datatypes=conversions, device=device, reference_model=reference_model)

__all__ = [
    "ActivationFunctor",
    "ApiVersion",
    "ArtifactManager",
    "CompilationOptions",
    "Conv2dArguments",
    "Conv2dOperation",
    "Conv2dProblemSize",
    "Conv2dReferenceModule",
    "ConvKind",
    "ConvMode",
    "DataTypeNames",
    "DataTypeSize",
    "DataTypeSizeBytes",
    "DataTypeTag",
    "EpilogueVisitTree",
    "FastLinearCombinationClamp",
    "GemmArguments",
    "GemmGroupedArguments",
    "GemmKind",
    "GemmOperationGrouped",
    "GemmOperationUniversal",
    "GroupedGemmArguments",
    "IteratorAlgorithm",
    "LayerNorm",
    "LinearCombination",
    "LinearCombinationClamp",
    "LinearCombinationGeneric",
    "MathInstruction",
    "MathOperation",
    "OpcodeClassNames",
    "OperationKind",
    "PoolMemoryManager",
    "ReductionArguments",
    "ReductionOperation",
    "ReferenceModule",
    "SchedulerMode",
    "ShortLayoutTypeNames",
    "StrideSupport",
    "SubstituteTemplate",
    "SymmetricTensorDescription",
    "TensorDescription",
    "TileDescription",
    "TriangularTensorDescription",
    "align_size",
    "api_version",
    "compiler",
    "cutlass",
    "device_cc",
    "gelu",
    "gemm_operation",
    "get_allocated_size",
    "get_memory_pool",
    "hardswish",
    "identity",
    "leaky_relu",
    "library",
    "reduction_op",
    "relu",
    "sigmoid",
    "silu",
    "tanh",
    "utils",
]

for _module in (sys.modules[__name__], cutlass, cutlass.conv, cutlass.gemm):
    suggest_keywords(vars(_module), [*vars(_module)], __name__)

if not TYPE_CHECKING:  # type checkers see what programs import themselves
    # As in PyCUTLASS, the star import gives these names to programs that do not import them themselves.
    pycutlass = sys.modules[__name__]
    __all__ += ["np", "pycutlass"]
    if importlib.util.find_spec("torch") is not None:
        __all__ += ["torch"]

testbed.add_names({name: value for name, value in globals().items() if name in __all__})


def __getattr__(name: str) -> Any:
    if name == "DEVICE_CC":
        return device_cc()
    if name == "torch" and name in __all__:
        return importlib.import_module("torch")
    refuse_unknown(__name__, __all__)(name)
