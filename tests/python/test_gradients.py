"""Gradients of tilewright.matmul and contract for tensors of PyTorch are those of the same formula in PyTorch, and no
function loses a gradient silently."""

from __future__ import annotations

import pathlib
import re
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

import tilewright
from conftest import ROOT
from tilewright import InvalidArgument

torch = pytest.importorskip("torch")
F = torch.nn.functional
matmul = tilewright.matmul


def values(*shape: int) -> Any:
    """Multiples of 1/4, so that both sides compute the same accumulators."""
    generator = torch.Generator().manual_seed(sum(shape))
    return torch.randint(-3, 4, shape, generator=generator).double() / 4


def check(own: Callable[..., Any], expected: Callable[..., Any], *tensors: Any) -> None:
    results = []
    for function in (own, expected):
        leaves = [each.clone().requires_grad_() for each in tensors]
        result = function(*leaves)
        weights = torch.arange(1, result.numel() + 1, dtype=result.dtype).reshape(result.shape) / 8
        result.backward(weights)
        results.append([result.detach(), *(each.grad for each in leaves)])
    for found, wanted in zip(*results, strict=True):
        torch.testing.assert_close(found, wanted, atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize(
    "shapes", [((4, 5), (5, 6)), ((3, 4, 5), (5, 6)), ((2, 3, 4, 5), (5,)), ((1, 4, 5), (3, 5, 6))]
)
def test_products(shapes: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    check(matmul, torch.matmul, *(values(*shape) for shape in shapes))


def test_c_alpha_and_beta() -> None:
    tensors = values(4, 5), values(5, 6), values(4, 6)
    check(lambda a, b, c: matmul(a, b, c=c, alpha=0.5, beta=2.0), lambda a, b, c: 0.5 * a @ b + 2 * c, *tensors)
    check(
        lambda a, b, c: matmul(a, b, epilogue="relu", c=c, alpha=0.5),
        lambda a, b, c: torch.relu(0.5 * a @ b + c),
        *tensors,
    )


NAMED = {
    "relu": torch.relu,
    "gelu": F.gelu,
    "silu": F.silu,
    "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
    "hardswish": F.hardswish,
    "leaky_relu": lambda x: F.leaky_relu(x, 0.2),
    "identity": lambda x: x,
    "linear_combination": lambda x: x,
}


@pytest.mark.parametrize("name", NAMED)
def test_named_epilogues(name: str) -> None:
    check(lambda a, b: matmul(a, b, epilogue=name), lambda a, b: NAMED[name](a @ b), values(4, 5), values(5, 6))


def test_texts_functions_and_modules() -> None:
    a, b, bias, rest, scale = values(4, 5), values(5, 6), values(6), values(4, 6), values(4)
    text = "let t = acc + row(bias); D = gelu(t) * $s + rest"
    check(
        lambda a, b, bias, rest: matmul(a, b, epilogue=text, bias=bias, rest=rest, s=0.5),
        lambda a, b, bias, rest: F.gelu(a @ b + bias) * 0.5 + rest,
        *(a, b, bias, rest),
    )

    def formula(acc: Any, bias: Any, scale: Any) -> Any:
        return torch.where(acc > 0, acc * 0.75, bias) * scale[:, None]

    check(
        lambda a, b, bias, scale: matmul(a, b, epilogue=formula, bias=bias, scale=scale),
        lambda a, b, bias, scale: formula(a @ b, bias, scale),
        *(a, b, bias, scale),
    )
    check(
        lambda a, b: matmul(a, b, epilogue=torch.nn.GELU("tanh")), lambda a, b: F.gelu(a @ b, approximate="tanh"), a, b
    )
    check(
        lambda a, b: matmul(a, b, epilogue="D = swiglu(acc)"),
        lambda a, b: F.silu((a @ b)[:, ::2]) * (a @ b)[:, 1::2],
        *(a, b),
    )


def test_contractions() -> None:
    expression = "abk,kcd->dabc"
    check(
        lambda a, b: tilewright.contract(expression, a, b),
        lambda a, b: torch.einsum(expression, a, b),
        *(values(2, 3, 4), values(4, 5, 6)),
    )
    chain = "ab,bc,cd->ad"
    check(
        lambda *tensors: tilewright.einsum(chain, *tensors),
        lambda *tensors: torch.einsum(chain, *tensors),
        *(values(2, 3), values(3, 4), values(4, 5)),
    )
    a = values(2, 3, 4).requires_grad_()
    with pytest.raises(InvalidArgument, match="sums over the mode 'a' of one operand alone"):
        tilewright.contract("abk,kc->bc", a, values(4, 5)).sum().backward()


def test_gradients_can_be_differentiated_again() -> None:
    a, b, v = (values(*shape).requires_grad_() for shape in ((3, 4), (4, 5), (5,)))
    assert torch.autograd.gradgradcheck(lambda a, b: matmul(a, b) ** 2, (a, b))
    assert torch.autograd.gradgradcheck(lambda a, b: tilewright.contract("ij,jk->ki", a, b) ** 2, (a, b))
    assert torch.autograd.gradgradcheck(lambda a, b, v: matmul(a, b, epilogue="D = tanh(acc + row(v))", v=v), (a, b, v))


def test_half_precision_and_func() -> None:
    a, b = values(16, 32).to(torch.bfloat16).requires_grad_(), values(32, 24).to(torch.bfloat16).requires_grad_()
    matmul(a, b, epilogue=torch.relu).sum().backward()
    assert a.grad.dtype == torch.bfloat16 and b.grad.shape == b.shape
    x, w = values(3, 4), values(4, 5)
    torch.testing.assert_close(torch.func.grad(lambda x: matmul(x, w).sum())(x), torch.ones(3, 5).double() @ w.T)


def test_nothing_is_recorded_without_need() -> None:
    a, b = values(3, 4).requires_grad_(), values(4, 5)
    with torch.no_grad():
        assert not matmul(a, b).requires_grad
    assert not matmul(a.detach(), b).requires_grad
    with torch.inference_mode():
        assert not matmul(a, b, epilogue="relu").requires_grad


def test_no_gradient_is_lost_silently() -> None:
    a, b = values(3, 4).requires_grad_(), values(4, 5)
    ends = torch.tensor([1, 3], dtype=torch.int32)
    images, filters = torch.ones(1, 4, 8, 8, requires_grad=True), torch.ones(4, 4, 3, 3)
    cases: list[tuple[Callable[[], Any], str]] = [
        (lambda: matmul(a, b, out=torch.empty(3, 5).double()), r"a requires a gradient, which matmul\(out=\) does not"),
        (
            lambda: matmul(a, b, epilogue=tilewright.Epilogue("D = acc", compute="f64")),
            "an Epilogue object has no gradient",
        ),
        (lambda: tilewright.grouped_matmul(a, torch.ones(2, 4, 5).double(), offsets=ends), "grouped_mm"),
        (lambda: tilewright.conv2d(images, filters), r"tilewright.torch.conv2d\(\) computes gradients"),
        (lambda: tilewright.contract("ab,bc->ac", a, b, alpha=2.0), "contract.. with an epilogue, c, alpha or out"),
        (lambda: matmul([a, a], [b, b]), "a must be one tensor of PyTorch"),
    ]
    for call, message in cases:
        with pytest.raises(InvalidArgument, match=message):
            call()


def test_the_guides_program_runs(tmp_path: pathlib.Path) -> None:
    guide = (ROOT / "docs/python.md").read_text().partition("## Gradients")[2]
    program = re.search(r"^```python\n(.*?)^```", guide, re.MULTILINE | re.DOTALL)
    assert program is not None and "backward()" in program[1]
    (tmp_path / "guide.py").write_text(program[1])  # the tracer reads the source of functions from their file
    subprocess.run([sys.executable, "guide.py"], cwd=tmp_path, timeout=120, check=True)
