"""A scheduler and workers as processes: the one harness of every test that starts them.

`process` is one program with its logs and the processes below it; `system` a scheduler and workers with a client;
`command_line` what a user types, `astra up` included; `postgres` a database server of a test's own.
"""
