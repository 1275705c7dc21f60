"""Personal data and secrets are taken out of texts before anything keeps, embeds, sends or logs them.

`types.py` names what is looked for; `contacts.py`, `numbers.py`, `ip_addresses.py` and `keys.py` find it,
by the words and patterns of `finders.toml`;
`redactor.py` puts placeholders in its place, in texts, messages, candidates and records.
docs/redaction.md says what is found and what not.
"""
