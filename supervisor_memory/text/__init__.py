"""Words, tokens, figures and the calendar: what holds for a text in any language."""
