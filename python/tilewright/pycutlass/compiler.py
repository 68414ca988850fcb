"""Compiles operations, several at once, and keeps what was compiled."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from tilewright._tilewright import Kernel, compile_kernels, configure
from tilewright.errors import InvalidArgument

from .operation import GemmOperationUniversal
from .reduction import ReductionOperation

log = logging.getLogger("tilewright.pycutlass")


class CompilationOptions:
    """PyCUTLASS's flags of the compiler. Tilewright chooses its own: these are accepted, and have no effect."""

    def __init__(self, flags: Sequence[str], arch: int, include_paths: Sequence[str] = ()) -> None:
        self.flags = [*flags]
        self.arch = arch
        self.include_paths = [*include_paths]


class ArtifactManager:
    """`pycutlass.compiler`. What was compiled is kept in Tilewright's cache, whose key has all that it depends on."""

    def __init__(self) -> None:
        self.backend = "nvrtc"

    def nvrtc(self) -> None:
        """Compiles in the process, the default."""
        self._use("nvrtc")

    def nvcc(self) -> None:
        """Compiles by the command nvcc."""
        self._use("nvcc")

    def add_module(
        self,
        operations: Sequence[GemmOperationUniversal | ReductionOperation],
        compile_options: CompilationOptions | None = None,
    ) -> None:
        """Compiles what is not in the cache, several at once.

        Operations that were not added are compiled when they first run; so are visitors and reductions, whose kernels
        depend on their arguments. Raises CompileError and ToolchainNotFound.
        """
        if compile_options is not None:
            log.warning("the compiler's flags are Tilewright's own, and not %s", " ".join(compile_options.flags))
        kernels: list[Kernel] = []
        for operation in operations:
            if not isinstance(operation, (GemmOperationUniversal, ReductionOperation)):
                raise InvalidArgument(f"add_module() takes a list of operations, got {type(operation).__name__}")
            if isinstance(operation, GemmOperationUniversal) and not operation.visitor:
                kernels.append(operation.kernel)
        for artifact in compile_kernels(kernels):
            log.debug("%s: compiled in %.1f ms, or found in the cache", artifact.name, artifact.compile_ms)

    def _use(self, backend: str) -> None:
        configure(compiler=backend)
        self.backend = backend
