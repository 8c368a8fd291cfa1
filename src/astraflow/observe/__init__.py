"""What operators see: log lines, metrics, and nothing secret in either."""
