"""Names of modules that programs for other packages import, for modules that lie elsewhere here."""

from __future__ import annotations

import sys
from types import ModuleType


def add_submodules(module: str, **submodules: ModuleType) -> None:
    """Makes `import module.name` give the submodule of that name. `module` must be in sys.modules."""
    for name, submodule in submodules.items():
        sys.modules[f"{module}.{name}"] = submodule
        setattr(sys.modules[module], name, submodule)
