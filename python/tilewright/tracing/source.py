"""Finds the syntax tree of a function or a text, and the locations of its nodes."""

from __future__ import annotations

import ast
import inspect
import linecache
import sys
import textwrap
import types
from collections.abc import Sequence
from dataclasses import dataclass

from .errors import SourceLocation, TraceError, Untraceable

Definition = ast.FunctionDef | ast.Lambda


@dataclass(frozen=True)
class Source:
    """Lines of a file, with the line numbers of the first of them in the file and in the tree parsed from them."""

    filename: str
    lines: Sequence[str]
    first_line: int = 1  # the number of lines[0] in the file
    first_parsed: int = 1  # the number of lines[0] in the tree

    def location(self, node: ast.AST) -> SourceLocation:
        """The location of a node. If the node has several lines, it is the first one."""
        index = min(max(getattr(node, "lineno", self.first_parsed) - self.first_parsed, 0), len(self.lines) - 1)
        text = self.lines[index].rstrip("\r\n") if self.lines else ""
        encoded = text.encode()
        begin = len(encoded[: getattr(node, "col_offset", 0)].decode(errors="ignore"))
        end = len(text)
        if getattr(node, "end_lineno", None) == getattr(node, "lineno", None):
            end = len(encoded[: getattr(node, "end_col_offset", len(encoded))].decode(errors="ignore"))
        return SourceLocation(self.filename, self.first_line + index, begin + 1, end + 1, text)


def parse_text(text: str) -> tuple[Source, list[ast.stmt]]:
    """The statements of a text, which may be indented as a whole. Raises TraceError if it is no valid Python."""
    text = textwrap.dedent(text)
    source = Source("<epilogue>", text.splitlines() or [""])
    return source, _parse(text, source).body


def read_function(function: types.FunctionType) -> tuple[Source, Definition]:
    """The definition of a function in its file.

    Raises Untraceable if the source is not found, or if the line has several lambdas and it is unclear which one it is.
    """
    code = function.__code__
    if code.co_name == "<lambda>":
        return _read_lambda(code)
    try:
        lines, first = inspect.getsourcelines(code)
    except (OSError, TypeError, SyntaxError, IndexError) as error:
        raise _no_source(code) from error
    is_indented = lines[0][:1].isspace()
    source = Source(code.co_filename, lines, first, 2 if is_indented else 1)
    text = "".join(lines)
    body = _parse(f"if True:\n{text}" if is_indented else text, source).body
    definition = body[0].body[0] if is_indented and body and isinstance(body[0], ast.If) else body[0] if body else None
    if isinstance(definition, ast.AsyncFunctionDef):
        raise TraceError(f"{code.co_name} is async, which cannot be traced", source.location(definition))
    is_it = (
        isinstance(definition, ast.FunctionDef)
        and definition.name == code.co_name
        and _has_parameters(definition, code)
    )
    if not is_it:
        raise Untraceable(
            f"{code.co_filename} has changed since {code.co_name} was imported",
            "import it again, or pass its source as text",
        )
    assert isinstance(definition, ast.FunctionDef)
    return source, definition


def _parse(text: str, source: Source) -> ast.Module:
    try:
        return ast.parse(text)
    except SyntaxError as error:
        index = min(max((error.lineno or 1) - source.first_parsed, 0), len(source.lines) - 1)
        column = max(1, error.offset or 1)
        line = source.lines[index].rstrip("\r\n")
        begin = min(column, len(line) + 1)
        location = SourceLocation(source.filename, source.first_line + index, begin, column + 1, line)
        raise TraceError(f"not Python: {error.msg}", location) from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise TraceError(f"{source.filename}: not Python: {error}") from error


def _no_source(code: types.CodeType) -> Untraceable:
    return Untraceable(f"the source of {code.co_name} of {code.co_filename} is not found", "pass its source as text")


def _has_parameters(definition: Definition, code: types.CodeType) -> bool:
    arguments = definition.args
    names = [each.arg for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
    expected = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    is_mangled = any(name.startswith("__") for name in names)
    return is_mangled or tuple(names) == expected


def _read_lambda(code: types.CodeType) -> tuple[Source, ast.Lambda]:
    linecache.checkcache(code.co_filename)
    try:
        lines, _ = inspect.findsource(code)
    except (OSError, TypeError, SyntaxError, IndexError) as error:
        raise _no_source(code) from error
    source = Source(code.co_filename, lines)
    tree = _parse("".join(lines), source)
    found = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Lambda) and node.lineno == code.co_firstlineno and _has_parameters(node, code)
    ]
    if len(found) > 1 and sys.version_info >= (3, 11):
        columns = [column for line, _, column, _ in code.co_positions() if line is not None and column]
        found = [node for node in found if _spans(node, columns)]
    if len({ast.dump(node) for node in found}) > 1:
        raise Untraceable(
            f"line {code.co_firstlineno} of {code.co_filename} has {len(found)} lambdas with these parameters",
            "define the function with def, or write each lambda on a line of its own",
        )
    if not found:
        raise _no_source(code)
    return source, found[0]


def _spans(node: ast.Lambda, columns: Sequence[int]) -> bool:
    """Whether instructions at these columns can belong to the lambda's body. True if the body has several lines."""
    body = node.body
    if body.lineno != body.end_lineno or not columns:
        return True
    return body.col_offset <= min(columns) and max(columns) <= (body.end_col_offset or 0)
