"""Makes the module names of CUTLASS's Python interfaces importable, for programs that cannot be edited.

    import tilewright.shims
    tilewright.shims.install()       # before the program's own imports

    import pycutlass                 # is tilewright.pycutlass
    from pycutlass.utils import *
    import cutlass                   # is tilewright.pycutlass.cutlass, with the element types of CuTe DSL
    import cutlass_api               # is tilewright.cutlass_api
    import pycute                    # is tilewright.pycute

Nothing is installed unless install() is called, and a package of NVIDIA's that can be imported is not replaced.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
import types
from collections.abc import Sequence

from tilewright.errors import InvalidArgument

REAL_NAMES = {
    "cutlass": "tilewright.pycutlass.cutlass",
    "cutlass_api": "tilewright.cutlass_api",
    "pycute": "tilewright.pycute",
    "pycutlass": "tilewright.pycutlass",
}


class _Loader(importlib.abc.Loader):
    def __init__(self, real: str) -> None:
        self.real = real

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType | None:
        return None

    def exec_module(self, module: types.ModuleType) -> None:
        """Gives the real module, and its loaded submodules, the names of the shim.

        Python looks for a submodule that is not in sys.modules in the __path__ of its parent, which modules that are
        no packages do not have.
        """
        name = module.__name__
        sys.modules[name] = importlib.import_module(self.real)
        for each in [*sys.modules]:
            if each.startswith(f"{self.real}."):
                sys.modules.setdefault(name + each.removeprefix(self.real), sys.modules[each])


class _Finder(importlib.abc.MetaPathFinder):
    """Finds the installed names and their submodules."""

    def __init__(self) -> None:
        self.names: set[str] = set()

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        root, _, rest = fullname.partition(".")
        if root not in self.names:
            return None
        real = REAL_NAMES[root] + ("." + rest if rest else "")
        if real not in sys.modules:
            try:
                importlib.import_module(real)
            except ModuleNotFoundError:
                return None
        return importlib.machinery.ModuleSpec(fullname, _Loader(real), is_package=True)


_finder = _Finder()


def install(*names: str) -> list[str]:
    """Makes the names importable, by default all of REAL_NAMES. Returns those that now stand for Tilewright's modules.

    A name is left alone if a module of this name is already imported or can be found.
    """
    for name in names:
        if name not in REAL_NAMES:
            raise InvalidArgument(f"there is no shim named '{name}': there are {', '.join(REAL_NAMES)}")
    installed = []
    for name in names or tuple(REAL_NAMES):
        if name not in _finder.names:
            if name in sys.modules or importlib.util.find_spec(name) is not None:
                continue
            _finder.names.add(name)
        installed.append(name)
    if _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)
    return installed


def uninstall() -> None:
    """Undoes install(). Modules that were imported stay usable where they are referenced."""
    if _finder in sys.meta_path:
        sys.meta_path.remove(_finder)
    for name in [*sys.modules]:
        if name.partition(".")[0] in _finder.names:
            del sys.modules[name]
    _finder.names.clear()


__all__ = ["REAL_NAMES", "install", "uninstall"]
