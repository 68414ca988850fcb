"""SubstituteTemplate, which PyCUTLASS makes its texts with."""

from __future__ import annotations

import re
from collections.abc import Mapping


def SubstituteTemplate(template: str, values: Mapping[str, str]) -> str:
    """The text with the value of each name in place of ${name}. Values may have such names, too."""
    names = "|".join(map(re.escape, values))
    pattern = re.compile(rf"\$\{{({names})\}}")
    for _ in range(1 + len(values)):  # values that contain themselves would never end
        replaced = pattern.sub(lambda found: values[found[1]], template)
        if replaced == template:
            break
        template = replaced
    return template
