"""Problem sizes and enumerations of convolutions."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

from tilewright.errors import InvalidArgument
from tilewright.missing_name import refuse_unknown

from ..enumeration import Enumeration
from ..kinds import StrideSupport as StrideSupport
from .coordinates import MatrixCoord, Tensor4DCoord
from .gemm import GemmCoord


class Operator(Enumeration):
    """Which of the three tensors is computed."""

    fprop = 0
    dgrad = 1
    wgrad = 2


class IteratorAlgorithm(Enumeration):
    """CUTLASS's algorithms that compute the addresses of activations. All have the same kernels here, and differ in the
    problems that they accept: see Conv2dArguments."""

    analytic = 0
    optimized = 1
    fixed_channels = 2
    few_channels = 3


class SplitKMode(Enumeration):
    """How the partial sums of split-K are reduced."""

    None_ = 0
    Serial = 1
    Parallel = 2


class Mode(Enumeration):
    """Whether filters are mirrored."""

    cross_correlation = 0
    convolution = 1


_EXTENTS = ("N", "H", "W", "C", "P", "Q", "K", "R", "S")
_ALL = (
    "N",
    "H",
    "W",
    "C",
    "K",
    "R",
    "S",
    "P",
    "Q",
    "pad_h",
    "pad_w",
    "stride_h",
    "stride_w",
    "dilation_h",
    "dilation_w",
)


class Conv2dProblemSize:
    """The extents of a convolution. It is made of

    - input_size (N, H, W, C), filter_size (K, R, S, C / groups), padding (pad_h, pad_h, pad_w, pad_w), or 0 in place of
      the second and fourth number, each a Tensor4DCoord, stride and dilation, each a MatrixCoord, mode, split_k_slices
      and groups. P and Q follow as in CUTLASS, which subtracts R * dilation_h, so that they are smaller than those of
      PyTorch if the dilation is not 1; or
    - N, H, W, C, P, Q, K, R, S and mode, with padding (R // 2, S // 2), strides and dilations of 1; or
    - N, H, W, C, K, R, S, P, Q, pad_h, pad_w, stride_h, stride_w, dilation_h, dilation_w and mode, with split_k_slices
      and groups.

    Raises InvalidArgument with the number that is wrong.
    """

    N: int
    H: int
    W: int
    C: int
    P: int
    Q: int
    K: int
    R: int
    S: int
    pad_h: int
    pad_w: int
    stride_h: int
    stride_w: int
    dilation_h: int
    dilation_w: int

    def __init__(self, *values: Any, split_k_slices: int = 1, groups: int = 1) -> None:
        *sizes, last = values if values else (None,)
        rest = [split_k_slices, groups]
        if Mode in map(type, sizes):  # the slices and the groups are given, too
            at = [*map(type, sizes)].index(Mode)
            rest = [*sizes[at + 1 :], last, groups][:2]
            sizes, last = sizes[:at], sizes[at]
        if not isinstance(last, Mode):
            raise InvalidArgument(f"mode must be a cutlass.conv.Mode, got {last!r:.80}")
        self.mode = last
        filter_channels: int | None = None
        if sizes and isinstance(sizes[0], Tensor4DCoord):
            self._set_from_coordinates(*sizes)
            filter_channels = sizes[1].c()
        elif len(sizes) == len(_EXTENTS):
            self._set(dict(zip(_EXTENTS, sizes, strict=True)))
            self._set(
                {
                    **{"pad_h": self.R // 2, "pad_w": self.S // 2},
                    **dict.fromkeys(("stride_h", "stride_w", "dilation_h", "dilation_w"), 1),
                }
            )
        elif len(sizes) == len(_ALL):
            self._set(dict(zip(_ALL, sizes, strict=True)))
        else:
            raise InvalidArgument(f"Conv2dProblemSize takes three or {len(_ALL)} extents, got {len(sizes)}: see help()")
        self.split_k_slices, self.groups = (
            _integer(value, name, 1) for name, value in zip(("split_k_slices", "groups"), rest, strict=True)
        )
        if self.C % self.groups != 0 or self.K % self.groups != 0:
            raise InvalidArgument(f"C = {self.C} and K = {self.K} must be multiples of groups = {self.groups}")
        if filter_channels is not None and filter_channels * self.groups != self.C:
            per_group = f"{self.C}" if self.groups == 1 else f"{self.C} / {self.groups} groups = {self.C // self.groups}"
            raise InvalidArgument(f"filter_size has C = {filter_channels}, but the C of input_size is {per_group}")

    def _set_from_coordinates(self, *sizes: Any) -> None:
        if len(sizes) != 5 or not all(isinstance(size, Tensor4DCoord) for size in sizes[:3]):
            raise InvalidArgument(
                "input_size, filter_size and padding must be Tensor4DCoords, then stride and dilation"
            )
        images, filters, padding, stride, dilation = sizes
        if not all(isinstance(each, MatrixCoord) for each in (stride, dilation)):
            raise InvalidArgument("stride and dilation must be MatrixCoords")
        for name, before, after in (("pad_h", padding.n(), padding.h()), ("pad_w", padding.w(), padding.c())):
            if after not in (before, 0):
                raise InvalidArgument(
                    f"padding must be the same on both sides, got {before} and {after} for {name}: no kernel pads the "
                    "sides differently"
                )
        self._set({"N": images.n(), "H": images.h(), "W": images.w(), "C": images.c()})
        self._set({"K": filters.n(), "R": filters.h(), "S": filters.w()})
        self._set({"pad_h": padding.n(), "pad_w": padding.w()})
        self._set({"stride_h": stride.row(), "stride_w": stride.column()})
        self._set({"dilation_h": dilation.row(), "dilation_w": dilation.column()})
        positions = [
            int((extent + 2 * pad - taps * dilate) / stride) + 1  # rounds towards zero, as CUTLASS does
            for extent, pad, taps, dilate, stride in (
                (self.H, self.pad_h, self.R, self.dilation_h, self.stride_h),
                (self.W, self.pad_w, self.S, self.dilation_w, self.stride_w),
            )
        ]
        self._set(dict(zip("PQ", (max(0, each) for each in positions), strict=True)))

    def _set(self, values: dict[str, Any]) -> None:
        for name, value in values.items():
            least = 1 if name in ("R", "S") or name.startswith(("stride", "dilation")) else 0
            setattr(self, name, _integer(value, name, least))

    def reset_split_k_slices(self, split_k_slices: int) -> Conv2dProblemSize:
        """The same problem with another number of parts."""
        return Conv2dProblemSize(
            *(getattr(self, name) for name in _ALL), self.mode, split_k_slices=split_k_slices, groups=self.groups
        )

    def activation_extent(self) -> Tensor4DCoord:
        """The extents of the activation, (N, H, W, C)."""
        return Tensor4DCoord(self.N, self.H, self.W, self.C)

    def filter_extent(self) -> Tensor4DCoord:
        """The extents of the filter, (K, R, S, C / groups)."""
        return Tensor4DCoord(self.K, self.R, self.S, self.C // self.groups)

    def output_extent(self) -> Tensor4DCoord:
        """The extents of the output, (N, P, Q, K)."""
        return Tensor4DCoord(self.N, self.P, self.Q, self.K)

    def activation_size(self) -> int:
        """The number of elements of the activation."""
        return _size(self.activation_extent())

    def filter_size(self) -> int:
        """The number of elements of the filter."""
        return _size(self.filter_extent())

    def output_size(self) -> int:
        """The number of elements of the output."""
        return _size(self.output_extent())

    def __repr__(self) -> str:
        numbers = ", ".join(f"{name}={getattr(self, name)}" for name in _ALL)
        return f"Conv2dProblemSize({numbers}, {self.mode.name}, {self.split_k_slices}, {self.groups})"


def implicit_gemm_problem_size(conv_operator: Operator, problem_size: Conv2dProblemSize) -> GemmCoord:
    """The extents of the GEMM that computes the convolution."""
    size = problem_size
    channels = size.C // size.groups
    if conv_operator is Operator.fprop:
        return GemmCoord(size.N * size.P * size.Q, size.K, size.R * size.S * channels)
    if conv_operator is Operator.dgrad:
        return GemmCoord(size.N * size.H * size.W, size.C, size.R * size.S * size.K)
    return GemmCoord(size.K, size.R * size.S * channels, size.N * size.P * size.Q)


def operands_of(conv_operator: Operator) -> tuple[str, str, str]:
    """Returns the tensors that A, B and C (also D) are: "activation", "filter" or "output"."""
    return {
        Operator.fprop: ("activation", "filter", "output"),
        Operator.dgrad: ("output", "filter", "activation"),
        Operator.wgrad: ("output", "activation", "filter"),
    }[conv_operator]


def _extent(which: int, conv_operator: Operator, problem_size: Conv2dProblemSize) -> Tensor4DCoord:
    extent: Tensor4DCoord = getattr(problem_size, f"{operands_of(conv_operator)[which]}_extent")()
    return extent


def implicit_gemm_tensor_a_extent(conv_operator: Operator, problem_size: Conv2dProblemSize) -> Tensor4DCoord:
    return _extent(0, conv_operator, problem_size)


def implicit_gemm_tensor_b_extent(conv_operator: Operator, problem_size: Conv2dProblemSize) -> Tensor4DCoord:
    return _extent(1, conv_operator, problem_size)


def implicit_gemm_tensor_c_extent(conv_operator: Operator, problem_size: Conv2dProblemSize) -> Tensor4DCoord:
    return _extent(2, conv_operator, problem_size)


def implicit_gemm_tensor_a_size(conv_operator: Operator, problem_size: Conv2dProblemSize) -> int:
    return _size(_extent(0, conv_operator, problem_size))


def implicit_gemm_tensor_b_size(conv_operator: Operator, problem_size: Conv2dProblemSize) -> int:
    return _size(_extent(1, conv_operator, problem_size))


def implicit_gemm_tensor_c_size(conv_operator: Operator, problem_size: Conv2dProblemSize) -> int:
    return _size(_extent(2, conv_operator, problem_size))


def _size(extent: Tensor4DCoord) -> int:
    return extent.n() * extent.h() * extent.w() * extent.c()


def _integer(value: Any, name: str, least: int) -> int:
    try:
        number = operator.index(value)
    except TypeError:
        raise InvalidArgument(f"{name} of a Conv2dProblemSize must be an integer, got {value!r:.80}") from None
    if number < least:
        raise InvalidArgument(f"{name} of a Conv2dProblemSize must be at least {least}, got {number}")
    return number

if not TYPE_CHECKING:  # type checkers find misspelt names themselves
    __getattr__ = refuse_unknown(__name__, globals())
