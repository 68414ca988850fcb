"""cutlass_api.config."""

from __future__ import annotations

from tilewright.errors import Unsupported


class GlobalOptions:
    """The options of cutlass_api. There is one instance for the process."""

    _only: GlobalOptions | None = None

    def __new__(cls) -> GlobalOptions:
        if cls._only is None:
            cls._only = super().__new__(cls)
        return cls._only

    @property
    def use_tvm_ffi(self) -> bool:
        """Whether kernels are called through TVM FFI. It is False: Tilewright's own calls need no such layer."""
        return False

    @use_tvm_ffi.setter
    def use_tvm_ffi(self, value: bool) -> None:
        if value:
            raise Unsupported("Tilewright does not call kernels through TVM FFI: leave use_tvm_ffi at False")

    def save(self, options: dict[str, object]) -> None:
        """Writes the options to a dict, which restore() takes."""
        options["use_tvm_ffi"] = self.use_tvm_ffi

    def restore(self, options: dict[str, object]) -> None:
        """Sets the options from a dict that save() has written."""
        self.use_tvm_ffi = bool(options["use_tvm_ffi"])


__all__ = ["GlobalOptions"]
