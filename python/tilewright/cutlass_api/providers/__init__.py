"""cutlass_api.providers: where kernels come from."""

from .available import ProviderBase, available_providers, register_provider
from . import cutedsl

__all__ = ["ProviderBase", "available_providers", "cutedsl", "register_provider"]
