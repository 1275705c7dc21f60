"""Experience: lessons of calls that failed and then worked, a guideline a tool, ratings of runs.

A lesson is read by rules where the call that works is heard, and written at once; `understand/lessons/` has
the rules. It is the agent's own: kept in its family, as the tool's words, told to it alone. What it says is
counted as it holds and fails, and what fails is withdrawn. Nothing in here raises into a graph.
"""

from supervisor_memory.upkeep.experience.desk import Experience, Guideline, Rated

__all__ = ["Experience", "Guideline", "Rated"]
