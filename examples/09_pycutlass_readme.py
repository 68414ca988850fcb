"""The example of PyCUTLASS's README, with the import changed. Without PyTorch or a GPU it uses NumPy arrays."""

from importlib import import_module, util
from typing import Any

from tilewright import pycutlass
from tilewright.pycutlass import *

import numpy

torch: Any = import_module("torch") if util.find_spec("torch") is not None else None

pycutlass.get_memory_pool(2**8, 2**32)

math_inst = MathInstruction(
    [1, 1, 1], cutlass.float32, cutlass.float32, cutlass.float32,
    cutlass.OpClass.Simt, MathOperation.multiply_add
)

tile_description = TileDescription(
    [128, 128, 8], 4, [2, 4, 1],
    math_inst
)

A = TensorDescription(
    cutlass.float32, cutlass.RowMajor, 1
)

B = TensorDescription(
    cutlass.float32, cutlass.RowMajor, 1
)

C = TensorDescription(
    cutlass.float32, cutlass.RowMajor, 1
)

epilogue_functor = LinearCombination(cutlass.float32, 1, cutlass.float32, cutlass.float32)

operation = GemmOperationUniversal(
    arch=80, tile_description=tile_description,
    A=A, B=B, C=C,
    epilogue_functor=epilogue_functor,
    swizzling_functor=cutlass.IdentitySwizzle1
)

pycutlass.compiler.add_module([operation,])

problem_size = cutlass.gemm.GemmCoord(512, 256, 128)

if torch is not None and torch.cuda.is_available():
    tensor_A = torch.ceil(
        torch.empty(size=(problem_size.m(), problem_size.k()), dtype=torch.float32, device="cuda").uniform_(-8.5, 7.5)
    )
    tensor_B = torch.ceil(
        torch.empty(size=(problem_size.k(), problem_size.n()), dtype=torch.float32, device="cuda").uniform_(-8.5, 7.5)
    )
    tensor_C = torch.ceil(
        torch.empty(size=(problem_size.m(), problem_size.n()), dtype=torch.float32, device="cuda").uniform_(-8.5, 7.5)
    )
    tensor_D = torch.empty_like(tensor_C)
else:
    uniform = numpy.random.default_rng().uniform
    tensor_A = numpy.ceil(uniform(-8.5, 7.5, (problem_size.m(), problem_size.k()))).astype(numpy.float32)
    tensor_B = numpy.ceil(uniform(-8.5, 7.5, (problem_size.k(), problem_size.n()))).astype(numpy.float32)
    tensor_C = numpy.ceil(uniform(-8.5, 7.5, (problem_size.m(), problem_size.n()))).astype(numpy.float32)
    tensor_D = numpy.empty_like(tensor_C)


alpha = 1.0
beta = 0.0

arguments = GemmArguments(
    operation=operation, problem_size=problem_size,
    A=tensor_A, B=tensor_B, C=tensor_C, D=tensor_D,
    output_op=operation.epilogue_type(alpha, beta),
    gemm_mode=cutlass.gemm.Mode.Gemm, split_k_splices=1
)

operation.run(arguments)

arguments.sync()

tensor_D_ref = alpha * tensor_A @ tensor_B + beta * tensor_C

assert (tensor_D == tensor_D_ref).all()
print(f"{operation.procedural_name()}: {tensor_D.shape[0]}x{tensor_D.shape[1]} elements as expected")
