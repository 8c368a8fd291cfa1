"""TLS on real sockets: the certificate of the scheduler, and workers that sign in with one of their own."""
