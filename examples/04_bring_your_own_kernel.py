"""Bring your own kernel: register it, find it for a problem together with the built-in kernels, run it.

It uses tensors of torch on a GPU if both are available, else NumPy arrays on the emulator.
"""

from typing import Any

import tilewright
from f64_gemm_kernel import F64GemmKernel


def arrays(batch: int, m: int, n: int, k: int) -> tuple[Any, Any, Any]:
    try:
        import torch

        if torch.cuda.is_available():
            torch.manual_seed(2025)
            a = torch.randn(batch, m, k, device="cuda", dtype=torch.float64)
            b = torch.randn(batch, k, n, device="cuda", dtype=torch.float64)
            return a, b, torch.empty(batch, m, n, device="cuda", dtype=torch.float64)
    except ImportError:
        pass
    import numpy

    random = numpy.random.default_rng(2025)
    return random.normal(size=(batch, m, k)), random.normal(size=(batch, k, n)), numpy.empty((batch, m, n))


def main() -> None:
    a, b, out = arrays(1, 64, 48, 32)
    args = tilewright.GemmArguments(a, b, out, accumulator_type="float64")

    kernels = tilewright.find_kernels(args, metadata_filter=lambda metadata: metadata.kernel_class == F64GemmKernel)
    for kernel in kernels:
        print(kernel.metadata.kernel_name)
        kernel.run(args)
        assert abs(out - a @ b).max() < 1e-7

    # No kernel has a tile of 256 rows. This is an empty list, not an error.
    assert not tilewright.find_kernels(
        args,
        metadata_filter=lambda metadata: (
            metadata.kernel_class == F64GemmKernel and metadata.design.tile_shape[0] == 256
        ),
    )
    print(tilewright.explain(args))


if __name__ == "__main__":
    main()
