"""The libraries whose functions epilogues may call."""

from __future__ import annotations

MODULES = (
    "math",
    "numpy",
    "torch",
    "torch.special",
    "torch.nn.functional",
    "jax.lax",
    "jax.nn",
    "jax.numpy",
    "jax.scipy.special",
    "scipy.special",
)
ROOTS = tuple(dict.fromkeys(module.split(".")[0] for module in MODULES))
