"""The summary as one HTML page that needs nothing else: the Markdown rendered, the loss picture inside."""

from __future__ import annotations

import html
from typing import Final

from llmtui.core.runs.facts import Summary
from llmtui.core.runs.scrubbing import scrub
from llmtui.core.text import safe_text

_STYLE: Final = (
    "body{font:15px/1.5 system-ui,sans-serif;max-width:62em;margin:2em auto;padding:0 1em;color:#1a1a1a}"
    "table{border-collapse:collapse;margin:1em 0}td,th{border:1px solid #ccc;padding:.25em .6em;text-align:left;"
    "vertical-align:top}pre{background:#f4f4f4;padding:1em;overflow:auto}svg{max-width:100%;height:auto}"
)


def summary_page(facts: Summary, markdown: str, picture: str) -> str:
    """The page.

    Args:
        markdown: `summary_markdown`'s; HTML in it stays text.
        picture: an SVG document of our own making.
    """
    from markdown_it import MarkdownIt

    body = MarkdownIt("commonmark", {"html": False}).enable("table").render(markdown)
    title = html.escape(scrub(safe_text(facts.id)))
    svg = picture[picture.find("<svg") :] if "<svg" in picture else ""
    head, end, rest = body.partition("<h2>")
    return (
        f'<!doctype html>\n<html lang="en">\n<head><meta charset="utf-8"><title>{title}</title>'
        f"<style>{_STYLE}</style></head>\n<body>\n{head}{svg}\n{end}{rest}</body>\n</html>\n"
    )
