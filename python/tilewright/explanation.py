"""The result of explain() after it was pickled: the report without the kernels."""

from __future__ import annotations

import json
from typing import Any

from tilewright import html


class SavedExplanation:
    """An Explanation that was pickled. Kernels belong to a process, so that only their descriptions are kept."""

    def __init__(self, report: str, text: str) -> None:
        self._json = report
        self._text = text

    @property
    def kernels(self) -> list[dict[str, Any]]:
        """The descriptions of the kernels, best first."""
        found: list[dict[str, Any]] = json.loads(self._json)["kernels"]
        return found

    @property
    def refused(self) -> list[dict[str, Any]]:
        """The kernels that cannot compute the problem, each with its reason."""
        found: list[dict[str, Any]] = json.loads(self._json)["refused"]
        return found

    @property
    def target(self) -> str:
        return str(json.loads(self._json)["target"])

    def to_json(self) -> str:
        return self._json

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"<SavedExplanation: {len(self.kernels)} kernels for {self.target}, {len(self.refused)} refused>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SavedExplanation) and self._json == other._json

    def __hash__(self) -> int:
        return hash(self._json)

    def _repr_html_(self) -> str:
        return html.of_explanation(self)
