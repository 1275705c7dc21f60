"""Words, tokens, dates and phrases: of any language, and of English and Chinese, as data and patterns."""
