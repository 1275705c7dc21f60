"""Memory over the Model Context Protocol (extra `mcp`): docs/mcp.md."""
