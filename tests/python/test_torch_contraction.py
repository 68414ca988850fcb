"""Contractions and einsums of PyTorch tensors, if it is installed: on the host with the emulator, and on a GPU."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import tilewright  # noqa: E402
import tilewright.torch  # noqa: E402

needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")

EINSUMS = [
    ("ab,bc->ac", (5, 6), (6, 7)),
    ("ab,bc", (5, 6), (6, 7)),
    ("bqhd,bkhd->bhqk", (2, 3, 2, 8), (2, 4, 2, 8)),
    ("abk,c->ac", (2, 3, 4), (5,)),  # b and k are only in the first operand
    ("ab,ba->", (5, 6), (6, 5)),
    ("a,b->ab", (3,), (4,)),
    ("...ij,...jk->...ik", (2, 1, 3, 4), (5, 4, 2)),  # the ellipsis is broadcast
    ("...ij,jk", (2, 3, 4), (4, 2)),
    ("iij,jk->ik", (3, 3, 4), (4, 2)),  # a diagonal
    ("ab,bc->ac", (5, 1), (6, 7)),  # an extent of 1
    ("ab,bc,cd->ad", (4, 5), (5, 6), (6, 3)),
    ("abc,bd,ce,a->de", (2, 3, 4), (3, 2), (4, 5), (2,)),
    ("abk,kcd->acbd", (2, 3, 4), (4, 5, 2)),  # the modes of the operands alternate
]


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=needs_gpu)])
def device(request: pytest.FixtureRequest) -> Iterator[str]:
    torch.manual_seed(1)
    yield request.param


def integers(shape: tuple[int, ...], device: str, dtype: Any = torch.float32) -> Any:
    return torch.randint(-3, 4, shape, device=device).to(dtype)


@pytest.mark.parametrize("case", EINSUMS, ids=lambda case: case[0])
def test_einsum_is_that_of_torch_with_gradients(case: Any, device: str) -> None:
    equation, *shapes = case
    leaves = [integers(shape, device) for shape in shapes]
    ours = [each.clone().requires_grad_() for each in leaves]
    theirs = [each.double().requires_grad_() for each in leaves]
    got, expected = tilewright.torch.einsum(equation, *ours), torch.einsum(equation, *theirs)
    assert got.shape == expected.shape and torch.equal(got.double(), expected)
    gradient = integers(tuple(expected.shape), device)
    got.backward(gradient)
    expected.backward(gradient.double())
    for one, other in zip(ours, theirs, strict=True):
        assert torch.equal(one.grad.double(), other.grad)


def test_operands_may_have_any_strides(device: str) -> None:
    a, b = integers((4, 6, 10), device)[:, :, ::2].permute(2, 0, 1), integers((6, 1), device).expand(6, 3)
    assert torch.equal(tilewright.torch.einsum("abc,cd->dab", a, b), torch.einsum("abc,cd->dab", a, b))
    assert torch.equal(tilewright.torch.einsum("abc,cd->dab", [a, b]), torch.einsum("abc,cd->dab", a, b))
    assert torch.equal(tilewright.torch.einsum("abc->ca", a), a.sum(1).T)


def test_gradients_have_gradients(device: str) -> None:
    leaves = [
        torch.randn(shape, device=device, dtype=torch.float64, requires_grad=True) for shape in ((2, 3, 2), (2, 3))
    ]
    assert torch.autograd.gradgradcheck(lambda a, b: torch.ops.tilewright.contract("abk,kc->cb", a, b), leaves)


def test_the_operator_is_one_node_of_a_graph(device: str) -> None:
    a, b = integers((2, 3, 4), device).requires_grad_(), integers((4, 5), device).requires_grad_()
    torch.library.opcheck(torch.ops.tilewright.contract.default, ("abk,kc->acb", a, b))


def test_mistakes_are_refused(device: str) -> None:
    a, b = integers((2, 3), device), integers((4, 5), device)
    for equation, message in (
        ("ab,bc->ac", "mode 'b' has extent 3 in a, but 4 in b"),
        ("ab,cd->ae", "the result has the mode 'e', but no operand has it"),
        ("ab,cd->aa", "the result has the mode 'a' twice"),
        ("ab->ab", "'ab->ab' has 1 operands, got 2 tensors"),
        ("abc,cd->ad", "operand 0 has 3 modes 'abc', but its shape is"),
        ("a1,cd->ad", "a mode must be a letter, got '1'"),
        ("aa,cd->ad", "mode 'a' has extents 2 and 3 in one operand"),
    ):
        with pytest.raises(tilewright.InvalidArgument, match=message):
            tilewright.torch.einsum(equation, a, b)
