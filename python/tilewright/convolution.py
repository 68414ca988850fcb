"""tilewright.conv2d, conv2d_input and conv2d_weight."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Sequence
from typing import Any

from tilewright._tilewright import Conv2dArguments, Epilogue, run
from tilewright.call_arguments import (
    CallOptions,
    bound_epilogue,
    check_out_dtype,
    compute_type,
    no_array,
    out_type,
    tensors_of,
    type_of_result,
    with_packing_hint,
)
from tilewright.channels_last import Layout, as_nhwc, channels_last, check_layout, empty_images, in_layout
from tilewright.channels_last import is_channels_last
from tilewright import gradients
from tilewright.epilogue import EpilogueArguments
from tilewright.errors import InvalidArgument
from tilewright.results import as_framework_of, shaped

_Pair = tuple[int, int]
_MODES = {
    "nchw": ("(n, c, h, w)", "(k, c, r, s)", "(n, k, p, q)"),
    "nhwc": ("(n, h, w, c)", "(k, r, s, c)", "(n, p, q, k)"),
}


def conv2d(
    x: Any,
    w: Any,
    /,
    *,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] | str = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
    layout: Layout = "nchw",
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
    """Returns epilogue(x * w), the convolution of torch.nn.functional.conv2d, computed by the best-ranked kernel.

    x, w              arrays of the shapes (n, c, h, w) and (k, c / groups, r, s), of PyTorch, NumPy or CuPy; with
                      layout="nhwc" also of JAX
    layout            the order of the modes in the shapes of all arrays of rank 4. "nchw", as in PyTorch: tensors whose
                      strides are channels-last are used in place, and others that are read are copied to channels-last
                      memory first. "nhwc": (n, h, w, c), (k, r, s, c / groups) and (n, p, q, k); nothing is copied
    stride, dilation  an int, or a pair (height, width)
    padding           the same: zeros on each side of x; or "valid" (none), or "same" (the result has the extents of x)
    epilogue          as in matmul(): a function, a name, or a text: "D = relu(acc + row(bias) + residual)". Its arrays
                      have rank 4 and extents of 1 where they are broadcast, or are vectors with a number for each
                      channel. A traced function sees matrices with a row for each pixel and a column for each channel
    out               the array for the result, which is also returned. Its strides must be channels-last, as those of a
                      new array are
    c, alpha, beta, out_dtype, accumulator_type, math, stream, deterministic, batch_invariant, operands
                      as in matmul()

    On a GPU the work is enqueued. Host arrays are complete on return.
    Raises InvalidArgument with the number that is wrong.
    """
    bound = bound_epilogue(epilogue, operands, conv2d)
    names = {"x": "x", "w": "w", "y": "out"}
    problem = _Problem("fprop", layout, names, stride, padding, dilation, groups)
    shape_x, shape_w = problem.shape_of(x, "x"), problem.shape_of(w, "w")
    shape_y = problem.output_shape(shape_x, shape_w)
    if (graph := problem.graph(bound, shape_y, x)) is not None and graph.is_gated:
        shape_y = (*shape_y[:3], shape_y[3] // 2)
    return problem.run(
        {"x": x, "w": w, "y": out},
        shape_y,
        bound,
        graph,
        c,
        CallOptions(alpha, beta, out_dtype, accumulator_type, math, stream, deterministic, batch_invariant),
    )


def conv2d_input(
    input_size: Sequence[int],
    weight: Any,
    grad_output: Any,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] | str = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
    *,
    layout: Layout = "nchw",
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
    """Returns the gradient of conv2d() with respect to its input, as torch.nn.grad.conv2d_input does.

    `input_size` is the shape of the input, in the order of `layout`. The epilogue is applied to the gradient; its
    vectors have a number for each channel of the input. The other parameters are those of conv2d().
    """
    bound = bound_epilogue(epilogue, operands, conv2d_input)
    names = {"x": "out", "w": "weight", "y": "grad_output"}
    problem = _Problem("dgrad", layout, names, stride, padding, dilation, groups)
    shape_x = problem.extents(input_size, "input_size", "x")
    shape_w, shape_y = problem.shape_of(weight, "w"), problem.shape_of(grad_output, "y")
    problem.check_gradient(problem.output_shape(shape_x, shape_w, "input_size"), shape_y)
    graph = problem.graph(bound, shape_x, grad_output)
    return problem.run(
        {"x": out, "w": weight, "y": grad_output},
        shape_x,
        bound,
        graph,
        c,
        CallOptions(alpha, beta, out_dtype, accumulator_type, math, stream, deterministic, batch_invariant),
    )


def conv2d_weight(
    input: Any,
    weight_size: Sequence[int],
    grad_output: Any,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] | str = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
    *,
    layout: Layout = "nchw",
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
    """Returns the gradient of conv2d() with respect to its weight, as torch.nn.grad.conv2d_weight does.

    `weight_size` is the shape of the weight, in the order of `layout`. The epilogue is applied to the gradient, whose
    rows are the filters; its vectors, column(v), have a number for each filter. The other parameters are those of
    conv2d().
    """
    bound = bound_epilogue(epilogue, operands, conv2d_weight)
    names = {"x": "input", "w": "out", "y": "grad_output"}
    problem = _Problem("wgrad", layout, names, stride, padding, dilation, groups)
    shape_w = problem.extents(weight_size, "weight_size", "w")
    shape_x, shape_y = problem.shape_of(input, "x"), problem.shape_of(grad_output, "y")
    problem.check_gradient(problem.output_shape(shape_x, shape_w, w_name="weight_size"), shape_y)
    graph = problem.graph(bound, shape_w, grad_output)
    return problem.run(
        {"x": input, "w": out, "y": grad_output},
        shape_w,
        bound,
        graph,
        c,
        CallOptions(alpha, beta, out_dtype, accumulator_type, math, stream, deterministic, batch_invariant),
    )


class _Problem:
    """What a convolution and its gradients share. All shapes are in the order n, h, w, c; `names` has the caller's name
    of each tensor for messages."""

    def __init__(
        self,
        kind: str,
        layout: str,
        names: dict[str, str],
        stride: int | Sequence[int],
        padding: int | Sequence[int] | str,
        dilation: int | Sequence[int],
        groups: int,
    ) -> None:
        check_layout(layout)
        self.kind, self.layout, self.names = kind, layout, names
        self.stride, self.dilation = _pair(stride, "stride", 1), _pair(dilation, "dilation", 1)
        self.padding = padding if isinstance(padding, str) else _pair(padding, "padding", 0)
        self.groups = _integer(groups, "groups", 1)
        self.before = (0, 0)  # the padding above and to the left

    @property
    def written(self) -> str:
        return {"fprop": "y", "dgrad": "x", "wgrad": "w"}[self.kind]

    def shape_of(self, array: Any, role: str) -> tuple[int, ...]:
        array = shaped(array)
        if not hasattr(array, "shape"):
            raise InvalidArgument(no_array(self.names[role], array, instead="use Conv2dArguments"))
        return self.extents(array.shape, self.names[role], role)

    def extents(self, shape: Sequence[int], name: str, role: str) -> tuple[int, ...]:
        """The extents of a shape with the layout's order, by the name that the caller gave."""
        try:
            given = tuple(operator.index(extent) for extent in shape)
        except TypeError:
            raise InvalidArgument(f"{name} must be a shape of four integers, got {shape!r:.80}") from None
        if len(given) != 4:
            modes = _MODES[self.layout]["xwy".index(role)]
            raise InvalidArgument(f"{name} must have rank 4, {modes}, got shape {given}")
        if min(given) < 0:
            raise InvalidArgument(f"{name} has a negative extent: {given}")
        return as_nhwc(given, self.layout)

    def output_shape(
        self, x: tuple[int, ...], w: tuple[int, ...], x_name: str | None = None, w_name: str | None = None
    ) -> tuple[int, ...]:
        """The extents of y; sets the padding."""
        x_name, w_name = x_name or self.names["x"], w_name or self.names["w"]
        filters, *taps, channels = w
        for name, what, count in ((x_name, "channels", x[3]), (w_name, "filters", filters)):
            if count % self.groups != 0:
                raise InvalidArgument(f"{name} has {count} {what}, which is no multiple of groups={self.groups}")
        if channels != x[3] // self.groups:
            of_groups = "" if self.groups == 1 else f" in {self.groups} groups, {x[3] // self.groups} in each"
            raise InvalidArgument(f"{w_name} has {channels} channels, but {x_name} has {x[3]}{of_groups}")
        if min(taps) < 1:
            raise InvalidArgument(f"{w_name} must have at least one tap, got {taps[0]} x {taps[1]}")
        reach = [(count - 1) * step for count, step in zip(taps, self.dilation, strict=True)]
        self.before, after = self._padding(reach)
        image = x[1:3]
        positions = []
        for axis in (0, 1):
            room = image[axis] + self.before[axis] + after[axis] - reach[axis] - 1
            if room < 0:
                raise InvalidArgument(
                    f"the filter of {taps[0]} x {taps[1]} taps covers {reach[0] + 1} x {reach[1] + 1} pixels, but "
                    f"{x_name} has {image[0]} x {image[1]} with padding {self.before}"
                )
            positions.append(room // self.stride[axis] + 1)
        return (x[0], *positions, filters)

    def _padding(self, reach: Sequence[int]) -> tuple[_Pair, _Pair]:
        """The padding before and after the image."""
        if not isinstance(self.padding, str):
            return self.padding, self.padding
        if self.padding == "valid":
            return (0, 0), (0, 0)
        if self.padding != "same":
            raise InvalidArgument(f'padding must be an int, a pair, "valid" or "same", got {self.padding!r}')
        if self.stride != (1, 1):
            raise InvalidArgument(f'padding="same" needs a stride of 1, got {self.stride}')
        return (reach[0] // 2, reach[1] // 2), ((reach[0] + 1) // 2, (reach[1] + 1) // 2)

    def check_gradient(self, expected: tuple[int, ...], given: tuple[int, ...]) -> None:
        if expected != given:
            raise InvalidArgument(
                f"{self.names['y']} must have the shape {in_layout(expected, self.layout)} of the output, got "
                f"{in_layout(given, self.layout)}"
            )

    def graph(self, bound: Any, shape: tuple[int, ...], a: Any) -> Epilogue | None:
        """The epilogue of an output of these extents; None for a linear combination or a name."""
        if isinstance(bound, Epilogue):
            return bound
        if not isinstance(bound, EpilogueArguments):
            return None
        modes = "mnnn" if self.kind == "wgrad" else "mnmm" if self.layout == "nchw" else "mmmn"
        rows = 1 if self.kind == "wgrad" else 3
        m, n = 1, 1
        for mode, extent in enumerate(shape):
            m, n = (m * extent, n) if mode < rows else (m, n * extent)
        a = shaped(a)
        return bound._bind(None, m, n, compute_type(a), out_type(a), modes)[0]

    def run(
        self,
        tensors: dict[str, Any],
        shape: tuple[int, ...],
        bound: Any,
        graph: Epilogue | None,
        c: Any,
        options: CallOptions,
    ) -> Any:
        stream = options.stream
        caller = {"fprop": "conv2d", "dgrad": "conv2d_input", "wgrad": "conv2d_weight"}[self.kind]
        gradients.refuse(
            f"{caller}()",
            {
                **{self.names[role]: tensors[role] for role in "xwy" if role != self.written},
                "c": c,
                "an array of the epilogue": tensors_of(bound),
            },
            "; tilewright.torch.conv2d() computes gradients",
        )
        first = shaped(tensors["x" if self.kind == "fprop" else "y"])
        out = tensors[self.written]
        is_given = out is not None
        expected = in_layout(shape, self.layout)
        if is_given:
            self._check_out(out, expected)
            check_out_dtype(out, options.out_dtype)
        else:
            kind = type_of_result(options.out_dtype, first)
            out = empty_images(first, expected, kind, self.layout, stream)
        gathered = {"fprop": "x", "dgrad": "yw", "wgrad": "x"}[self.kind]
        ready = {
            role: out if role == self.written else self._ready(tensors[role], stream, is_packed=role not in gathered)
            for role in "xwy"
        }
        if isinstance(bound, EpilogueArguments) and graph is not None:
            bound = self._ready_operands(bound, graph, stream)
        try:
            arguments = Conv2dArguments(
                ready["x"],
                ready["w"],
                ready["y"],
                options.accumulator_type,
                bound,
                kind=self.kind,
                stride=self.stride,
                padding=self.before,
                dilation=self.dilation,
                groups=self.groups,
                layout=self.layout,
                C=None if c is None else self._ready(c, stream, is_packed=True),
                alpha=options.alpha,
                beta=options.beta_for(c),
                math=options.math,
            )
        except InvalidArgument as error:
            raise InvalidArgument(with_packing_hint(self._in_callers_words(str(error)), {}, bound)) from None
        run(arguments, stream, **options.promises())
        return out if is_given else as_framework_of(first, out)

    def _in_callers_words(self, message: str) -> str:
        """A message about the operands of a Conv2d, or of the GEMM that computes it, with the names of parameters."""
        message = re.sub(r" \(A is \w, B is \w and D is \w\)$", "", message)
        factors = {"fprop": ("x", "w"), "dgrad": ("y", "w"), "wgrad": ("y", "x")}[self.kind]
        names = {**self.names, "C": "c", "D": "out"}
        names |= {letter: self.names[factor] for letter, factor in zip("AB", factors, strict=True)}
        return re.sub(r"\b[xwyABCD]\b(?!=)", lambda found: names[found[0]], message)

    def _ready(self, array: Any, stream: Any, *, is_packed: bool) -> Any:
        return channels_last(array, self.layout, stream, is_packed=is_packed)

    def _ready_operands(self, bound: EpilogueArguments, graph: Epilogue, stream: Any) -> EpilogueArguments:
        """The epilogue with channels-last copies of the tensors that it reads and that have other strides."""
        ready = {
            name: value
            if name in graph.outputs or len(getattr(value, "shape", ())) != 4
            else self._ready(value, stream, is_packed=True)
            for name, value in bound.operands.items()
        }
        if all(ready[name] is value for name, value in bound.operands.items()):
            return bound
        return EpilogueArguments(bound.epilogue, **ready)

    def _check_out(self, out: Any, expected: tuple[int, ...]) -> None:
        given = shaped(out)
        if not hasattr(given, "shape"):
            raise InvalidArgument(f"out must be an array, got {out!r:.80}")
        if tuple(given.shape) != expected:
            raise InvalidArgument(f"out must have the shape {expected}, got {(*given.shape,)}")
        if not is_channels_last(given, self.layout, is_packed=False):
            what = (
                "its channels-last strides, as torch.empty(shape, memory_format=torch.channels_last) has, or as "
                "an NHWC array transposed to NCHW has"
            )
            raise InvalidArgument(f"out of shape {expected} must have {what}")


def _integer(value: Any, name: str, least: int) -> int:
    try:
        number = operator.index(value)
    except TypeError:
        raise InvalidArgument(f"{name} must be an int, got {value!r:.80}") from None
    if number < least:
        raise InvalidArgument(f"{name} must be at least {least}, got {number}")
    return number


def _pair(value: Any, name: str, least: int) -> _Pair:
    """One number for both axes, or (height, width)."""
    if isinstance(value, (tuple, list)):
        if len(value) == 1:
            value = value[0]
        elif len(value) == 2:
            return _integer(value[0], name, least), _integer(value[1], name, least)
        else:
            raise InvalidArgument(f"{name} must be an int or a pair (height, width), got {value!r:.80}")
    if not hasattr(value, "__index__"):
        raise InvalidArgument(f"{name} must be an int or a pair (height, width), got {value!r:.80}")
    number = _integer(value, name, least)
    return number, number
