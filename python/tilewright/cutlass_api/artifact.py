"""cutlass_api.artifact."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class CompiledArtifact:
    """What Kernel.compile() returns: an object that the kernel's _run() can launch, and the kernel."""

    compiled_obj: Any
    kernel_obj: Any


__all__ = ["CompiledArtifact"]
