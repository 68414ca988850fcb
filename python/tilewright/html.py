"""The HTML that notebooks show for metadata, artifacts and explanations."""

from __future__ import annotations

import html
import json
from collections.abc import Iterable, Sequence
from typing import Any


def table(rows: Iterable[Sequence[object]], header: Sequence[str] = ()) -> str:
    """An HTML table with escaped cells."""
    head = "".join(f"<th>{html.escape(each)}</th>" for each in header)
    body = "".join("<tr>" + "".join(f"<td>{html.escape(str(cell))}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table>{f'<tr>{head}</tr>' if head else ''}{body}</table>"


def of_metadata(metadata: Any) -> str:
    """A row for each member of a KernelMetadata."""
    return f"<b>KernelMetadata</b> {html.escape(metadata.kernel_name)}" + table(
        [
            ("family", metadata.family),
            ("operation", metadata.operation),
            ("operands", metadata.operands),
            ("design", metadata.design),
            ("epilogue", "" if metadata.epilogue is None else metadata.epilogue.signature),
            ("promises", ", ".join(name for name in ("deterministic", "batch_invariant") if getattr(metadata, name))),
        ]
    )


def of_artifact(artifact: Any) -> str:
    """A row for each member of an Artifact."""
    unknown = "unknown"
    return f"<b>Artifact</b> {html.escape(artifact.name)}" + table(
        [
            ("target", artifact.target),
            ("compiler", artifact.compiler),
            ("compiled in", f"{artifact.compile_ms:.0f} ms"),
            ("registers per thread", unknown if artifact.registers is None else artifact.registers),
            ("spills per thread", unknown if artifact.spill_bytes is None else f"{artifact.spill_bytes} bytes"),
            ("cubin", f"{len(artifact.cubin)} bytes"),
        ]
    )


def of_explanation(explanation: Any) -> str:
    """The best kernels of an explanation, and the reasons of those that were refused."""
    report = json.loads(explanation.to_json())
    most = 10
    kernels = [(each["name"], each.get("estimate_us")) for each in report["kernels"][:most]]
    refused = [(each["name"], each["reason"]) for each in report["refused"][:most]]
    return (
        f"<b>{len(report['kernels'])} kernels for {html.escape(explanation.target)}</b>"
        + table(kernels, ("kernel", "predicted us"))
        + f"<b>{len(report['refused'])} refused</b>"
        + table(refused, ("kernel", "reason"))
    )
