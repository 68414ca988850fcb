"""Names of convolutions. There are no kernels for them: see Conv2dOperation."""

from __future__ import annotations

import enum


class Operator(enum.Enum):
    """Which of the three tensors is computed."""

    fprop = 0
    dgrad = 1
    wgrad = 2


class IteratorAlgorithm(enum.Enum):
    """How addresses of the activations are computed."""

    analytic = 0
    optimized = 1
    fixed_channels = 2
    few_channels = 3


class SplitKMode(enum.Enum):
    """Who adds up slices of K."""

    None_ = 0
    Serial = 1
    Parallel = 2


class Mode(enum.Enum):
    """Whether filters are mirrored."""

    cross_correlation = 0
    convolution = 1
