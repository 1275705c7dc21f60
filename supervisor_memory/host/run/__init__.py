"""How a run begins: who acts in it, and what the user said."""
