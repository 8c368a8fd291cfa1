"""Protocol 1, still spoken to old workers (PROTOCOL §8): an adapter at the edge.

`adapter.V1Adapter` stands between one socket and the gateway. To the worker it speaks protocol 1, to the gateway it is
a worker of protocol 2. Nothing behind the gateway knows which protocol a worker speaks.
"""
