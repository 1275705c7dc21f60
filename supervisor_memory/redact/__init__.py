"""Personal data and secrets are taken out of texts before anything keeps, embeds, sends or logs them.

`types.py` names what is looked for; one module finds each kind; `redactor.py` puts placeholders in their
place; `records.py` does so in what is about to be stored. docs/redaction.md says what
is found and what not.
"""
