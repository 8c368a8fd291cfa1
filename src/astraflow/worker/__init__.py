"""The worker process: shells around the agent."""
