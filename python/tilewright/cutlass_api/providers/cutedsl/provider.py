"""The provider "cutedsl"."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import tilewright
from tilewright._tilewright import KernelMetadata, _registered_classes
from tilewright.errors import InvalidArgument

from ...kernel import Kernel
from ..available import ProviderBase, register_provider

Registered = TypeVar("Registered", bound="type[Kernel]")


@register_provider("cutedsl")
class CuTeDSLProvider(ProviderBase):
    """The kernels of registered classes."""

    generates = False

    @classmethod
    def register(cls, kernel_class: Registered) -> Registered:
        """A class decorator: the kernels of the class are found from now on, also by tilewright.find_kernels().

        Methods may be assigned later, up to the first query. A class of a name that is taken replaces the earlier one.
        """
        if not (isinstance(kernel_class, type) and issubclass(kernel_class, Kernel)):
            raise InvalidArgument(
                f"CuTeDSLProvider.register takes a class that derives from CuteDslKernel, got {kernel_class!r}"
            )
        tilewright.register(kernel_class)
        return kernel_class

    @classmethod
    def unregister(cls, kernel_class: type[Kernel]) -> bool:
        """Undoes register(). Returns whether the class was registered."""
        return tilewright.unregister(kernel_class)

    @classmethod
    def has(cls, metadata: KernelMetadata) -> bool:
        return metadata.family in cls._names()

    @classmethod
    def families(cls) -> list[str] | None:
        return cls._names()

    @classmethod
    def generate_kernels(
        cls, metadata_filter: Callable[[KernelMetadata], bool], epilogue_args: Any = None, cc: int | None = None
    ) -> list[Any]:
        """The kernels of all registered classes that the filter accepts."""
        found: list[Any] = []
        for kernel_class in cls._kernel_classes():
            found += kernel_class.generate_kernels(metadata_filter, epilogue_args, cc)
        return found

    @classmethod
    def _kernel_classes(cls) -> list[type[Kernel]]:
        """The registered classes that derive from Kernel of this interface, in the order of registration."""
        return [each for each in _registered_classes() if issubclass(each, Kernel)]

    @classmethod
    def _names(cls) -> list[str]:
        return [each.__name__ for each in cls._kernel_classes()]


__all__ = ["CuTeDSLProvider"]
