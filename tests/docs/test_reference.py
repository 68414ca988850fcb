"""The reference of the Python package: each public name has a text, and a signature if it is a function."""

import re
import subprocess
import sys

import pytest
from documents import ROOT

pytest.importorskip("tilewright._tilewright", reason="the Python package is not built")


def test_every_public_name_is_described(tmp_path):
    subprocess.run([sys.executable, ROOT / "scripts/python_reference.py", tmp_path], check=True)
    pages = {path.stem: path.read_text() for path in tmp_path.glob("*.md")}
    assert len(pages) == 11
    for module in ("tilewright", "tilewright.torch", "tilewright.jax", "tilewright.layout", "tilewright.tracing"):
        entries = re.split(r"^## ", pages[module], flags=re.MULTILINE)[1:]
        for entry in entries:
            name, _, rest = entry.partition("\n")
            described = re.sub(r"```python\n.*?```", "", rest, flags=re.DOTALL).strip()
            assert described and not described.startswith("- `"), f"{module}.{name} has no docstring"
    product = re.search(r"^## matmul\n.*?^## ", pages["tilewright"], re.MULTILINE | re.DOTALL)[0]
    assert "matmul(a: Any, b: Any, /, *, epilogue: Callable" in product and "math: str | None = None" in product
    assert "ShapeOnly(shape: Sequence[int], dtype: object" in pages["tilewright"]
    assert "conv2d(input: torch.Tensor" in pages["tilewright.torch"]
