"""A kernel that is defined outside the library: a product of f64 matrices with one thread per element of the output. It
is not fast, but complete: metadata, source text, launch, and the list of configurations."""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Callable
from typing import Any

import tilewright
from tilewright import BLASDesignMetadata, GemmArguments, GemmOperandsMetadata, KernelMetadata, Launch, Operand, Status

CUDA = """
struct Strides { long long batch, row, column; };

extern "C" __global__ void NAME(const double* a, const double* b, double* out, int m, int n, int k,
                                Strides at_a, Strides at_b, Strides at_out) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x, column = blockIdx.y * blockDim.y + threadIdx.y;
  if (row >= m || column >= n) return;
  double sum = 0.0;
  for (int i = 0; i < k; ++i) {
    sum += a[blockIdx.z * at_a.batch + row * at_a.row + i * at_a.column] *
           b[blockIdx.z * at_b.batch + i * at_b.row + column * at_b.column];
  }
  out[blockIdx.z * at_out.batch + row * at_out.row + column * at_out.column] = sum;
}
"""


@tilewright.register
class F64GemmKernel(tilewright.Kernel):
    """out = A @ B for batches of f64 matrices of any size, with any strides."""

    @staticmethod
    def generate_kernels(
        metadata_filter: Callable[[KernelMetadata], bool], epilogue_args: Any = None, target: str | None = None
    ) -> list[F64GemmKernel]:
        """Two tile sizes for each of the eight combinations of layouts."""
        row_major, column_major = (0, 0, 1), (0, 1, 0)
        letter = {row_major: "t", column_major: "n"}
        kernels = []
        for tile in [(32, 32, 1), (16, 16, 1)]:
            for strides in itertools.product([row_major, column_major], repeat=3):
                a, b, out = (tilewright.TensorAttributes("float64", stride, divisibility=1) for stride in strides)
                metadata = KernelMetadata(
                    kernel_name=f"F64GemmKernel_tile{tile[0]}x{tile[1]}_{''.join(letter[stride] for stride in strides)}",
                    kernel_class=F64GemmKernel,
                    operands=GemmOperandsMetadata(a, b, out, accumulator_type="float64"),
                    design=BLASDesignMetadata(tile, (1, 1, 1)),
                    min_cc=0,
                )
                if metadata_filter(metadata):
                    kernels.append(F64GemmKernel(metadata))
        return kernels

    def _supports(self, args: GemmArguments) -> Status:
        if not all(len(operand.shape) == 3 for operand in (args.A, args.B, args.out)):
            return Status.fail("All operands must be rank 3.")
        return Status.success()

    def _source(self) -> str:
        return CUDA.replace("NAME", self.name)

    def _launch(self, args: GemmArguments) -> Launch:
        tile_m, tile_n, _ = self.metadata.design.tile_shape

        def strides(operand: Operand) -> bytes:
            return bytes((ctypes.c_int64 * 3)(operand.batch_stride, operand.row_stride, operand.column_stride))

        return Launch(
            grid=(-(-args.m // tile_m), -(-args.n // tile_n), args.batch),
            block=(tile_m, tile_n),
            parameters=[
                *(args.A, args.B, args.out),
                *(ctypes.c_int32(extent) for extent in (args.m, args.n, args.k)),
                *(strides(operand) for operand in (args.A, args.B, args.out)),
            ],
        )
