"""The sliding window of one direction of a session: the sending half and the receiving half.

The rules (PROTOCOL §3), both directions alike:

1. `seq` starts at 0 for a new session and grows by one per frame. A frame gets it when it enters
   the window, not when it is queued: what never got a seq can still be withdrawn.
2. `ack_seq` is the highest contiguous seq whose effect is *committed* (R1). A sender forgets a
   frame by `ack_seq` alone.
3. `ack_bitmap` only means "arrived, stop resending" (R2): a frame in a reorder buffer dies with the
   receiver, so the sender must still have it.
4. At most `min(window, peer's recv_window)` frames are unacknowledged; the rest queue behind,
   bounded. A full queue pushes back on the producer and never drops. Feedback is the exception: it
   comes last, takes at most a quarter of the window, and is shed first, counted.
5. Unacknowledged frames are sent again after 200 ms, doubling, jittered, capped at 5 s; after six
   transmissions the link is broken.
6. Received frames are delivered in order, once. Duplicates are dropped and acknowledged again,
   frames beyond the window are dropped and counted.
7. An ack that is late, absurd or outside the window changes nothing and is counted.

Neither half knows which role it plays, so that both peers keep the same rules.
"""

from __future__ import annotations

from astraflow.core.protocol.receive_window import Ack, ReceiveWindow
from astraflow.core.protocol.send_window import Frame, QueueFull, SendWindow

__all__ = ["Ack", "Frame", "QueueFull", "ReceiveWindow", "SendWindow"]
