"""The providers by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, TypeVar

from tilewright._tilewright import KernelMetadata
from tilewright.errors import InvalidArgument

available_providers: dict[str, type[ProviderBase]] = {}
Provider = TypeVar("Provider", bound="type[ProviderBase]")


class ProviderBase:
    """Base class of providers, which are classes that are not instantiated."""

    generates: ClassVar[bool] = True
    """Whether get_kernels() must call generate_kernels(). False for kernels that are in Tilewright's registry."""

    @classmethod
    def has(cls, metadata: KernelMetadata) -> bool:
        """Whether a kernel of Tilewright's registry is one of this provider."""
        return False

    @classmethod
    def families(cls) -> list[str] | None:
        """The families of Tilewright's registry that are this provider's, or None if they are not listed."""
        return None

    @classmethod
    def generate_kernels(
        cls, metadata_filter: Callable[[KernelMetadata], bool], epilogue_args: Any = None, cc: int | None = None
    ) -> list[Any]:
        """The kernels that the filter accepts, for any arguments."""
        return []


def register_provider(name: str) -> Callable[[Provider], Provider]:
    """A decorator that makes a class derived from ProviderBase available under a name."""

    def register(provider: Provider) -> Provider:
        if not (isinstance(provider, type) and issubclass(provider, ProviderBase)):
            raise InvalidArgument(f"a provider must be a class derived from ProviderBase, got {provider!r}")
        available_providers[name] = provider
        return provider

    return register


@register_provider("tilewright")
class TilewrightProvider(ProviderBase):
    """The kernels that Tilewright ships, and those of classes that tilewright.register() was called with."""

    generates = False

    @classmethod
    def has(cls, metadata: KernelMetadata) -> bool:
        return not any(provider.has(metadata) for provider in available_providers.values() if provider is not cls)


__all__ = ["ProviderBase", "TilewrightProvider", "available_providers", "register_provider"]
