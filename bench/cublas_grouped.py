"""cublasGemmGroupedBatchedEx (cuBLAS 12.5 and newer) on lists of row-major or column-major matrices of PyTorch.

It takes bf16, f16, f32 (also with tf32 math) and f64. Extents, leading dimensions and scalars are in host memory, the
addresses of the matrices in device memory: a captured call cannot be replayed with other sizes, as ours can.
"""

import ctypes

import torch

_COMPUTE_F32, _BF16, _F16 = 68, 14, 2  # CUBLAS_COMPUTE_32F, CUDA_R_16BF, CUDA_R_16F
_TYPES = {torch.bfloat16: _BF16, torch.float16: _F16}
_NOT_TRANSPOSED, _TRANSPOSED = 0, 1


def _library():
    """The cuBLAS that PyTorch has loaded, which has its handle."""
    for version in (13, 12):
        try:
            return ctypes.CDLL(f"libcublas.so.{version}")
        except OSError:
            continue
    raise RuntimeError("cuBLAS is not found")


class CublasGrouped:
    """a[i] @ b[i] into the row-major out[i]. cuBLAS is column-major, so it computes out[i].T = b[i].T @ a[i].T."""

    def __init__(self, a, b, out):
        self.library = _library()
        if not hasattr(self.library, "cublasGemmGroupedBatchedEx"):
            raise RuntimeError("this cuBLAS has no grouped entry, which came with version 12.5")
        self.used = [(x, y, z) for x, y, z in zip(a, b, out, strict=True) if z.numel() > 0 and x.shape[1] > 0]
        self.type = _TYPES[out[0].dtype]
        self.m = self._integers(z.shape[1] for _, _, z in self.used)
        self.n = self._integers(z.shape[0] for _, _, z in self.used)
        self.k = self._integers(x.shape[1] for x, _, _ in self.used)
        self.of_b = self._operand([y for _, y, _ in self.used])
        self.of_a = self._operand([x for x, _, _ in self.used])
        self.of_out = self._operand([z for _, _, z in self.used])
        count = len(self.used)
        self.sizes = self._integers([1] * count)
        self.alpha, self.beta = ((ctypes.c_float * count)(*[value] * count) for value in (1.0, 0.0))

    @staticmethod
    def _integers(values):
        values = list(values)
        return (ctypes.c_int * len(values))(*values)

    def _operand(self, matrices):
        """The operations, the addresses and the leading dimensions of matrices, whose columns cuBLAS takes for rows."""
        is_row_major = [x.stride(1) == 1 for x in matrices]
        operations = self._integers(_NOT_TRANSPOSED if rows else _TRANSPOSED for rows in is_row_major)
        lds = [max(x.stride(0 if rows else 1), 1) for x, rows in zip(matrices, is_row_major, strict=True)]
        addresses = torch.tensor([x.data_ptr() for x in matrices], dtype=torch.int64, device=matrices[0].device)
        return operations, addresses, self._integers(lds)

    def run(self):
        (op_b, b, ldb), (op_a, a, lda), (_, out, ldd) = self.of_b, self.of_a, self.of_out
        pointer = lambda tensor: ctypes.c_void_p(tensor.data_ptr())  # noqa: E731
        status = self.library.cublasGemmGroupedBatchedEx(
            ctypes.c_void_p(torch.cuda.current_blas_handle()),  # on the current stream
            op_b,
            op_a,
            self.m,
            self.n,
            self.k,
            self.alpha,
            pointer(b),
            self.type,
            ldb,
            pointer(a),
            self.type,
            lda,
            self.beta,
            pointer(out),
            self.type,
            ldd,
            len(self.used),
            self.sizes,
            _COMPUTE_F32,
        )
        if status != 0:
            raise RuntimeError(f"cublasGemmGroupedBatchedEx returned {status}")
