"""Jinja templates in a sandbox: compiled once, errors with their line, answers marked by generation blocks.

The environment is the one transformers renders chat templates with (`utils/chat_template_utils.py`): blocks take their
line's blanks and newline with them, `{% generation %}` … `{% endgeneration %}` stands around what the model says.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime
from itertools import pairwise
from typing import Any, Final, NoReturn

from jinja2 import Environment, Template, TemplateError, TemplateSyntaxError, Undefined, meta, nodes
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment

_MARKS: Final = "_generation_marks"
Marks = tuple[str, str]


class JinjaError(Exception):
    """What is wrong in a template, and in which of its lines (None when that is not known)."""

    def __init__(self, message: str, line: int | None) -> None:
        super().__init__(message)
        self.message = message
        self.line = line


class _Missing(Undefined):
    """What is not there is false and empty, but may not be written into a text."""

    __str__ = Undefined._fail_with_undefined_error


class _Generation(Extension):
    """`{% generation %}`: puts marks around what the model says, when it is given some."""

    tags = {"generation"}

    def parse(self, parser: Parser) -> nodes.Node:
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        call = self.call_method("_marked", [nodes.ContextReference()])
        return nodes.CallBlock(call, [], [], body).set_lineno(line)

    def _marked(self, context: Context, caller: Callable[[], str]) -> str:
        begin, end = context.get(_MARKS) or ("", "")
        return f"{begin}{caller()}{end}"


def _refuse(message: str) -> NoReturn:
    raise TemplateError(message)


def _tojson(
    value: Any, ensure_ascii: bool = False, indent: int | None = None, separators: Any = None, sort_keys: bool = False
) -> str:
    # Jinja's own filter escapes for HTML.
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


class JinjaText:
    """A compiled template.

    Args:
        source: its text.
        strict: whether writing something that is not defined is an error rather than nothing.

    Raises:
        JinjaError: it is no template.
    """

    def __init__(self, source: str, *, strict: bool) -> None:
        self.source = source
        environment = ImmutableSandboxedEnvironment(
            trim_blocks=True, lstrip_blocks=True, extensions=[_Generation, loopcontrols],
            undefined=_Missing if strict else Undefined,
        )  # fmt: skip
        now = datetime.now()  # the same for every row, also past midnight
        environment.filters["tojson"] = _tojson
        environment.globals |= {"raise_exception": _refuse, "strftime_now": now.strftime}
        try:
            self.tree = environment.parse(source)
            self.undeclared = frozenset(meta.find_undeclared_variables(self.tree))
            code = environment.compile(source, filename=_FILE)
        except TemplateSyntaxError as error:
            raise JinjaError(error.message or "it is no jinja template", error.lineno) from error
        self._template = Template.from_code(environment, code, environment.make_globals(None))
        self.marks_answers = "generation" in source and _has_generation(environment, source)

    def render(self, variables: dict[str, Any], marks: Marks | None = None) -> str:
        """The text.

        Args:
            marks: put around every generation block.

        Raises:
            JinjaError: something in it failed, or the template refuses with `raise_exception`.
        """
        try:
            return self._template.render({**variables, _MARKS: marks})
        except Exception as error:  # a template can fail in any way that Python can
            raise JinjaError(str(error) or type(error).__name__, _line_of(error)) from error


_FILE: Final = "<the template>"


def _has_generation(environment: Environment, source: str) -> bool:
    tokens = [(kind, word) for _, kind, word in environment.lex(source) if kind != "whitespace"]
    return any(
        kind == "block_begin" and following == ("name", "generation") for (kind, _), following in pairwise(tokens)
    )


def _line_of(error: BaseException) -> int | None:
    """The template's line that the error came from; Jinja rewrites tracebacks to the template's own lines."""
    line, frame = None, error.__traceback__
    while frame is not None:
        if frame.tb_frame.f_code.co_filename == _FILE:
            line = frame.tb_lineno
        frame = frame.tb_next
    return line
