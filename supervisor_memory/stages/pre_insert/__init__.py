"""From a turn to candidates for memory: gather by rules, sharpen by a model, keep the messages."""
