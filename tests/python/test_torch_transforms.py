"""torch.compile with inductor, other tracers, and torch.func, of products of CPU tensors on the emulator."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import tilewright.torch  # noqa: E402
from tilewright import InvalidArgument, matmul  # noqa: E402

F = torch.nn.functional
needs_compiler = pytest.mark.skipif(shutil.which("c++") is None, reason="inductor needs a compiler of C++")


def values(*shape: int, **options: Any) -> Any:
    random = torch.Generator().manual_seed(sum(shape))
    return torch.randint(-3, 4, shape, generator=random).to(options.pop("dtype", torch.float32))


def scaled_gelu(acc: Any, bias: Any, slope: Any) -> Any:
    return F.gelu(acc + bias) * slope


def times(factor: float) -> Callable[[Any], Any]:
    def scale(acc: Any) -> Any:
        return acc * factor

    return scale


PROGRAMS: dict[str, Callable[..., Any]] = {
    "operators": lambda a, b, bias: torch.ops.tilewright.linear(torch.ops.tilewright.matmul(a, b), b, bias[:16]) * 2,
    "plain": lambda a, b, bias: torch.relu(matmul(a, b) + bias),
    "vector": lambda a, b, bias: matmul(a[0], b, out_dtype=torch.float32) + bias,
    "text": lambda a, b, bias: matmul(
        a, b, epilogue="D = relu(acc + row(bias)) * $slope", bias=bias, slope=0.5, batch_invariant=True
    ),
    "c": lambda a, b, bias: matmul(a, b, c=torch.outer(a[:, 0], bias), alpha=2, beta=-1.0),
    "function": lambda a, b, bias: matmul(a, b, epilogue=scaled_gelu, bias=bias, slope=2.0),
    "closure": lambda a, b, bias: matmul(a, b, epilogue=times(3.0)),
    "activation": lambda a, b, bias: matmul(a, b, epilogue=torch.relu) - 1,
    "gated": lambda a, b, bias: matmul(a, b, epilogue="D = reglu(acc)") * 2,
}


@needs_compiler
@pytest.mark.parametrize("name", PROGRAMS)
def test_inductor_compiles_one_graph_with_its_gradients(name: str) -> None:
    program = PROGRAMS[name]
    compiled = torch.compile(program, fullgraph=True, backend="inductor")
    same = assert_close if name == "function" else assert_equal
    given = [values(*shape) for shape in ((32, 16), (16, 24), (24,))]
    same(compiled(*given), program(*given))
    leaves = [each.requires_grad_() for each in given]
    results = []
    for each in (compiled, program):
        out = each(*leaves)
        weights = torch.arange(out.shape[-1])
        results.append(torch.autograd.grad((out * weights).sum(), leaves, allow_unused=True))
    for ours, eager in zip(*results, strict=True):
        assert (ours is None) == (eager is None) or not (ours if eager is None else eager).any()
        if ours is not None and eager is not None:
            same(ours, eager)


def assert_close(x: Any, y: Any) -> None:
    torch.testing.assert_close(x, y, rtol=1e-4, atol=1e-4)


def assert_equal(x: Any, y: Any) -> None:
    assert x.dtype == y.dtype and torch.equal(x, y)


@needs_compiler
def test_inductor_compiles_for_sizes_that_change() -> None:
    compiled = torch.compile(lambda a, b: matmul(a, b, epilogue="relu", alpha=2.0) + 1, fullgraph=True, dynamic=True)
    a, b = values(32, 16), values(16, 24)
    for rows in (4, 5, 17, 32):
        assert torch.equal(compiled(a[:rows], b), 2 * torch.relu(a[:rows] @ b) + 1)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_mistakes_are_found_in_compiled_programs(backend: str) -> None:
    a, b = values(32, 16), values(16, 24)
    with pytest.raises(Exception, match="columns of a and rows of b differ.*pass b.T|must have rank 2 or 3"):
        torch.compile(lambda a, b: matmul(a, b), backend=backend)(a, b.T)
    out = torch.empty(32, 24)
    torch.compile(lambda a, b: matmul(a, b, out=out), backend=backend)(a, b)  # not in one graph
    assert torch.equal(out, a @ b)


EPILOGUES: dict[str, dict[str, Any]] = {
    "none": {},
    "text": {"epilogue": "D = tanh(acc + row(bias))"},
    "function": {"epilogue": lambda acc, bias: F.silu(acc + bias)},
    "c": {"alpha": 0.5},
}


def in_torch(name: str, a: Any, b: Any, other: Any) -> Any:
    acc = a @ b
    if name == "none":
        return acc
    if name == "c":
        return 0.5 * acc + other
    return torch.tanh(acc + other) if name == "text" else F.silu(acc + other)


def in_tilewright(name: str, a: Any, b: Any, other: Any) -> Any:
    operands = {} if name == "none" else {"c" if name == "c" else "bias": other}
    return matmul(a, b, **operands, **EPILOGUES[name])


@pytest.mark.parametrize("name", EPILOGUES)
def test_grad_vmap_and_their_compositions(name: str) -> None:
    a, b = (values(5, *shape, dtype=torch.float64) / 4 for shape in ((6, 8), (8, 4)))
    other = values(5, 6, 4, dtype=torch.float64) if name == "c" else values(5, 4, dtype=torch.float64)

    def ours(a: Any, b: Any, other: Any) -> Any:
        return in_tilewright(name, a, b, other)

    def theirs(a: Any, b: Any, other: Any) -> Any:
        return in_torch(name, a, b, other)

    func = torch.func
    for transform in (
        lambda f: f(a[0], b[0], other[0]),
        lambda f: func.vmap(f)(a, b, other),
        lambda f: func.vmap(f, (0, None, None))(a, b[0], other[0]),
        lambda f: func.vmap(f, (None, 2, 0))(a[0], b.movedim(0, 2), other),
        lambda f: func.grad(lambda *x: (f(*x) ** 2).sum(), (0, 1))(a[0], b[0], other[0]),
        lambda f: func.vmap(func.grad(lambda *x: (f(*x) ** 2).sum(), (0, 1, 2)))(a, b, other)[:2],
        lambda f: func.jacrev(f)(a[0], b[0], other[0]),
        lambda f: func.grad(lambda *x: (func.grad(lambda *y: (f(*y) ** 2).sum())(*x) ** 2).sum())(a[0], b[0], other[0]),
    ):
        torch.testing.assert_close(transform(ours), transform(theirs))


def test_forward_mode() -> None:
    a, b, c = (values(*shape, dtype=torch.float64) for shape in ((6, 8), (8, 4), (6, 4)))

    def product(function: Any) -> Any:
        return torch.func.jvp(lambda a, b, c: function(a, b, c), (a, b, c), (a + 1, b - 1, c))

    ours, theirs = product(lambda a, b, c: matmul(a, b, c=c, alpha=2.0)), product(lambda a, b, c: 2 * (a @ b) + c)
    assert torch.equal(ours[0], theirs[0]) and torch.equal(ours[1], theirs[1])
    hessian = torch.func.hessian(lambda a: (matmul(a, b[:, :2]) ** 2).sum())(a[:2])
    torch.testing.assert_close(hessian, torch.func.hessian(lambda a: ((a @ b[:, :2]) ** 2).sum())(a[:2]))
    with pytest.raises(InvalidArgument, match="no derivatives in forward mode: use torch.func.vjp"):
        torch.func.jvp(lambda a: matmul(a, b, epilogue=torch.relu), (a,), (a,))


def test_operators_have_vmap() -> None:
    a, b, weight = values(5, 6, 8), values(5, 8, 4), values(4, 8)
    assert torch.equal(torch.vmap(torch.ops.tilewright.matmul)(a, b), a @ b)
    assert torch.equal(torch.vmap(torch.ops.tilewright.linear, (0, None))(a, weight), a @ weight.T)


def test_the_product_is_part_of_graphs_of_other_tracers() -> None:
    from torch._subclasses import FakeTensorMode
    from torch.fx.experimental.proxy_tensor import make_fx
    from torch.utils._python_dispatch import TorchDispatchMode

    class Counted(TorchDispatchMode):
        seen: list[str] = []

        def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            self.seen.append(str(function))
            return function(*args, **(kwargs or {}))

    a, b = torch.arange(12.0).view(3, 4), torch.arange(20.0).view(4, 5) - 9
    other = a + 2
    tilewright.matmul(a, b)  # the next call is like an earlier one
    graph = make_fx(lambda x: tilewright.matmul(x, b) * 2)(a)
    assert torch.equal(graph(other), other @ b * 2)
    traced = torch.jit.trace(lambda x: tilewright.matmul(x, b, epilogue="relu"), (a,))
    assert torch.equal(traced(other), torch.relu(other @ b))
    with Counted():
        assert torch.equal(tilewright.matmul(a, b), a @ b)
    assert "tilewright.product.default" in Counted.seen
    with FakeTensorMode() as mode:
        fake = tilewright.matmul(mode.from_tensor(a), mode.from_tensor(b), out_dtype=torch.float16)
        assert fake.shape == (3, 5) and fake.dtype == torch.float16


def test_results_are_tensors_whatever_was_multiplied_before() -> None:
    a, b = np.ones((3, 7), np.float32), np.ones((7, 5), np.float32)
    for _ in range(3):
        for x, y in ((torch.from_numpy(a), b), (a, torch.from_numpy(b))):
            assert type(tilewright.matmul(x, y)) is type(x)


def test_tensors_whose_memory_has_other_elements_are_refused() -> None:
    a, b = torch.ones(3, 4), torch.ones(4, 5)
    negated = torch.complex(a, a).conj().imag
    assert negated.is_neg()
    for _ in range(2):
        tilewright.matmul(negated.resolve_neg().contiguous(), b)
        with pytest.raises(InvalidArgument, match=r"a: the tensor is a view of negated elements .* pass .resolve_neg\(\)"):
            tilewright.matmul(negated, b)
    with pytest.raises(InvalidArgument, match=r"out: the tensor is a view of negated"):
        tilewright.matmul(a, b, out=torch._neg_view(torch.zeros(3, 5)))
    for sparse in (a.to_sparse(), a.to_sparse_csr()):
        with pytest.raises(InvalidArgument, match=r"a: the tensor has the layout torch.sparse_\w+: pass .to_dense\(\)"):
            tilewright.matmul(sparse, b, out=torch.zeros(3, 5))
