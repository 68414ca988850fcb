"""matmul() takes what numpy.matmul takes: vectors, batches that broadcast, nested lists; and bool masks in epilogues."""

from __future__ import annotations

import sys
import types
from typing import Any

import numpy as np
import pytest

import tilewright
from tilewright import InvalidArgument

SHAPES = [
    ((5,), (5,)),
    ((4, 5), (5,)),
    ((5,), (5, 6)),
    ((3, 4, 5), (5,)),
    ((5,), (3, 5, 6)),
    ((1, 4, 5), (3, 5, 6)),
    ((3, 4, 5), (1, 5, 6)),
    ((2, 3, 4, 5), (5, 6)),
    ((2, 3, 4, 5), (3, 5, 6)),
    ((2, 1, 4, 5), (3, 5, 6)),
    ((4, 5), (2, 3, 5, 6)),
]


def integers(*shape: int, seed: int = 1) -> Any:
    return np.random.default_rng(seed).integers(-4, 5, shape).astype(np.float32)


@pytest.mark.parametrize(("of_a", "of_b"), SHAPES, ids=str)
def test_shapes_are_those_of_numpy(of_a: tuple[int, ...], of_b: tuple[int, ...]) -> None:
    a, b = integers(*of_a), integers(*of_b, seed=2)
    expected = np.matmul(a, b)
    found = tilewright.matmul(a, b)
    assert found.shape == expected.shape
    np.testing.assert_array_equal(found, expected)
    out = np.full(expected.shape, np.nan, np.float32)
    assert tilewright.matmul(a, b, out=out) is out
    np.testing.assert_array_equal(out, expected)


def test_epilogues_and_c_have_the_batches_of_the_result() -> None:
    a, b, bias, rest = integers(2, 3, 4, 5), integers(5, 6), integers(6), integers(2, 3, 4, 6)
    found = tilewright.matmul(
        a, b, epilogue=lambda acc, bias, rest: np.maximum(acc + bias + rest, 0), bias=bias, rest=rest
    )
    np.testing.assert_array_equal(found, np.maximum(a @ b + bias + rest, 0))
    np.testing.assert_array_equal(tilewright.matmul(a, b, c=rest), a @ b + rest)
    np.testing.assert_array_equal(tilewright.matmul(integers(5), b, c=bias), integers(5) @ b + bias)
    gated = tilewright.matmul(a, b, epilogue="D = reglu(acc)")
    np.testing.assert_array_equal(gated, np.maximum((a @ b)[..., ::2], 0) * (a @ b)[..., 1::2])


@pytest.mark.parametrize("batch", [(), (3,), (1, 1), (2, 3)], ids=str)
@pytest.mark.parametrize("epilogue", ["D = reglu(acc)", lambda acc: np.maximum(acc[..., ::2], 0) * acc[..., 1::2]])
def test_a_gated_result_may_be_given(batch: tuple[int, ...], epilogue: Any) -> None:
    a, b = integers(*batch, 4, 5), integers(*batch, 5, 6, seed=2)
    expected = np.maximum((a @ b)[..., ::2], 0) * (a @ b)[..., 1::2]
    out = np.full(expected.shape, np.nan, np.float32)
    assert tilewright.matmul(a, b, epilogue=epilogue, out=out) is out
    np.testing.assert_array_equal(out, expected)
    with pytest.raises(InvalidArgument, match=r"out must be \(.*4, ?3\),.* got \(.*4, ?6\)"):
        tilewright.matmul(a, b, epilogue=epilogue, out=np.empty((*batch, 4, 6), np.float32))


@pytest.mark.parametrize(
    ("of_a", "of_b", "of_x"),
    [
        ((2, 3, 4, 5), (5, 6), (3, 4, 6)),
        ((2, 3, 4, 5), (5, 6), (3, 1, 6)),
        ((2, 3, 4, 5), (5, 6), (1, 4, 1)),
        ((2, 3, 4, 5), (5, 6), (2, 1, 4, 6)),
        ((5,), (2, 3, 5, 6), (3, 6)),
        ((2, 3, 4, 5), (5,), (3, 4)),
        ((2, 3, 4, 5), (5,), (4,)),
    ],
    ids=str,
)
def test_arrays_of_an_epilogue_broadcast_along_the_batch(
    of_a: tuple[int, ...], of_b: tuple[int, ...], of_x: tuple[int, ...]
) -> None:
    a, b, x = integers(*of_a), integers(*of_b, seed=2), integers(*of_x, seed=3)
    np.testing.assert_array_equal(tilewright.matmul(a, b, epilogue=lambda acc, x: acc - x, x=x), a @ b - x)
    if 1 not in of_x[-2:] and x.ndim > 1:
        np.testing.assert_array_equal(tilewright.matmul(a, b, c=x), a @ b + x)


def test_batches_of_an_epilogue_that_do_not_broadcast_are_refused() -> None:
    a, b = integers(2, 3, 4, 5), integers(5, 6)
    with pytest.raises(InvalidArgument, match=r"x has the batch \(2,\), which does not broadcast to \(2, 3\)"):
        tilewright.matmul(a, b, epilogue=lambda acc, x: acc - x, x=integers(2, 1, 6))
    with pytest.raises(InvalidArgument, match=r"aux is written, so its batch must be \(2, 3\), got \(3,\)"):
        tilewright.matmul(a, b, epilogue="D = acc; aux = acc", aux=integers(3, 4, 6))


@pytest.mark.parametrize(("of_a", "of_b"), [((2, 3, 0, 5), (5, 6)), ((2, 3, 4, 5), (5, 0)), ((0, 3, 4, 5), (5, 6))])
def test_results_without_elements_have_the_shapes_of_numpy(of_a: tuple[int, ...], of_b: tuple[int, ...]) -> None:
    a, b = integers(*of_a), integers(*of_b)
    found = tilewright.matmul(a, b, epilogue="relu")
    assert found.shape == (a @ b).shape


@pytest.mark.parametrize("of_a", [(3, 4, 5), (3, 1, 5), (1, 4, 5), (2, 3, 4, 5), (1, 3, 4, 5), (1, 1, 4, 5)])
def test_results_of_reductions_have_the_shapes_of_numpy(of_a: tuple[int, ...]) -> None:
    def epilogue(acc: Any) -> Any:
        D = acc * 2
        rows, columns, all_ = D.sum(axis=-1), D.max(axis=-2), np.abs(D).max(axis=(-2, -1))
        return D, rows, columns, all_

    a, b = integers(*of_a), integers(5, 6, seed=2)
    for keeps in (False, True, False):
        rows, columns, all_ = (
            np.full(np.sum(a @ b, axis=axis, keepdims=keeps).shape, np.nan, np.float32) for axis in (-1, -2, (-2, -1))
        )
        found = tilewright.matmul(a, b, epilogue=epilogue, rows=rows, columns=columns, all_=all_)
        np.testing.assert_array_equal(found, a @ b * 2)
        np.testing.assert_array_equal(rows, found.sum(axis=-1, keepdims=keeps))
        np.testing.assert_array_equal(columns, found.max(axis=-2, keepdims=keeps))
        np.testing.assert_array_equal(all_, np.abs(found).max(axis=(-2, -1), keepdims=keeps))


def with_aux(acc: Any) -> Any:
    D, aux = acc * 1, acc
    return D, aux


@pytest.mark.parametrize("epilogue", ["aux = acc; D = acc", with_aux])
def test_outputs_of_several_batch_modes_are_written_or_refused(epilogue: Any) -> None:
    a, b = integers(2, 3, 4, 5), integers(5, 6)
    aux = np.zeros((2, 3, 4, 8), np.float32)[..., :6]
    tilewright.matmul(a, b, epilogue=epilogue, aux=aux)
    np.testing.assert_array_equal(aux, a @ b)
    with pytest.raises(InvalidArgument, match=r"aux of shape \(2, 3, 4, 6\) must be contiguous, got strides"):
        tilewright.matmul(a, b, epilogue=epilogue, aux=np.zeros((2, 5, 4, 6), np.float32)[:, :3])


@pytest.mark.parametrize("of_b", [(2, 3, 5, 6), (5, 6), (2, 1, 5, 6)], ids=str)
def test_out_may_have_the_heads_between_rows_and_columns(of_b: tuple[int, ...]) -> None:
    a, b, c, bias = integers(2, 3, 4, 5), integers(*of_b, seed=2), integers(2, 1, 4, 6, seed=3), integers(6, seed=4)
    around = np.full((2, 4, 4, 6), 7, np.float32)  # (batch, rows, heads, columns), of which one head is not written
    out = around[:, :, :3].transpose(0, 2, 1, 3)
    assert tilewright.matmul(a, b, out=out) is out
    np.testing.assert_array_equal(out, a @ b)
    tilewright.matmul(a, b, c=c, alpha=2.0, out=out)
    np.testing.assert_array_equal(out, 2 * (a @ b) + c)
    total = np.empty((2, 3, 6), np.float32)
    text = "D = relu(acc + row(bias)); row(total) = sum(acc)"
    for epilogue in (text, "relu"):
        given = {"bias": bias, "total": total} if epilogue == text else {}
        tilewright.matmul(a, b, epilogue=epilogue, out=out, **given)
        np.testing.assert_array_equal(out, np.maximum(a @ b + (bias if given else 0), 0))
    np.testing.assert_array_equal(total, (a @ b).sum(axis=-2))
    tilewright.matmul(a, b, epilogue=lambda acc, x: acc - x, x=c, out=out)
    np.testing.assert_array_equal(out, a @ b - c)
    for shape in [(3, 1, 6), (2, 1, 1, 6), (3, 4, 1), (2, 1, 4, 1), (1, 3, 1, 1), (1, 1, 1, 6)]:
        x = integers(*shape, seed=5)
        tilewright.matmul(a, b, epilogue=lambda acc, x: acc + x, x=x, out=out)
        np.testing.assert_array_equal(out, a @ b + x, err_msg=str(shape))
    assert (around[:, :, 3] == 7).all()
    with pytest.raises(InvalidArgument, match=r"c has the batch \(4,\), which does not broadcast to \(2, 3\)"):
        tilewright.matmul(a, b, c=integers(4, 4, 6), out=out)


def test_lists_of_numbers_are_arrays() -> None:
    found = tilewright.matmul([[1, 2], [3, 4]], ((1.5, 0), (0, 1)))
    assert found.dtype == np.float64
    np.testing.assert_array_equal(found, [[1.5, 2], [4.5, 4]])
    assert tilewright.matmul([1, 2], [3, 4]) == 11
    with pytest.raises(InvalidArgument, match="a is a list of numbers whose rows differ in length"):
        tilewright.matmul([[1, 2], [3]], [[1], [2]])


def test_bool_masks() -> None:
    a, b, mask = integers(4, 5), integers(5, 6), integers(4, 6) > 0
    found = tilewright.matmul(a, b, epilogue=lambda acc, mask: np.where(mask, acc, -1), mask=mask)
    np.testing.assert_array_equal(found, np.where(mask, a @ b, -1))
    found = tilewright.matmul(a, b, epilogue="D = where(row(mask), acc, 0)", mask=mask[0])
    np.testing.assert_array_equal(found, np.where(mask[0], a @ b, 0))


def test_out_of_a_wrong_shape_or_with_gaps_is_refused() -> None:
    with pytest.raises(InvalidArgument, match=r"out must be \(6,\), got \(1, 6\)"):
        tilewright.matmul(integers(5), integers(5, 6), out=np.empty((1, 6), np.float32))
    with pytest.raises(InvalidArgument, match=r"must be contiguous, got strides \(12, 24, 3, 1\)"):
        half = np.empty((3, 2, 4, 3), np.float32).swapaxes(0, 1)
        tilewright.matmul(integers(2, 3, 4, 5), integers(5, 6), epilogue="D = reglu(acc)", out=half)
    with pytest.raises(InvalidArgument, match=r"batches of a and b do not broadcast: \(2,\) and \(3, 3\)"):
        tilewright.matmul(integers(2, 4, 5), integers(3, 3, 5, 6))


def test_a_pytorch_that_is_too_old_computes_no_gradients(monkeypatch: pytest.MonkeyPatch) -> None:
    class Tensor(np.ndarray):
        requires_grad = True

    old: Any = types.ModuleType("torch")  # has neither torch.compiler nor torch.library.register_autograd
    old.Tensor, old.__version__, old.is_grad_enabled = Tensor, "1.13.1", lambda: True
    monkeypatch.setitem(sys.modules, "torch", old)
    a = np.ones((3, 3), np.float32)
    assert (tilewright.matmul(a, a) == 3).all()
    with pytest.raises(tilewright.Unsupported, match="gradients need .* from 2.4 on; this is 1.13.1"):
        tilewright.matmul(a.view(Tensor), a)


def test_arrays_of_an_epilogue_may_have_the_names_of_the_operands() -> None:
    random = np.random.default_rng(4)
    a, b = (random.integers(-3, 4, shape).astype(np.float32) for shape in ((6, 8), (8, 5)))
    v = np.arange(5, dtype=np.float32)
    expected = a @ b + v * v
    np.testing.assert_array_equal(tilewright.matmul(a, b, epilogue="D = acc + row(a) * row(b)", a=v, b=v), expected)
    np.testing.assert_array_equal(tilewright.matmul(a, b, epilogue=lambda acc, a, b: acc + a * b, a=v, b=v), expected)
    epilogue = "D = acc + row(expression) * row(a)"
    np.testing.assert_array_equal(tilewright.contract("mk,kn->mn", a, b, epilogue=epilogue, expression=v, a=v), expected)
    grouped = tilewright.grouped_matmul(a, b[None], offsets=np.array([6], np.int32), epilogue="D = acc + row(a)", a=v)
    np.testing.assert_array_equal(grouped, a @ b + v)
    x, w = a.reshape(1, 8, 6, 1), b.T.reshape(5, 8, 1, 1).copy()
    y = tilewright.conv2d(x, w, epilogue="D = acc + row(x)", x=v)
    np.testing.assert_array_equal(y, np.einsum("nchw,kc->nkhw", x, w[:, :, 0, 0]) + v[:, None, None])
    batches = np.stack([a, a])[:, None]
    named = tilewright.EpilogueArguments(lambda acc, c, out: acc + c * out, c=v, out=v)
    np.testing.assert_array_equal(tilewright.matmul(batches, b, epilogue=named), batches @ b + v * v)
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'b'"):
        tilewright.matmul(a, b=b)


class OnlyDlpack:
    """An array without any attribute but those of DLPack."""

    def __init__(self, array: Any) -> None:
        self._array = array

    def __dlpack__(self, **options: Any) -> Any:
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self._array.__dlpack_device__()


class OnlyCapsule:
    """An array without any attribute but __dlpack__."""

    def __init__(self, array: Any) -> None:
        self._array = array

    def __dlpack__(self, **options: Any) -> Any:
        return self._array.__dlpack__(**options)


class OnlyInterface:
    """An array without any attribute but __array_interface__."""

    def __init__(self, array: Any) -> None:
        self.__array_interface__ = array.__array_interface__
        self._array = array


@pytest.mark.parametrize("kind", [OnlyDlpack, OnlyInterface, OnlyCapsule])
def test_arrays_need_no_attributes_but_those_of_an_interface(kind: Any) -> None:
    a, b = integers(4, 5), integers(5, 6)
    for product in (tilewright.matmul, lambda x, y: tilewright.contract("mk,kn->mn", x, y)):
        for x, y in ((kind(a), b), (a, kind(b)), (kind(a), kind(b))):
            made = product(x, y)
            assert isinstance(made, np.ndarray) and (made == a @ b).all()
    ends = np.array([4], np.int32)
    assert (tilewright.grouped_matmul(kind(a), b[None], offsets=ends) == a @ b).all()
    x, w = integers(1, 5, 2, 2), integers(6, 5, 1, 1)
    if kind is not OnlyCapsule:  # of which NumPy makes no view
        assert (tilewright.matmul(kind(a[0]), b) == a[0] @ b).all()
        assert (tilewright.matmul(kind(integers(2, 3, 4, 5)), b) == integers(2, 3, 4, 5) @ b).all()
        assert (tilewright.conv2d(kind(x), kind(w)) == np.einsum("nchw,kc->nkhw", x, w[:, :, 0, 0])).all()
        assert (tilewright.grouped_matmul(kind(a), b[None], offsets=[4]) == a @ b).all()
