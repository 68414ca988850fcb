"""Explanations, and the metadata of built-in kernels, after they were pickled: their contents without the kernels."""

from __future__ import annotations

import json
from typing import Any

from tilewright import html


class _Saved:
    def __init__(self, report: str) -> None:
        self._json = report

    def to_json(self) -> str:
        return self._json

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self._json == other._json

    def __hash__(self) -> int:
        return hash(self._json)


class SavedExplanation(_Saved):
    """An Explanation that was pickled. Kernels belong to a process, so that only their descriptions are kept."""

    def __init__(self, report: str, text: str) -> None:
        super().__init__(report)
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

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"<SavedExplanation: {len(self.kernels)} kernels for {self.target}, {len(self.refused)} refused>"

    def _repr_html_(self) -> str:
        return html.of_explanation(self)


class SavedMetadata(_Saved):
    """A KernelMetadata of a built-in kernel, or of one with an epilogue, that was pickled. Such a kernel is found again
    by its name: find_kernels(args, lambda metadata: metadata.kernel_name == saved.kernel_name)."""

    def __init__(self, report: str, html: str) -> None:
        super().__init__(report)
        self._html = html

    @property
    def kernel_name(self) -> str:
        return str(json.loads(self._json)["name"])

    @property
    def family(self) -> str:
        return str(json.loads(self._json)["family"])

    @property
    def operation(self) -> str:
        return str(json.loads(self._json)["operation"])

    @property
    def operands(self) -> dict[str, Any]:
        """The element type, layout and alignment of each operand, and what else the kernel computes."""
        found: dict[str, Any] = json.loads(self._json)["operands"]
        return found

    @property
    def design(self) -> dict[str, Any]:
        """The tile, the stages and the other choices of the kernel's plan."""
        found: dict[str, Any] = json.loads(self._json)["design"]
        return found

    @property
    def deterministic(self) -> bool:
        return bool(json.loads(self._json)["promises"]["deterministic"])

    @property
    def batch_invariant(self) -> bool:
        return bool(json.loads(self._json)["promises"]["batch_invariant"])

    def __repr__(self) -> str:
        return f"SavedMetadata({self.kernel_name})"

    def _repr_html_(self) -> str:
        return self._html
