"""cutlass_api.kernel: the base class of kernels that are brought in the way of cutlass_api."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tilewright
from tilewright._tilewright import KernelMetadata, OperationArguments
from tilewright.errors import InvalidArgument

from .artifact import CompiledArtifact


class Kernel(tilewright.Kernel):
    """A kernel with the interface of cutlass_api.

    A subclass sets `self.metadata` in __init__(), and defines generate_kernels(), compile() and _run(), and optionally
    _supports(), get_workspace_size() and initialize_workspace(). It is registered with a provider:

        @cutlass_api.providers.cutedsl.CuTeDSLProvider.register
        class MyKernel(cutlass_api.providers.cutedsl.kernel.CuteDslKernel): ...
    """

    _metadata: KernelMetadata | None = None

    def __init__(self, metadata: KernelMetadata) -> None:
        self.metadata = metadata

    @property
    def metadata(self) -> KernelMetadata:
        """The metadata, which __init__() sets once."""
        if self._metadata is None:
            raise InvalidArgument(f"{type(self).__name__}.__init__() has not set self.metadata")
        return self._metadata

    @metadata.setter
    def metadata(self, metadata: KernelMetadata) -> None:
        if self._metadata is not None:
            raise InvalidArgument(f"the metadata of {self._metadata.kernel_name} is already set: make another kernel")
        if not isinstance(metadata, KernelMetadata):
            raise TypeError(f"metadata must be a KernelMetadata, got {type(metadata).__name__}")
        super().__init__(metadata)
        self._metadata = metadata

    @classmethod
    def _generate_for(cls, accept: Callable[[KernelMetadata], bool], target: str) -> list[Any]:
        """The kernels for a target such as "sm_90a". The registry calls it once per target."""
        architecture = int("".join(each for each in target if each.isdigit()))
        generate: Any = cls.generate_kernels
        kernels = generate(accept, epilogue_args=None, cc=architecture)
        if kernels is None:
            raise InvalidArgument(f"{cls.__name__}.generate_kernels() must return a list of kernels, got None")
        return [each for each in kernels if each.metadata.min_cc <= architecture]

    @staticmethod
    def generate_kernels(
        metadata_filter: Callable[[KernelMetadata], bool], epilogue_args: Any = None, cc: int | None = None
    ) -> list[Any]:
        """Returns the kernels of the class for the compute capability `cc`, such as 90."""
        raise NotImplementedError("a class derived from Kernel must define generate_kernels()")

    def compile(self, args: Any = None, cc: Any = None) -> Any:
        """Returns a CompiledArtifact for arguments like `args`."""
        raise NotImplementedError(f"{type(self).__name__} must define compile()")

    def _run(self, args: Any, artifact: Any, stream: Any, workspace: Any = None) -> None:
        raise NotImplementedError(f"{type(self).__name__} must define _run()")

    def get_workspace_size(self, args: OperationArguments) -> int:
        """How many bytes of device memory run() needs as `workspace`."""
        return 0

    def initialize_workspace(self, args: OperationArguments, workspace: Any) -> None:
        """Prepares the workspace before its first use. By default nothing is done."""

    def run(  # type: ignore[override]
        self,
        args: Any,
        compiled_artifact: CompiledArtifact | None = None,
        stream: Any = None,
        workspace: Any = None,
        assume_supported_args: bool = False,
    ) -> None:
        """Runs the kernel. Without `compiled_artifact` it is compiled, once for each device.

        Without `stream`, it runs on the current stream of the arrays' framework. Raises InvalidArgument, with the
        reason, unless the arguments are supported.
        """
        if not assume_supported_args:
            status = self.supports(args)
            if not status:
                raise InvalidArgument(f"Kernel does not support the provided arguments: {status.reason}")
        if compiled_artifact is None:
            compiled_artifact = self._compiled_for(args)
        self._run(args, compiled_artifact, stream, workspace)

    def _compiled_for(self, args: Any) -> CompiledArtifact:
        known: dict[str, CompiledArtifact] = self.__dict__.setdefault("_artifacts", {})
        device = _device_of(args)
        if device not in known:
            artifact = self.compile(args)
            if artifact is None:
                raise InvalidArgument(f"{type(self).__name__}.compile() must return a CompiledArtifact, got None")
            known[device] = artifact
        return known[device]

    def _source(self) -> Any:
        raise InvalidArgument(f"{self.name} has no source before it is compiled: call kernel.run(args)")

    def _launch(self, args: Any) -> Any:
        raise InvalidArgument(f"{self.name} cannot be launched before it is compiled: call kernel.run(args)")


def _device_of(args: Any) -> str:
    return next((operand.device for operand in args.operands.values()), "host")


__all__ = ["Kernel"]
