"""The LangGraph side: graphs with memory, prompts with notes, tools, stores."""
