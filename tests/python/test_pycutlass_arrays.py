"""The arrays that operations of `tilewright.pycutlass` take, the memory pool and the compiler."""

import os
import subprocess
import sys
import types

import numpy as np
import pytest
from pycutlass_problems import COLUMN, ROW, K, M, N, empty, problem, refused, run, simt

from tilewright import device_name, pycutlass
from tilewright.errors import InvalidArgument


def test_arrays_are_memory_of_any_shape():
    operation = simt(layouts=(ROW, COLUMN, ROW))
    (a, b, c), _ = problem(operation)
    expected = a @ b + c
    a, b, c = (values.astype(np.float32) for values in (a, b, c))
    for memory in (
        [a.ravel(), b.T.ravel(), c.ravel()],
        [a.reshape(K, M), b.T.reshape(2, -1), c.reshape(-1, 4)],
        [np.asfortranarray(a), b.T, np.asfortranarray(c)],  # NumPy's are read in the order of their indices
        [np.append(a, 7).astype(np.float32), np.ascontiguousarray(b.T), c],  # longer than necessary
    ):
        d = np.empty(M * N, np.float32)
        run(operation, memory, d, 1.0, 1.0)
        assert np.array_equal(d.reshape(M, N), expected)


def test_square_arrays_that_may_be_transposes_are_refused_with_what_to_pass():
    operation = simt(layouts=(ROW, COLUMN, ROW))
    random = np.random.default_rng(2)
    a, b = (random.integers(-4, 5, shape).astype(np.float32) for shape in ((24, 32), (32, 32)))
    d = np.empty((24, 32), np.float32)
    for meant in (np.ascontiguousarray(b.T), np.asfortranarray(b).T):
        run(operation, [a, meant, d], d, 1.0, 0.0, size=(24, 32, 32))
        assert np.array_equal(d, a @ b)
    message = r"B has square matrices and strides \(1, 32\).* pass x.T if x is .* and numpy.ascontiguousarray\(x\) if x is"
    with refused(message):
        run(operation, [a, b.T, d], d, 1.0, 0.0, size=(24, 32, 32))


def test_arrays_are_read_when_the_operation_runs():
    operation = simt()
    (a, b, c), memory = problem(operation)
    strided = np.zeros((M, 2 * K), np.float32)[:, ::2]
    d = empty(operation, M, N)
    arguments = run(operation, [strided, *memory[1:]], d, 1.0, 1.0)
    assert np.array_equal(d, c)
    strided[...] = a
    operation.run(arguments)
    arguments.sync()
    assert np.array_equal(d, a @ b + c)


class PointerTensor:
    """A stand-in for a PyTorch tensor in host memory, with the methods that tilewright.pycutlass calls."""

    is_cuda = False

    def __init__(self, values):
        self.values = values
        self.dtype, self.shape = values.dtype, values.shape

    def data_ptr(self):
        return self.values.ctypes.data

    def numel(self):
        return self.values.size

    def stride(self):
        return tuple(step // self.values.itemsize for step in self.values.strides)


def test_tensors_are_used_in_place(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", types.SimpleNamespace(Tensor=PointerTensor))
    operation = simt(layouts=(ROW, COLUMN, COLUMN))
    (a, b, c), memory = problem(operation)
    transposed = memory[1].T  # (k, n) and column-major, as B is described
    d = np.empty((N, M), np.float32).T
    run(operation, [PointerTensor(each) for each in (memory[0], transposed, memory[2])], PointerTensor(d), 1.0, 1.0)
    assert np.array_equal(d, a @ b + c)
    with pytest.raises(InvalidArgument, match=r"A has shape \(40, 32\) and strides \(1, 40\)"):
        run(operation, [PointerTensor(np.asfortranarray(memory[0])), *memory[1:]], d, 1.0, 0.0)


def test_torch_tensors():
    torch = pytest.importorskip("torch")
    device = "cuda" if torch.cuda.is_available() else "cpu"
    operation = simt(layouts=(ROW, COLUMN, ROW))
    (a, b, c), memory = problem(operation)
    d = torch.empty((M, N), device=device)
    run(operation, [torch.tensor(each, device=device) for each in memory], d, 1.0, 1.0)
    assert np.array_equal(d.cpu().numpy(), a @ b + c)


def test_the_pool_has_the_interface_of_pycutlass():
    pool = pycutlass.get_memory_pool(2**20, 2**30)
    before = pool.get_allocated_size()
    operation = simt()
    _, memory = problem(operation)
    run(operation, memory, empty(operation, M, N), 1.0, 1.0)
    assert pool.get_allocated_size() == before == pycutlass.get_allocated_size()
    assert pool.pool_size() >= 2**20
    assert pycutlass.align_size(1000) == 1024


def test_a_pool_may_be_too_small():
    with refused("init_pool_size must be at most max_pool_size, got 2048 and 1024"):
        pycutlass.get_memory_pool(2048, 1024)
    if device_name().startswith("emulator"):
        pytest.skip("the emulator's memory has no bound")
    pycutlass.get_memory_pool(0, 1024)
    try:
        operation = simt()
        _, memory = problem(operation)
        with pytest.raises(MemoryError):
            run(operation, memory, empty(operation, M, N), 1.0, 1.0)
    finally:
        pycutlass.get_memory_pool(0, 0)


def test_operations_are_compiled_once(tmp_path):
    program = """
import numpy, tilewright
from tilewright import device_name, pycutlass
from tilewright.pycutlass import *
math = MathInstruction([1, 1, 1], cutlass.float32, cutlass.float32, cutlass.float32)
each = TensorDescription(cutlass.float32, cutlass.RowMajor)
tiles = [TileDescription(shape, 2, [1, 1, 1], math) for shape in ([32, 32, 8], [32, 64, 8], [64, 32, 8])]
epilogue = LinearCombination(cutlass.float32, 1)
operations = [GemmOperationUniversal(80, tile, each, each, each, epilogue) for tile in tiles]
pycutlass.compiler.nvrtc()
pycutlass.compiler.add_module(operations, pycutlass.CompilationOptions(["-std=c++17"], 80))
pycutlass.compiler.add_module(operations)
print(tilewright.cache_counters()["compiles"])
"""
    environment = {**os.environ, "TILEWRIGHT_CACHE_DIR": str(tmp_path)}
    outputs = [subprocess.check_output([sys.executable, "-c", program], text=True, env=environment) for _ in range(2)]
    assert outputs == ["3\n", "0\n"]
