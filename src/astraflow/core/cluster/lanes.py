"""Lanes: a tenant that one engine cannot serve has several, each in a shard of its own.

Rule 1: lane 0 is the *home* of a tenant. It runs everything that needs one engine for the whole tenant: what has a
        concurrency key or an affinity key, asks for a part of a machine, uses secrets (a signed signal does), waits for
        a person, or needs a package that no worker of another lane has. Triggers start their runs there. Only the home
        refuses a definition: another lane may not know yet what was published a moment ago.
Rule 2: a run stays in its lane for life, and so do its re-runs. What it uses by reference decides its lane.
Rule 3: a request with an idempotency key goes to the lane that the key says, so that whoever repeats it meets the run.
        Which lane a key belongs to is stored before the run is accepted: the first one counts. A new lane takes runs
        only when the home has said that it knows of it (`opening`, then `open`): until then the home stores no keys.
Rule 4: any other run goes to the one with fewer waiting tasks of two lanes that are drawn.
Rule 5: the packages and active versions of a tenant are changed at home. Another lane sees whether they have changed
        before it plans a run: so a run gets the versions that were active when it came, whichever lane it goes to.
Rule 6: a lane that closes gets no new runs; it goes on until all of its own have ended.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, Literal, NamedTuple
from zlib import crc32

import msgspec

from astraflow.core.workflow.plan import Feature, Plan, walk_nodes

if TYPE_CHECKING:
    from random import Random

    from astraflow.core.workflow.plan import ControlStep

HOME_LANE: Final = 0

LaneState = Literal["opening", "open", "closing"]


class LaneSeen(msgspec.Struct, frozen=True):
    """A lane of a tenant, as the store shows it."""

    lane: int
    shard: int
    state: LaneState = "open"


class ReservedKey(NamedTuple):
    """The lane that an idempotency key belongs to, and the request that it was used for."""

    lane: int
    fingerprint: str


class PackageWant(NamedTuple):
    """A package that tasks in lanes other than the home wait for. `problem`: why nobody can install it, as JSON."""

    tenant: str
    name: str
    version: str
    wanted_at: int
    problem: bytes | None


def lane_name(tenant: str, lane: int) -> str:
    """What an engine keeps of a tenant for itself is stored under the name of the lane. No tenant has such a name."""
    return tenant if lane == HOME_LANE else f"{tenant}/{lane}"


def tenant_of_lane(name: str) -> str:
    """The tenant of a lane, by the lane's name."""
    return name.partition("/")[0]


def lane_of_name(name: str) -> int:
    """The number of a lane, by its name."""
    return int(name.partition("/")[2] or HOME_LANE)


def open_lanes(lanes: Sequence[LaneSeen]) -> list[int]:
    """Those that take new runs; the home always does."""
    others = [one.lane for one in lanes if one.state == "open" and one.lane != HOME_LANE]
    return [HOME_LANE, *sorted(others)]


def lane_of_key(key: str, lanes: Sequence[int]) -> int:
    """Where a request with an idempotency key goes, before anybody knows of the key."""
    return lanes[crc32(key.encode("utf-8", "surrogatepass")) % len(lanes)]


def lighter_lane(lanes: Sequence[int], waiting: Mapping[int, int], rng: Random) -> int:
    """Of two lanes that are drawn, the one with fewer waiting tasks; one that nobody tells of has none."""
    if len(lanes) == 1:
        return lanes[0]
    first, second = rng.sample(lanes, 2)
    return min(first, second, key=lambda lane: waiting.get(lane, 0))


def needs_home(plan: Plan) -> bool:
    """Whether a run of this plan must be decided where all of its tenant is known (Rule 1)."""
    if Feature.APPROVAL in plan.features or Feature.KEY_EXPRESSION in plan.features:
        return True
    return any(
        node.concurrency_key is not None
        or node.affinity is not None
        or node.resources is not None
        or node.secrets
        or (node.control is not None and _control_needs_home(node.control))
        for node in walk_nodes(plan)
    )


def _control_needs_home(control: ControlStep) -> bool:
    is_signed = control.signal is not None and control.signal.secret_ref is not None
    return is_signed or control.approval is not None


def packages_of(plan: Plan) -> set[tuple[str, str]]:
    """The package versions that workers must have to run the plan."""
    return {
        (node.package_name, node.package_version)
        for node in walk_nodes(plan)
        if node.control is None and not node.disabled
    }
