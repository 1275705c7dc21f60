"""Words and phrases of English and Chinese, as data and patterns."""
