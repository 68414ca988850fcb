"""tilewright.grouped_matmul."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tilewright._tilewright import DType, Epilogue, GroupedGemmArguments, PointerArray, run
from tilewright import gradients
from tilewright.call_arguments import (
    CallOptions,
    bound_epilogue,
    check_out_dtype,
    compute_type,
    first_of,
    in_callers_words,
    no_array,
    out_type,
    type_of_result,
    with_packing_hint,
)
from tilewright.epilogue import EpilogueArguments
from tilewright.errors import InvalidArgument
from tilewright.product import matmul
from tilewright.results import as_framework_of, empty_like, is_on_host, shaped


def grouped_matmul(
    a: Any,
    b: Any,
    /,
    *,
    offsets: Any = None,
    counts: Any = None,
    expected_sizes: int | Sequence[int] | None = None,
    epilogue: Callable[..., object] | str | Epilogue | EpilogueArguments | None = None,
    c: Any = None,
    alpha: float = 1.0,
    beta: float | None = None,
    out: Any = None,
    out_dtype: Any = None,
    accumulator_type: Any = None,
    math: str | None = None,
    stream: Any = None,
    deterministic: bool | None = None,
    batch_invariant: bool | None = None,
    **operands: Any,
) -> Any:
    """Returns epilogue(a @ b) for groups of different sizes, which are computed in one launch.

    The ranks of `a` and `b` say along which extent the groups are stacked, as in torch._grouped_mm:

    a           b           result      group g has
    (t, k)      (g, k, n)   (t, n)      the rows of a and of the result from offsets[g-1] to offsets[g]
    (g, m, k)   (k, t)      (m, t)      the columns of b and of the result from offsets[g-1] to offsets[g]
    (m, t)      (t, n)      (g, m, n)   the columns of a and the rows of b from offsets[g-1] to offsets[g]
    (g, m, k)   (g, k, n)   (g, m, n)   the first counts[g] rows of a[g] and of the result[g]; all, as in matmul(), if
                                        neither offsets nor counts are given

    list        list        list        matrices of any shapes: a[i] @ b[i] in result[i], which are lists, too

    offsets         int32 array with the end of each group; group 0 begins at 0, and groups may be empty. It is where
                    `a` is: on a GPU the host does not read it, so that a captured graph can be replayed with other sizes.
                    If `a` is in host memory, a list of integers or an array of other integers is converted
    counts          the number of rows that each group uses; an array or a list as for offsets
    expected_sizes  the mean size of a group, or the size of each, as far as the host can tell: kernels that are fast for
                    such sizes rank first. Results are right for all sizes. By default stacked groups are taken to have
                    the mean size, and padded ones to be full
    epilogue        as in matmul(). Operands of it with a stacked mode are stacked as the result is; of the others there
                    is one for all groups, or one for each: for example a bias of shape (n,) or (g, n), a scale of shape
                    (1,) or (g,). A traced Python function sees a batch: (g, 1, n) and (g, 1, 1)
    out, out_dtype, c, alpha, beta, accumulator_type, math, stream, deterministic, batch_invariant, operands
                    as in matmul()

    Elements of the result that belong to no group are not written: those behind offsets[-1], or behind counts[g].
    Raises InvalidArgument with the number that is wrong. On a GPU, offsets and counts are clamped to the arrays.
    """
    is_list = isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)) and offsets is None and counts is None
    bound = bound_epilogue(epilogue, operands, grouped_matmul)
    options = CallOptions(alpha, beta, out_dtype, accumulator_type, math, stream, deterministic, batch_invariant)
    ranks = _rank_of(a, "a"), _rank_of(b, "b")
    if offsets is None and counts is None and not is_list:
        if ranks != (3, 3):
            raise InvalidArgument(f"a and b of ranks {ranks[0]} and {ranks[1]} need offsets, the end of each group")
        return matmul(a, b, epilogue=epilogue, c=c, out=out, **options._asdict(), **operands)
    gradients.refuse(
        "grouped_matmul()", {"a": a, "b": b, "c": c, **operands}, "; tilewright.torch.grouped_mm() and masked_mm() compute gradients"
    )
    if counts is not None and offsets is None and ranks != (3, 3):
        raise InvalidArgument(f"counts are for batches of rank 3, got a and b of ranks {ranks[0]} and {ranks[1]}")
    offsets, counts = _converted_on_host(offsets, "offsets", a), _converted_on_host(counts, "counts", a)
    is_given = out is not None
    check_out_dtype(out, out_dtype)
    like: Any = None
    if not is_given:
        like = shaped(first_of(a, "a"))
        kind = type_of_result(out_dtype, like)
        if is_list:
            out = _outs_of_lists(a, b, kind, stream)
        else:
            groups = _groups_of(offsets if offsets is not None else counts)
            shape = _shape_of_out(like, shaped(first_of(b, "b")), ranks, groups, bound)
            out = empty_like(like, shape, kind, stream)
    try:
        arguments = GroupedGemmArguments(
            a,
            b,
            out,
            accumulator_type,
            bound,
            offsets=offsets,
            counts=counts,
            expected_sizes=expected_sizes,
            C=c,
            alpha=alpha,
            beta=options.beta_for(c),
            math=math,
        )
    except InvalidArgument as error:
        arrays = {"a": a, "b": b, "c": c, "out": out}
        raise InvalidArgument(with_packing_hint(in_callers_words(str(error)), arrays, bound)) from None
    arguments._check_ends()
    run(arguments, stream, **options.promises())
    if is_given:
        return out
    return [as_framework_of(like, each) for each in out] if is_list else as_framework_of(like, out)


def _converted_on_host(ends: Any, name: str, a: Any) -> Any:
    """The ends as an array of int32, if they are a list of integers, or integers of another type in host memory, and `a`
    is in host memory too; other ends as they are."""
    is_list = isinstance(ends, (list, tuple))
    if ends is None or not is_on_host(first_of(a, "a")) or not (is_list or is_on_host(ends)):
        return ends
    import numpy

    if is_list and not all(isinstance(each, (int, numpy.integer)) and not isinstance(each, bool) for each in ends):
        return ends
    integers = numpy.asarray([*map(int, ends)] or numpy.empty(0, numpy.int32)) if is_list else numpy.asarray(ends)
    is_integer = numpy.issubdtype(integers.dtype, numpy.integer)
    if not is_integer or (integers.dtype == numpy.int32 and not is_list):
        return ends
    limits = numpy.iinfo(numpy.int32)
    outside = integers[(integers < limits.min) | (integers > limits.max)]
    if outside.size:
        raise InvalidArgument(f"{name} must be integers of 32 bits, got {outside.flat[0]}")
    return integers.astype(numpy.int32)


def _outs_of_lists(a: Any, b: Any, kind: DType, stream: Any) -> list[Any]:
    """An array for the product of each pair of matrices."""
    if len(a) != len(b):
        raise InvalidArgument(f"a is a list of {len(a)} matrices, but b is one of {len(b)}")
    outs = []
    for x, y in zip(map(shaped, a), map(shaped, b), strict=True):
        if len(x.shape) != 2 or len(y.shape) != 2:
            raise InvalidArgument(f"lists must have matrices, got shapes {(*x.shape,)} and {(*y.shape,)}")
        outs.append(empty_like(x, (int(x.shape[0]), int(y.shape[1])), kind, stream))
    return outs


def _rank_of(operand: Any, name: str) -> int:
    """The rank of an array, or of the batch that a list of arrays or a PointerArray stands for."""
    if isinstance(operand, PointerArray):
        return 3
    first = shaped(first_of(operand, name))
    if not hasattr(first, "shape"):
        raise InvalidArgument(no_array(name, first, instead="use GroupedGemmArguments"))
    rank = len(first.shape) + isinstance(operand, (list, tuple))
    if rank not in (2, 3):
        raise InvalidArgument(f"{name} must have rank 2 or 3, got shape {(*first.shape,)}")
    return rank


def _groups_of(ends: Any) -> int:
    """The number of groups; 0 for an object that GroupedGemmArguments refuses."""
    shape: tuple[int, ...] = tuple(getattr(shaped(ends), "shape", ()))
    return int(shape[0]) if len(shape) == 1 else 0


def _shape_of_out(a: Any, b: Any, ranks: tuple[int, int], groups: int, bound: Any) -> tuple[int, ...]:
    m, n = int(a.shape[-2]), int(b.shape[-1])
    graph = bound if isinstance(bound, Epilogue) else None
    if isinstance(bound, EpilogueArguments):
        graph = bound._bind(groups, m, n, compute_type(a), out_type(a))[0]
    columns = n // 2 if graph is not None and graph.is_gated else n
    is_stacked = ranks in ((2, 3), (3, 2))
    return (m, columns) if is_stacked else (groups, m, columns)
