"""What the shells promise, told by examples in virtual time."""
