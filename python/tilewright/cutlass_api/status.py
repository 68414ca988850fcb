"""cutlass_api.status."""

from tilewright._tilewright import Status

__all__ = ["Status"]
