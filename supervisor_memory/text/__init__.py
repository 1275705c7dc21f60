"""Words, tokens, unseen characters and the calendar, without rules about meaning."""
