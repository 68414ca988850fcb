"""Convolutions and their gradients by the definition, in NumPy. All arrays are NCHW."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

Pair = tuple[int, int]


class Convolution:
    """x (n, c, h, w) with w (k, c / groups, r, s)."""

    def __init__(
        self,
        x: tuple[int, ...],
        w: tuple[int, ...],
        stride: Pair = (1, 1),
        padding: Pair = (0, 0),
        dilation: Pair = (1, 1),
        groups: int = 1,
    ) -> None:
        self.x, self.w, self.stride, self.padding, self.dilation, self.groups = x, w, stride, padding, dilation, groups
        positions = (
            (x[2 + axis] + 2 * padding[axis] - dilation[axis] * (w[2 + axis] - 1) - 1) // stride[axis] + 1
            for axis in (0, 1)
        )
        self.y = (x[0], w[0], *positions)

    def taps(self) -> Iterator[tuple[int, int, Any]]:
        """Each tap, with the index of the pixels of a padded x that it meets."""
        for r in range(self.w[2]):
            for s in range(self.w[3]):
                first = r * self.dilation[0], s * self.dilation[1]
                yield (
                    r,
                    s,
                    (
                        slice(None),
                        slice(None),
                        *(
                            slice(begin, begin + (count - 1) * step + 1, step)
                            for begin, count, step in zip(first, self.y[2:], self.stride, strict=True)
                        ),
                    ),
                )

    def padded(self, x: Any | None = None) -> Any:
        (top, left), (n, c, h, w) = self.padding, self.x
        images = np.zeros((n, c, h + 2 * top, w + 2 * left))
        if x is not None:
            images[:, :, top : top + h, left : left + w] = x
        return images

    def of_groups(self, w: Any) -> Any:
        """The filter as (groups, k / groups, c / groups)."""
        return w.astype(np.float64).reshape(self.groups, -1, self.w[1])

    def images_of_groups(self, x: Any) -> Any:
        """Images as (n, groups, c / groups, h, w)."""
        return x.astype(np.float64).reshape(x.shape[0], self.groups, -1, *x.shape[2:])

    def fprop(self, x: Any, w: Any) -> Any:
        images, y = self.padded(x), np.zeros(self.y)
        for r, s, pixels in self.taps():
            met = self.images_of_groups(images[pixels])
            y += np.einsum("ngchw,gkc->ngkhw", met, self.of_groups(w[:, :, r, s])).reshape(self.y)
        return y

    def dgrad(self, w: Any, y: Any) -> Any:
        gradient = self.padded()
        for r, s, pixels in self.taps():
            part = np.einsum("ngkhw,gkc->ngchw", self.images_of_groups(y), self.of_groups(w[:, :, r, s]))
            gradient[pixels] += part.reshape(gradient[pixels].shape)
        (top, left), (_, _, h, width) = self.padding, self.x
        return gradient[:, :, top : top + h, left : left + width]

    def wgrad(self, x: Any, y: Any) -> Any:
        images, gradient = self.padded(x), np.zeros(self.w)
        for r, s, pixels in self.taps():
            part = np.einsum("ngkhw,ngchw->gkc", self.images_of_groups(y), self.images_of_groups(images[pixels]))
            gradient[:, :, r, s] = part.reshape(self.w[:2])
        return gradient
