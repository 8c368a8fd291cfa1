"""What nobody may do (RELIABILITY §8), tried from outside on real processes and sockets."""
