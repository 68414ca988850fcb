"""A convolution with bias, residual and relu, and its gradients, on NumPy arrays in the order of PyTorch."""

import numpy as np

import tilewright

n, height, width, channels, filters, taps = 2, 8, 8, 16, 32, 3
pixels = n * height * width  # of x, and of y, because of the padding
x, w = np.ones((n, channels, height, width), np.float32), np.ones((filters, channels, taps, taps), np.float32)
bias, residual = np.full(filters, 10, np.float32), np.full((n, filters, height, width), -100, np.float32)

y = tilewright.conv2d(
    x, w, padding=1, epilogue="D = relu(acc + row(bias) + residual)", bias=bias, residual=residual
)  # a new array, of which the channels are contiguous in memory
dx = tilewright.conv2d_input(x.shape, w, residual, padding=1)  # with `residual` as the gradient of y
dw = tilewright.conv2d_weight(x, w.shape, residual, padding=1)

# Nine taps in the middle, four in a corner; the tap in the middle of the filter meets all pixels.
assert (y[:, :, 3, 3] == 9 * channels - 90).all() and (y[:, :, 0, 0] == 0).all()
assert (dx[:, :, 3, 3] == 9 * filters * -100).all() and (dx[:, :, 0, 0] == 4 * filters * -100).all()
assert (dw[:, :, 1, 1] == -100 * pixels).all()
print(f"{tilewright.device_name()}: y is {y[0, 0, 3, 3]:g} in the middle and {y[0, 0, 0, 0]:g} in a corner")
