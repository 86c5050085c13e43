"""Texts for people, out of jinja2 templates: Markdown whose values are `plain`, HTML that escapes all."""

from __future__ import annotations

from functools import cache
from html import escape
from typing import TYPE_CHECKING, Any

from gibbous.core.claim import short

if TYPE_CHECKING:
    from jinja2 import Environment

_HIDDEN = {
    **{code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160))},
    # Marks that reverse or hide text, and halves of characters, which no file can hold.
    **{code: f"\\u{code:04x}" for code in (*range(0x202A, 0x202F), *range(0x2066, 0x206A))},
    **{code: f"\\u{code:04x}" for code in range(0xD800, 0xE000)},
}
_MARKUP = str.maketrans({mark: "\\" + mark for mark in "\\`*_{}[]<>|#"})


def render(package: str, name: str, **facts: Any) -> str:
    """Fill in a template of a package's folder `templates`; all but Markdown and R escapes the facts.

    A name that it uses and does not get is an error.
    """
    return environment(package).get_template(name).render(facts)


def paragraphs(package: str, name: str, **facts: Any) -> list[tuple[str, str]]:
    """The blocks of a template in order, each with its name as a sentence, without empty ones."""
    template = environment(package).get_template(name)
    context = template.new_context(facts)
    texts = {title: "".join(block(context)).strip("\n") for title, block in template.blocks.items()}
    return [(f"{t.replace('_', ' ').capitalize()}.", text) for t, text in texts.items() if text]


@cache
def environment(package: str) -> Environment:
    """The templates of a package, compiled once a process."""
    import jinja2

    templates = jinja2.Environment(
        loader=jinja2.PackageLoader(package),
        autoescape=jinja2.select_autoescape(disabled_extensions=("md", "R"), default=True),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    safe = templates.filters["safe"]
    templates.globals["enumerate"] = enumerate
    filters: dict[str, Any] = {
        # What is written from right to left does not turn its surroundings.
        "cell": lambda value: safe(f"<bdi>{_visible(value)}</bdi>"),
        "visible": lambda value: safe(_visible(value)),
        "plain": plain,
        "short": short,
    }
    templates.filters |= filters
    return templates


def plain(text: str) -> str:
    """Text inside Markdown that cannot act as markup, without line breaks."""
    return "".join(c if c.isprintable() else " " for c in text).translate(_MARKUP)


def _visible(value: object) -> str:
    """A value inside a page: escaped, and with marks for what cannot be seen."""
    text = f"{value:,}" if isinstance(value, int) else str(value)
    return escape(text.translate(_HIDDEN))
