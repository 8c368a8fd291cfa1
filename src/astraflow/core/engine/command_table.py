"""What decides each command of an operator. Those that need the sessions as well are decided by the engine itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from astraflow.core.engine.commands import (
    ActivateVersion,
    AnnounceChange,
    CloseResource,
    ConfigurePool,
    DecideApproval,
    DrainWorker,
    ExportResource,
    ExtendResource,
    GiveUpPackage,
    NoteCopy,
    NoteList,
    NoteValue,
    OperatorCommand,
    RebindRun,
    RebindWorker,
    RefusePush,
    RemovePool,
    RequestInstall,
    RequestRemoval,
    ResumeTenant,
    RollBack,
    SendSignal,
    StartRollout,
    SuspendTenant,
    UndrainWorker,
    WantPackage,
)
from astraflow.core.engine.lanes import give_up_package
from astraflow.core.engine.map_values import note_list, note_value
from astraflow.core.engine.messages import decide_approval, send_signal
from astraflow.core.engine.operations import (
    announce_change,
    drain_worker,
    install_on_worker,
    rebind_run,
    rebind_worker,
    remove_from_worker,
    undrain_worker,
)
from astraflow.core.engine.packages import install_wanted
from astraflow.core.engine.pools import configure_pool, refuse_push, remove_pool
from astraflow.core.engine.resources import (
    close_resource,
    export_resource,
    extend_resource,
    note_copy,
)
from astraflow.core.engine.rollouts import activate_version, roll_back, start_rollout
from astraflow.core.engine.tenants import resume_tenant, suspend_tenant
from astraflow.core.engine.view import View

COMMANDS: Final[Mapping[type[OperatorCommand], Callable[[View, Any], None]]] = {
    ActivateVersion: activate_version,
    AnnounceChange: announce_change,
    CloseResource: close_resource,
    ConfigurePool: configure_pool,
    DrainWorker: drain_worker,
    ExportResource: export_resource,
    ExtendResource: extend_resource,
    NoteCopy: note_copy,
    NoteList: note_list,
    NoteValue: note_value,
    RebindRun: rebind_run,
    SendSignal: send_signal,
    DecideApproval: decide_approval,
    RebindWorker: rebind_worker,
    RefusePush: refuse_push,
    RemovePool: remove_pool,
    RequestInstall: install_on_worker,
    RequestRemoval: remove_from_worker,
    RollBack: roll_back,
    StartRollout: start_rollout,
    ResumeTenant: resume_tenant,
    SuspendTenant: suspend_tenant,
    UndrainWorker: undrain_worker,
    WantPackage: install_wanted,
    GiveUpPackage: give_up_package,
}
