"""Every number of the session protocol, with its name and its reason.

Durations are seconds unless the name says otherwise. Nothing else in the package writes a naked
number where one of these is meant.
"""

from __future__ import annotations

from typing import Final

# --- frames (PROTOCOL §1) ---

# One text message. Large enough for an inline result (2 MiB) escaped at its worst, small enough
# that a thousand hostile connections cannot fill the memory of a small machine at once.
MAX_FRAME_BYTES: Final = 4 * 1024 * 1024
# What an envelope may take of a frame beside its payload; the sender leaves this much room.
ENVELOPE_ROOM_BYTES: Final = 4 * 1024
# Deeper values overflow the stack of recursive readers (ours, the browser's, the store's JSON).
MAX_DEPTH: Final = 64
# Numbers beyond this lose digits in a reader whose numbers are doubles.
INT_MAX: Final = 2**53
MAX_CPU: Final = 1_000_000
"""Processors, or graphics cards, of one machine."""
INT_MIN: Final = -(2**53)
SEQ_MAX: Final = 2**53 - 1
# User data may use what a 64-bit integer, signed or not, can hold; PostgreSQL and Go agree.
USER_INT_MAX: Final = 2**64 - 1
USER_INT_MIN: Final = -(2**63)
# Ids, names, tenants, versions, codes: anything longer is an attack or a mistake.
NAME_CHARS: Final = 256
# Reasons and messages. The HTTP contract allows 4 KiB; stacks and contexts have more.
TEXT_CHARS: Final = 64 * 1024
MAX_FLAGS: Final = 16
# An inline result beyond this must be an artifact (seed 003: inline payload limit).
INLINE_RESULT_BYTES: Final = 2 * 1024 * 1024

# --- one connection (PROTOCOL §3: "A peer that does not read is owed nothing") ---

# What may wait to be sent to a peer, before its session is open and after. Above it nothing more is read of it.
MAX_OWED_FIRST_BYTES: Final = 1024**2
MAX_OWED_BYTES: Final = 8 * 1024**2
# So long may it owe us its reading; then the connection is closed (1008).
UNREAD_TIMEOUT_S: Final = 10.0
# A message before the credential is known: a handshake with the longest token has a sixth of it.
MAX_FIRST_BYTES: Final = 64 * 1024
# Of one message. The largest in pieces of 4 KiB has a quarter of them.
MAX_FRAGMENTS: Final = 4096
# What is handled of one connection before all others have their turn: about 5 ms.
TURN_FRAMES: Final = 64
# So many bytes count as one more frame.
TURN_BYTES: Final = 16 * 1024

MAX_BUNDLE: Final = 64
"""Frames in one message."""
BUNDLE_BYTES: Final = 64 * 1024
"""A bundle with more is ended by its sender."""

# --- close codes (RFC 6455 §7.4.1) ---

CLOSE_NORMAL: Final = 1000
CLOSE_PROTOCOL_ERROR: Final = 1002
CLOSE_BAD_TEXT: Final = 1007
CLOSE_POLICY: Final = 1008
CLOSE_TOO_BIG: Final = 1009
CLOSE_TRY_LATER: Final = 1013

# --- the opening (PROTOCOL §2) ---

PROTOCOLS_SUPPORTED: Final = (2,)
# What a peer is told that asks for another: 1 is spoken by an adapter in front of the gateway (PROTOCOL §8).
PROTOCOLS_SPOKEN: Final = (1, 2)
# "A handshake not finished in 10 s is closed": a silent peer must not hold a connection.
HANDSHAKE_TIMEOUT_S: Final = 10.0
# An opening frame (handshake, resume, register) that is not answered is sent again this often; the
# answer to a repeated one is repeated.
OPENING_REPEAT_S: Final = 2.0
# Connections of one gateway, opened or not; beyond it a new one is rejected.
MAX_CONNECTIONS: Final = 10_000
# "flapping (> 5/min) is refused with back-off": two processes with one identity take the session
# from each other for ever otherwise.
FLAP_MAX_TAKEOVERS: Final = 5
FLAP_WINDOW_S: Final = 60.0
FLAP_RETRY_AFTER_S: Final = 30.0
# "10 refusals in 10 s -> close 1008": a peer that sends rubbish faster than that is broken.
REFUSALS_MAX: Final = 10
REFUSALS_WINDOW_S: Final = 10.0
# A token is renewed while it still has this much of its life left.
TOKEN_RENEW_BEFORE_S: Final = 300.0

# "a replaced one stays good for 30 s after its successor was used": a resume that is under way ends well.
TOKEN_REPLACED_S: Final = 30.0
# Uses within that time that are told apart; of a session that resumes more often, older tokens end sooner.
TOKEN_USES_KEPT: Final = 64

# --- what a register may claim ("capabilities lying": clamped or refused) ---

MAX_PARALLEL: Final = 1024
MAX_PACKAGES: Final = 1000
MAX_LABELS: Final = 64
# Of one tenant. A worker keeps a session with each.
MAX_LANES: Final = 64
# Attempts running or held. Twice a full send queue: a worker that was offline holds results.
MAX_INVENTORY: Final = 16_384
MAX_ARTIFACTS: Final = 1000
MAX_RESOURCE_REFS: Final = 256
MAX_CHUNKS: Final = 1000

# --- reconnecting (PROTOCOL §2) ---

BACKOFF_BASE_S: Final = 0.2
BACKOFF_CAP_S: Final = 30.0
# "at most 2 s while attempts are held": the fence is 18 s away, many tries must fit before it.
BACKOFF_HELD_CAP_S: Final = 2.0
# "at most 5 s while the last session ended by a broken link": after a take-over the idle workers are
# wanted too; a thousand of them are 200 handshakes a second.
BACKOFF_BROKEN_CAP_S: Final = 5.0
# "INVALID_TOKEN on handshake -> backoff >= 30 s": a wrong token does not become right by itself.
AUTH_BACKOFF_MIN_S: Final = 30.0

# --- the window (PROTOCOL §3) ---

# 256 frames at 10 ms of commit and ack keep 25,000 frames/s in flight: beyond every budget.
WINDOW: Final = 256
# A peer may offer more than we use; a bitmap for more than this is refused unread.
MAX_WINDOW: Final = 4096
RETRANSMIT_BASE_S: Final = 0.2
RETRANSMIT_CAP_S: Final = 5.0
# Each wait is stretched by up to this share, so that frames lost together do not return together.
RETRANSMIT_JITTER: Final = 0.25
# After the sixth transmission stayed unacknowledged the link is broken: close and resume.
RETRANSMIT_ATTEMPTS: Final = 6
# "A frame that the bitmap calls arrived but that `ack_seq` does not cover within 30 s is sent again": a peer that says
# so and commits nothing must not hold a window for ever. Longer than any commit takes.
ARRIVED_TIMEOUT_S: Final = 30.0
# "Acks are coalesced: at the latest after 10 ms or a quarter window".
ACK_DELAY_S: Final = 0.010
# Frames that wait behind the window. A full queue pushes back on the producer.
SEND_QUEUE: Final = 8192
# "feedback takes at most a quarter of it and is shed first".
FEEDBACK_SHARE: Final = 4
FEEDBACK_QUEUE: Final = 1024
# Committed frames of a peer that are recognised by (id, corr) when a new session repeats them: those
# whose ack may not have arrived, which is a window of them.
DEDUPE_CACHE_SIZE: Final = WINDOW
# "if the same first unacked frame closes the link twice it is replaced by that failure".
POISON_STRIKES: Final = 2

# --- liveness (PROTOCOL §5.4, §7) ---

HEARTBEAT_INTERVAL_S: Final = 5.0
# "jitter only shortens it": a longer gap would count as a missed heartbeat.
HEARTBEAT_JITTER: Final = 0.1
# Heartbeats that come faster than this are dropped and counted: a flood is not liveness.
HEARTBEAT_MIN_GAP_S: Final = 0.05
# So many may come at once after a silence that was long enough for them.
HEARTBEAT_BURST: Final = 1024.0
# "A heartbeat unanswered for 3 s closes the link": a half-open connection is replaced long before
# the fence.
HEARTBEAT_ANSWER_TIMEOUT_S: Final = 3.0
HEARTBEATS_MISSED_DEGRADED: Final = 2
HEARTBEATS_MISSED_LOST: Final = 3
LEASE_TTL_S: Final = 30.0
# PROTOCOL §7: a worker that reports so much of its memory or disk in use is drained by itself.
PRESSED_MEM_PCT: Final = 90.0
PRESSED_DISK_PCT: Final = 95.0
# "0.6 x ttl after the send time": a clock rate off by 5 % and a kill within 2 s still fit.
FENCE_RATIO: Final = 0.6
# Send times that are remembered for `lease.since`: heartbeats and registers of one lease time.
SENT_TIMES_KEPT: Final = 1024
# "A dispatch not acked in 5 s is withdrawn".
DISPATCH_ACK_TIMEOUT_S: Final = 5.0
# A drain deadline beyond a week is a mistake in units.
DRAIN_DEADLINE_MAX_S: Final = 7 * 86_400.0
