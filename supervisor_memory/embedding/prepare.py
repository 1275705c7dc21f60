"""Make any string fit for a tokenizer."""

import re

__all__ = ["prepare"]

SURROGATES = re.compile("[\ud800-\udfff]")


def prepare(text: str, *, characters: int) -> str:
    """Cut `text` to about `characters`, and replace what UTF-8 cannot carry.

    Tokenizers cut by tokens, but only after reading everything: ten megabytes would take seconds.
    Leading whitespace goes first, so that it does not use up the length.
    """
    start = text[: 4 * characters].lstrip()[:characters]
    return SURROGATES.sub("\ufffd", start)
