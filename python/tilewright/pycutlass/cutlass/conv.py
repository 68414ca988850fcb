"""The enumerations of convolutions, for which there are no kernels: see Conv2dOperation."""

from __future__ import annotations

import enum


class Operator(enum.Enum):
    """Which of the three tensors is computed."""

    fprop = 0
    dgrad = 1
    wgrad = 2


class IteratorAlgorithm(enum.Enum):
    """The algorithm that computes the addresses of activations."""

    analytic = 0
    optimized = 1
    fixed_channels = 2
    few_channels = 3


class SplitKMode(enum.Enum):
    """How the partial sums of split-K are reduced."""

    None_ = 0
    Serial = 1
    Parallel = 2


class Mode(enum.Enum):
    """Whether filters are mirrored."""

    cross_correlation = 0
    convolution = 1
