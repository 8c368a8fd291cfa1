"""How fast it is here: a scheduler and a worker of their own, measured from a client, beside the bare loop."""
