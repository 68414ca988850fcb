#!/usr/bin/env python3
"""Writes the reference of the Python package as Markdown, a page for each module, from its signatures and docstrings.

    PYTHONPATH=build/python python_reference.py FOLDER

The extension module must be built. Modules that need a library that is not installed, as tilewright.torch needs
PyTorch, are read from their source.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import pathlib
import re
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any, NamedTuple

MODULES = (
    "tilewright",
    "tilewright.torch",
    "tilewright.jax",
    "tilewright.layout",
    "tilewright.program",
    "tilewright.arch",
    "tilewright.emulator",
    "tilewright.tracing",
    "tilewright.pycutlass",
    "tilewright.cutlass_api",
    "tilewright.shims",
)


class Entry(NamedTuple):
    """A public name of a module or of a class."""

    name: str
    signature: str  # empty for attributes
    text: str
    members: tuple[Entry, ...] = ()


class Module(NamedTuple):
    name: str
    text: str
    entries: tuple[Entry, ...]


def docstring(value: object) -> str:
    """Of the object itself, not of its class, and without the signature with which nanobind begins it."""
    text, of_type = getattr(value, "__doc__", None), getattr(type(value), "__doc__", None)
    if not isinstance(text, str) or text == of_type:
        return ""
    return re.sub(r"\A\w*\(.*\) -> .*\n*", "", inspect.cleandoc(text))


class Annotation:
    """A text that signatures show without quotes."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


def plain(annotation: Any) -> Any:
    return Annotation(annotation) if isinstance(annotation, str) else annotation


def signature_of(name: str, value: Any) -> str:
    try:
        found = inspect.signature(value)
    except (TypeError, ValueError):  # a class without a constructor, or a function with several signatures
        texts = [text for text, *_ in getattr(value, "__nb_signature__", ())]
        return "\n".join(re.sub(r"^def \w+|\\\d+", lambda match: name if match[0][0] == "d" else "...", t) for t in texts)
    parameters = [each.replace(annotation=plain(each.annotation)) for each in found.parameters.values()]
    return name + str(found.replace(parameters=parameters, return_annotation=plain(found.return_annotation)))


def members_of(kind: type) -> Iterator[Entry]:
    for name, value in vars(kind).items():
        if name.startswith("_"):
            continue
        if isinstance(value, property) or inspect.isgetsetdescriptor(value) or type(value).__name__ == "property":
            found = re.match(r"\(self\) -> (?:tilewright\._tilewright\.)?(.*)", getattr(value, "__doc__", None) or "")
            yield Entry(name, f"{name}: {found[1]}" if found else name, docstring(value))
        elif isinstance(value, (staticmethod, classmethod)) or callable(value):
            yield Entry(name, signature_of(name, getattr(kind, name)), docstring(getattr(kind, name)))


def entry_of(name: str, value: Any) -> Entry:
    if isinstance(value, type):
        members = sorted(members_of(value), key=lambda each: each.name)
        return Entry(name, signature_of(name, value), docstring(value), tuple(members))
    return Entry(name, signature_of(name, value) if callable(value) else "", docstring(value))


def public_names(module: ModuleType) -> list[str]:
    names = getattr(module, "__all__", None)
    if names is None:
        own = (name for name, value in vars(module).items() if getattr(value, "__module__", "").startswith("tilewright"))
        names = [name for name in own if not name.startswith("_")]
    return sorted(names)


def imported(name: str) -> Module:
    module = importlib.import_module(name)
    named = ((each, getattr(module, each)) for each in public_names(module))
    entries = (entry_of(each, value) for each, value in named if not isinstance(value, (ModuleType, str, int, float)))
    return Module(name, docstring(module), tuple(entries))


def parsed(name: str) -> Module:
    """From the source of a module that cannot be imported: its functions."""
    package = importlib.import_module("tilewright")
    path = pathlib.Path(str(package.__file__)).parent / f"{name.rpartition('.')[2]}.py"
    tree = ast.parse(path.read_text())
    functions = (each for each in tree.body if isinstance(each, ast.FunctionDef) and not each.name.startswith("_"))
    entries = [
        Entry(each.name, f"{each.name}({ast.unparse(each.args)})", ast.get_docstring(each) or "") for each in functions
    ]
    return Module(name, ast.get_docstring(tree) or "", tuple(sorted(entries)))


def read(name: str) -> Module:
    try:
        return imported(name)
    except ImportError:
        return parsed(name)


def escaped(text: str) -> str:
    """As Markdown that shows the text: only backquotes keep their meaning."""
    parts = text.split("`")
    return "`".join(part if place % 2 else re.sub(r"([<>_*\[\]])", r"\\\1", part) for place, part in enumerate(parts))


def prose(text: str) -> list[str]:
    """The first paragraph as it is; what follows has columns and examples, and keeps its lines."""
    first, _, rest = text.partition("\n\n")
    lines = [escaped(re.sub(r"\s*\n\s*", " ", first)), ""] if first else []
    return lines + (["```text", rest.strip("\n"), "```", ""] if rest.strip() else [])


def page(module: Module) -> str:
    lines = [f"# {module.name}", "", *prose(module.text)]
    for entry in module.entries:
        lines += [f"## {entry.name}", ""]
        if entry.signature:
            lines += ["```python", entry.signature, "```", ""]
        lines += prose(entry.text)
        for member in entry.members:
            first = member.text.partition("\n\n")[0].replace("\n", " ")
            lines.append(f"- `{member.signature.splitlines()[0]}`" + (f": {escaped(first)}" if first else ""))
        lines += [""] if entry.members else []
    return "\n".join(lines)


def main() -> None:
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name in MODULES:
        (folder / f"{name}.md").write_text(page(read(name)))


if __name__ == "__main__":
    main()
