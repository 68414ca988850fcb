"""SubstituteTemplate, which PyCUTLASS makes its texts with."""

from __future__ import annotations

import re
from collections.abc import Mapping


def SubstituteTemplate(template: str, values: Mapping[str, str]) -> str:
    """The text with the value of each name in place of ${name}. Values may have such names, too."""
    for name, value, kind in (("template", template, str), ("values", values, Mapping)):
        if not isinstance(value, kind):
            raise TypeError(f"{name} must be a {'str' if kind is str else 'dict'}, got {value!r:.80}")
    names = "|".join(map(re.escape, values))
    pattern = re.compile(rf"\$\{{({names})\}}")
    for _ in range(1 + len(values)):  # values that contain themselves would never end
        replaced = pattern.sub(lambda found: values[found[1]], template)
        if replaced == template:
            break
        template = replaced
    return template
