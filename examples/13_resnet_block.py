"""A bottleneck block of ResNet-50, forward and backward: y = relu(conv3(relu(conv2(relu(conv1(x))))) + x).

Each convolution is one launch with its bias, its activation and the residual. In the backward pass, the gradient of
each relu is part of the convolution before it, and the sum of both gradients of x is part of the last one. As in
inference, the batch normalisation is folded into weights and biases.
"""

from typing import Any

import numpy as np

import tilewright

IMAGES, EXTENT, WIDTH, INNER = 2, 7, 64, 16  # in ResNet-50: 56, 256 and 64
random = np.random.default_rng(1)


def normal(*shape: int, deviation: float = 1.0) -> Any:
    """Random numbers with the strides of NHWC arrays, and the shape of NCHW or KCRS arrays."""
    values = (random.standard_normal(shape) * deviation).astype(np.float32)
    return values if len(shape) == 1 else np.ascontiguousarray(values.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)


x, dy = normal(IMAGES, WIDTH, EXTENT, EXTENT), normal(IMAGES, WIDTH, EXTENT, EXTENT)
w1, w2, w3 = (
    normal(filters, channels, taps, taps, deviation=(channels * taps * taps) ** -0.5)
    for filters, channels, taps in ((INNER, WIDTH, 1), (INNER, INNER, 3), (WIDTH, INNER, 1))
)
b1, b2, b3 = normal(INNER), normal(INNER), normal(WIDTH)

# Forward.
BIAS, RESIDUAL = "D = relu(acc + row(bias))", "D = relu(acc + row(bias) + residual)"
h1 = tilewright.conv2d(x, w1, epilogue=BIAS, bias=b1)
h2 = tilewright.conv2d(h1, w2, padding=1, epilogue=BIAS, bias=b2)
y = tilewright.conv2d(h2, w3, epilogue=RESIDUAL, bias=b3, residual=x)

# Backward. The result of a relu is greater than 0 where its gradient is 1. The gradient of a bias is the sum of the
# gradient over the pixels, which the same launch leaves in db.
GRADIENT = "D = where(h > 0, acc, 0); row(db) = sum(where(h > 0, acc, 0))"
db1, db2 = np.empty_like(b1), np.empty_like(b2)
d3 = np.where(y > 0, dy, 0)
dw3, db3 = tilewright.conv2d_weight(h2, w3.shape, d3), d3.sum((0, 2, 3))
d2 = tilewright.conv2d_input(h2.shape, w3, d3, epilogue=GRADIENT, h=h2, db=db2)
dw2 = tilewright.conv2d_weight(h1, w2.shape, d2, padding=1)
d1 = tilewright.conv2d_input(h1.shape, w2, d2, padding=1, epilogue=GRADIENT, h=h1, db=db1)
dw1 = tilewright.conv2d_weight(x, w1.shape, d1)
dx = tilewright.conv2d_input(x.shape, w1, d1, c=d3)  # acc + c: the gradients of both paths


# The same in float64, tap by tap.
def convolve(images: Any, weight: Any) -> Any:
    """The convolution with so much padding that the extents stay the same."""
    border, (_, _, taps, _) = weight.shape[2] // 2, weight.shape
    padded = np.pad(images.astype(np.float64), ((0, 0), (0, 0), (border, border), (border, border)))
    return sum(
        np.einsum("nchw,kc->nkhw", padded[:, :, r : r + EXTENT, s : s + EXTENT], weight[:, :, r, s].astype(np.float64))
        for r in range(taps)
        for s in range(taps)
    )


def gradients(images: Any, weight: Any, gradient: Any) -> tuple[Any, Any]:
    """The gradients of the images and of the weight."""
    of_images = convolve(gradient, weight.transpose(1, 0, 2, 3)[:, :, ::-1, ::-1])
    border, taps = weight.shape[2] // 2, weight.shape[2]
    padded = np.pad(images.astype(np.float64), ((0, 0), (0, 0), (border, border), (border, border)))
    of_weight = np.empty(weight.shape)
    for r in range(taps):
        for s in range(taps):
            met = padded[:, :, r : r + EXTENT, s : s + EXTENT]
            of_weight[:, :, r, s] = np.einsum("nkhw,nchw->kc", gradient, met)
    return of_images, of_weight


bias_of = [b[:, None, None].astype(np.float64) for b in (b1, b2, b3)]
e1 = np.maximum(convolve(x, w1) + bias_of[0], 0)
e2 = np.maximum(convolve(e1, w2) + bias_of[1], 0)
expected_y = np.maximum(convolve(e2, w3) + bias_of[2] + x, 0)
g3 = np.where(expected_y > 0, dy, 0).astype(np.float64)
g2, expected_dw3 = gradients(e2, w3, g3)
g2 = np.where(e2 > 0, g2, 0)
g1, expected_dw2 = gradients(e1, w2, g2)
g1 = np.where(e1 > 0, g1, 0)
gx, expected_dw1 = gradients(x, w1, g1)
for name, result, expected in (
    ("y", y, expected_y),
    ("dw1", dw1, expected_dw1),
    ("dw2", dw2, expected_dw2),
    ("dw3", dw3, expected_dw3),
    ("db1", db1, g1.sum((0, 2, 3))),
    ("db2", db2, g2.sum((0, 2, 3))),
    ("db3", db3, g3.sum((0, 2, 3))),
    ("dx", dx, gx + g3),
):
    assert np.allclose(result, expected, atol=1e-4), (name, np.abs(result - expected).max())
print(f"a block of {IMAGES} images of {EXTENT}x{EXTENT}x{WIDTH}: result and gradients as expected")
