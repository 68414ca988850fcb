"""A mixture-of-experts layer, forward and backward, in which each product of all experts is one launch.

Each token is computed by two of the experts: y = sum of weight * (relu(x @ up[e] + bias[e]) @ down[e]). On a GPU the
offsets may be a tensor that the router computed there; the host does not read them.
"""

from typing import Any

import numpy as np

import tilewright

TOKENS, EXPERTS, CHOSEN, WIDTH, INNER = 20, 6, 2, 32, 48
random = np.random.default_rng(1)


def normal(*shape: int) -> Any:
    return random.standard_normal(shape).astype(np.float32)


x, dy = normal(TOKENS, WIDTH), normal(TOKENS, WIDTH)
up, bias, down = normal(EXPERTS, WIDTH, INNER), normal(EXPERTS, INNER), normal(EXPERTS, INNER, WIDTH)

# The router: each token chooses two experts and weights them. Row i belongs to token token_of[i]; rows are sorted by
# expert, so that expert e has the rows from offsets[e-1] to offsets[e]. An expert may have none.
scores = normal(TOKENS, EXPERTS)
scores[:, 3] -= 100
experts = np.argsort(scores, axis=1)[:, -CHOSEN:].ravel()
order = np.argsort(experts, kind="stable")
token_of, weight = order // CHOSEN, random.random(TOKENS * CHOSEN).astype(np.float32)
offsets = np.cumsum(np.bincount(experts, minlength=EXPERTS), dtype=np.int32)

# Forward. The epilogue adds the bias of the expert, keeps the sum for the backward pass, and applies the activation.
rows = x[token_of]
before = np.empty((len(rows), INNER), np.float32)
hidden = tilewright.grouped_matmul(
    rows, up, offsets=offsets, epilogue="before = acc + row(bias); D = relu(before)", bias=bias, before=before
)
weighted = tilewright.grouped_matmul(hidden, down, offsets=offsets, epilogue="D = acc * column(weight)", weight=weight)
y = np.zeros_like(x)
np.add.at(y, token_of, weighted)

# Backward. The gradients of rows stack rows, with the experts' matrices transposed; the gradients of experts stack k.
d_weighted = dy[token_of] * weight[:, None]
d_before = tilewright.grouped_matmul(
    d_weighted,
    down.transpose(0, 2, 1),
    offsets=offsets,
    epilogue="D = acc * relu_gradient(before)",
    before=before,
)
d_down = tilewright.grouped_matmul(hidden.T, d_weighted, offsets=offsets)
d_up = tilewright.grouped_matmul(rows.T, d_before, offsets=offsets)
d_bias = tilewright.grouped_matmul(np.ones((1, len(rows)), np.float32), d_before, offsets=offsets)[:, 0]
d_rows = tilewright.grouped_matmul(d_before, up.transpose(0, 2, 1), offsets=offsets)
dx = np.zeros_like(x)
np.add.at(dx, token_of, d_rows)

# The same, expert by expert, in float64.
expected = {"y": np.zeros(x.shape), "dx": np.zeros(x.shape)}
for name, like in (("d_up", up), ("d_bias", bias), ("d_down", down)):
    expected[name] = np.zeros(like.shape)
for e in range(EXPERTS):
    mine = slice(offsets[e - 1] if e else 0, offsets[e])
    a, w = rows[mine].astype(np.float64), weight[mine, None].astype(np.float64)
    sums = a @ up[e] + bias[e]
    np.add.at(expected["y"], token_of[mine], w * (np.maximum(sums, 0) @ down[e]))
    gradient = w * dy[token_of[mine]]
    d_sums = gradient @ down[e].T * (sums > 0)
    expected["d_down"][e] = np.maximum(sums, 0).T @ gradient
    expected["d_up"][e], expected["d_bias"][e] = a.T @ d_sums, d_sums.sum(0)
    np.add.at(expected["dx"], token_of[mine], d_sums @ up[e].T)
for name, result in (("y", y), ("dx", dx), ("d_up", d_up), ("d_bias", d_bias), ("d_down", d_down)):
    assert np.allclose(result, expected[name], atol=1e-3), name
sizes = np.diff(offsets, prepend=0)
assert sizes[3] == 0
print(f"experts with {', '.join(map(str, sizes))} rows: results and gradients as expected")
