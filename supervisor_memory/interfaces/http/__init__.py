"""Memory by HTTP: `app.create_app` over one SupervisorMemory, and the command `serve`. Extra `server`."""
