"""Convolutions of PyTorch tensors, if it is installed: on the host with the emulator, and on a GPU."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import torch.nn.functional as F  # noqa: E402

import tilewright  # noqa: E402
import tilewright.torch  # noqa: E402

needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
PROBLEMS = {
    "3x3": ((2, 16, 6, 7), (24, 16, 3, 3), {"padding": 1}),
    "strided": ((2, 8, 9, 8), (16, 8, 3, 3), {"stride": 2, "padding": (1, 0)}),
    "dilated": ((1, 8, 9, 9), (8, 8, 3, 2), {"padding": (2, 1), "dilation": (2, 3)}),
    "groups": ((1, 16, 6, 6), (24, 4, 3, 3), {"padding": 1, "groups": 4}),
    "1x1": ((2, 16, 5, 4), (8, 16, 1, 1), {}),
}
FORMATS = {"channels_last": torch.channels_last, "contiguous": torch.contiguous_format}


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=needs_gpu)])
def device(request: pytest.FixtureRequest) -> Iterator[str]:
    torch.manual_seed(1)
    yield request.param


def integers(*shape: int, device: str, dtype: Any = torch.float16, memory_format: Any = torch.channels_last) -> Any:
    made = torch.randint(-3, 4, shape, device=device).to(dtype)
    return made.contiguous(memory_format=memory_format) if len(shape) == 4 else made


def is_channels_last(tensor: Any) -> bool:
    return bool(tensor.is_contiguous(memory_format=torch.channels_last))


@pytest.mark.parametrize("memory_format", FORMATS.values(), ids=FORMATS)
@pytest.mark.parametrize(("x", "w", "numbers"), PROBLEMS.values(), ids=PROBLEMS)
def test_all_passes(device: str, x: Any, w: Any, numbers: dict[str, Any], memory_format: Any) -> None:
    images = integers(*x, device=device, memory_format=memory_format)
    weight = integers(*w, device=device, memory_format=memory_format)
    expected = F.conv2d(images.double(), weight.double(), **numbers)
    got = tilewright.conv2d(images, weight, **numbers)
    assert torch.equal(got, expected.half()) and is_channels_last(got)
    gradient = integers(*expected.shape, device=device, memory_format=memory_format)
    got = tilewright.conv2d_input(x, weight, gradient, **numbers)
    assert torch.equal(got, torch.nn.grad.conv2d_input(x, weight.double(), gradient.double(), **numbers).half())
    got = tilewright.conv2d_weight(images, w, gradient, **numbers)
    assert torch.equal(got, torch.nn.grad.conv2d_weight(images.double(), w, gradient.double(), **numbers).half())


def test_channels_last_tensors_are_used_in_place(device: str) -> None:
    from tilewright.channels_last import channels_last

    images = integers(2, 16, 6, 7, device=device)
    assert channels_last(images, "nchw", None, is_packed=True) is images
    copy = channels_last(images.contiguous(), "nchw", None, is_packed=True)
    assert is_channels_last(copy) and torch.equal(copy, images)
    with pytest.raises(tilewright.InvalidArgument, match="out of shape .* must have its channels-last strides"):
        tilewright.conv2d(images, integers(8, 16, 1, 1, device=device), out=torch.empty(2, 8, 6, 7, device=device))


def test_the_operator_is_conv2d_with_gradients(device: str) -> None:
    for x, w, numbers in PROBLEMS.values():
        leaves = [integers(*shape, device=device, dtype=torch.float32) for shape in (x, w, w[:1])]
        ours, theirs = ([each.clone().requires_grad_() for each in leaves] for _ in range(2))
        got = tilewright.torch.conv2d(*ours, **numbers)
        expected = F.conv2d(*(each.double() for each in theirs), **numbers)
        assert torch.equal(got.double(), expected)
        gradient = integers(*expected.shape, device=device, dtype=torch.float32)
        got.backward(gradient)
        expected.backward(gradient.double())
        for one, other in zip(ours, theirs, strict=True):
            assert torch.equal(one.grad, other.grad)


def test_residual_and_relu_are_fused(device: str) -> None:
    shapes = ((2, 16, 6, 7), (24, 16, 3, 3), (24,), (2, 24, 6, 7))
    leaves = [integers(*shape, device=device, dtype=torch.float32) for shape in shapes]
    ours, theirs = ([each.clone().requires_grad_() for each in leaves] for _ in range(2))
    got = tilewright.torch.conv2d(*ours[:3], padding=1, residual=ours[3], activation="relu")
    expected = (F.conv2d(*theirs[:3], padding=1) + theirs[3]).relu()
    assert torch.equal(got, expected)
    gradient = integers(*expected.shape, device=device, dtype=torch.float32)
    got.backward(gradient)
    expected.backward(gradient)
    for one, other in zip(ours, theirs, strict=True):
        assert torch.equal(one.grad, other.grad)
    with pytest.raises(tilewright.InvalidArgument, match='activation must be "none" or "relu", got \'gelu\''):
        tilewright.torch.conv2d(*ours[:3], activation="gelu")


def test_other_arguments_of_torch(device: str) -> None:
    images, weight = integers(16, 6, 7, device=device), integers(8, 16, 3, 4, device=device)
    for padding in ("same", "valid"):
        got = tilewright.torch.conv2d(images, weight, padding=padding, dilation=(2, 1))
        expected = F.conv2d(images.double(), weight.double(), padding=padding, dilation=(2, 1))
        assert torch.equal(got, expected.half())
    assert torch.equal(
        tilewright.torch.conv2d(images, weight, None, (2,)), F.conv2d(images.double(), weight.double(), stride=2).half()
    )
    with pytest.raises(tilewright.InvalidArgument, match="input and weight must have rank 4"):
        torch.ops.tilewright.conv2d(images.to("meta"), weight.to("meta"))


def test_operators_pass_torchs_own_checks(device: str) -> None:
    def leaf(*shape: int) -> Any:
        return torch.randn(shape, device=device, dtype=torch.float64, requires_grad=True)

    x, w, bias, y = leaf(1, 4, 5, 4), leaf(6, 2, 3, 2), leaf(6), leaf(1, 6, 3, 3)
    numbers = ([2, 1], [1, 0], [1, 1], 2)
    operators = torch.ops.tilewright
    torch.library.opcheck(operators.conv2d.default, (x, w, bias, *numbers, y, "relu"))
    torch.library.opcheck(operators.conv2d_input.default, (x.shape, w, y, *numbers))
    torch.library.opcheck(operators.conv2d_weight.default, (x, w.shape, y, *numbers))
    assert torch.autograd.gradcheck(operators.conv2d, (x, w, bias, *numbers, y), fast_mode=True)
    assert torch.autograd.gradgradcheck(operators.conv2d, (x, w, bias, *numbers), fast_mode=True)
    assert torch.autograd.gradcheck(operators.conv2d, (x[:, :1], w[:, :1]), fast_mode=True)  # all others are omitted


@pytest.mark.parametrize("dynamic", [False, True])
def test_a_block_compiles_as_one_graph(device: str, dynamic: bool) -> None:
    def block(x: Any, w: Any, bias: Any) -> Any:
        hidden = tilewright.torch.conv2d(x, w, bias, padding=1, activation="relu")
        return tilewright.torch.conv2d(hidden, w, bias, padding=1, residual=x, activation="relu")

    backend = "aot_eager" if device == "cpu" else "inductor"  # the first needs no compiler of C++
    compiled = torch.compile(block, fullgraph=True, dynamic=dynamic, backend=backend)
    for images in (1, 2):
        shapes = (images, 8, 5, 5), (8, 8, 3, 3), (8,)
        operands = [integers(*shape, device=device, dtype=torch.float32).requires_grad_() for shape in shapes]
        got, expected = compiled(*operands), block(*operands)
        assert torch.equal(got, expected)
        weight = integers(*got.shape, device=device, dtype=got.dtype)
        gradients = (torch.autograd.grad(each, operands, weight) for each in (got, expected))
        for one, other in zip(*gradients, strict=True):
            assert torch.equal(one, other)


@needs_gpu
def test_copies_are_made_on_the_given_stream() -> None:
    images, weight = integers(8, 64, 28, 28, device="cuda"), integers(64, 64, 3, 3, device="cuda")
    expected = F.conv2d(images.double(), weight.double(), padding=1).half()
    contiguous = images.contiguous()
    torch.cuda.synchronize()
    stream = torch.cuda.Stream()
    got = tilewright.conv2d(contiguous, weight, padding=1, stream=stream)
    stream.synchronize()
    assert torch.equal(got, expected)
