"""pycutlass.compiler: compiles the kernels of operations."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from tilewright._tilewright import Kernel, compile_kernels, configure
from tilewright.errors import InvalidArgument, Unsupported

from .convolution import Conv2dOperation
from .operation import GemmOperationUniversal
from .reduction import ReductionOperation

log = logging.getLogger("tilewright.pycutlass")


class CompilationOptions:
    """Compiler flags. They are accepted for compatibility and have no effect: Tilewright uses its own."""

    def __init__(self, flags: Sequence[str], arch: int, include_paths: Sequence[str] = ()) -> None:
        self.flags = [*flags]
        self.arch = arch
        self.include_paths = [*include_paths]


class ArtifactManager:
    """The class of `pycutlass.compiler`. Compiled kernels are stored in Tilewright's cache."""

    def __init__(self) -> None:
        self.backend = "nvrtc"

    def nvrtc(self) -> None:
        """Selects NVRTC, which is the default."""
        self._use("nvrtc")

    def nvcc(self) -> None:
        """Selects the command nvcc."""
        self._use("nvcc")

    def add_module(
        self,
        operations: Sequence[GemmOperationUniversal | Conv2dOperation | ReductionOperation],
        compile_options: CompilationOptions | None = None,
    ) -> None:
        """Compiles the kernels of the operations that are not in the cache, several in parallel.

        Operations that are not added here are compiled at their first run. Operations with visitors and reductions
        always are, because their kernels depend on the arguments. Raises CompileError and ToolchainNotFound.
        """
        if not isinstance(operations, Sequence):
            raise TypeError(f"operations must be a list of operations, got {type(operations).__name__}")
        if compile_options is not None:
            log.warning("Tilewright uses its own compiler flags and ignores %s", " ".join(compile_options.flags))
        kernels: list[Kernel] = []
        for operation in operations:
            if not isinstance(operation, (GemmOperationUniversal, Conv2dOperation, ReductionOperation)):
                raise InvalidArgument(f"add_module() takes a list of operations, got {type(operation).__name__}")
            if not isinstance(operation, ReductionOperation) and not operation.visitor:
                kernels.append(operation.kernel)
        for artifact in compile_kernels(kernels):
            log.debug("%s: compiled in %.1f ms, or found in the cache", artifact.name, artifact.compile_ms)

    def load_from_cache(self) -> None:
        """Has no effect: compiled kernels are looked up in Tilewright's cache when they are needed."""

    def insert_operation(self, op_key: str, cubin: str, hostfile: str, op_name: str, op_attrs: Sequence[Any]) -> None:
        """Raises Unsupported: PyCUTLASS's cache takes compiled kernels of programs, and Tilewright's does not."""
        raise Unsupported(
            "insert_operation() is not supported: Tilewright's cache has the kernels that it compiles itself; call "
            "add_module([operation])"
        )

    def _use(self, backend: str) -> None:
        configure(compiler=backend)
        self.backend = backend
