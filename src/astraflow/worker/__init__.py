"""The worker process: shells round the agent."""
