"""The requests of a client, by topic: runs, workflows, workers, packages, node types, resources, access.

A method has the signature and the docstring of the function of `requests` that it is made of. `Client` responds at
once, `AsyncClient` with an awaitable.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from inspect import Signature, signature
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar, overload

from astraflow.client import (
    access_requests,
    audit_requests,
    discovery_requests,
    message_requests,
    pin_requests,
    pool_requests,
    requests,
    rerun_requests,
    scope_requests,
    secret_requests,
    timeline_requests,
    trigger_requests,
    version_requests,
)
from astraflow.client.requests import ApiDownload, ApiRequest, Pages

if TYPE_CHECKING:
    from astraflow.client.asynchronous import AsyncClient
    from astraflow.client.blocking import Client

P = ParamSpec("P")
C = TypeVar("C", bound="AsyncClient | Client")
Item = TypeVar("Item")
Response = TypeVar("Response")
Now = TypeVar("Now")
Later = TypeVar("Later")


class _Api(Generic[C]):
    """A group of requests of a client."""

    def __init__(self, client: C) -> None:
        self.client = client


class _Method(Generic[P, Now, Later]):
    """A method that makes something of its arguments and gives it to a method of the client."""

    def __init__(self, make: Callable[P, Any], via: str) -> None:
        self._make = make
        self._via = via
        self._name = via
        # What `make` returns is the request; what the method returns depends on the client.
        self._signature = signature(make).replace(return_annotation=Signature.empty)

    def __set_name__(self, _: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, api: _Api[Client], _: Any) -> Callable[P, Now]: ...
    @overload
    def __get__(self, api: _Api[AsyncClient], _: Any) -> Callable[P, Later]: ...
    def __get__(self, api: Any, _: Any) -> Callable[P, Any]:
        def call(*args: P.args, **named: P.kwargs) -> Any:
            return getattr(api.client, self._via)(self._make(*args, **named))

        call.__name__ = call.__qualname__ = self._name
        call.__doc__ = self._make.__doc__
        call.__signature__ = self._signature  # type: ignore[attr-defined]
        return call


def _call(make: Callable[P, ApiRequest[Response]]) -> _Method[P, Response, Awaitable[Response]]:
    return _Method(make, "perform")


def _list(make: Callable[P, Pages[Item]]) -> _Method[P, Iterator[Item], AsyncIterator[Item]]:
    return _Method(make, "iterate")


def _fetch(make: Callable[P, ApiDownload]) -> _Method[P, int, Awaitable[int]]:
    return _Method(make, "fetch")


class RunApi(_Api[C]):
    """Runs: look at them, cancel them, read their output."""

    list = _call(requests.list_runs)
    iterate = _list(requests.iterate_runs)
    get = _call(requests.get_run)
    node = _call(requests.get_node)
    items = _list(scope_requests.iterate_items)
    body = _call(scope_requests.get_body)
    definition = _call(requests.get_definition)
    cancel = _call(requests.cancel_run)
    rerun = _call(rerun_requests.rerun)
    compare = _call(rerun_requests.compare_runs)
    cancel_many = _call(rerun_requests.cancel_many)
    rerun_many = _call(rerun_requests.rerun_many)
    rebind = _call(requests.rebind_run)
    signal = _call(message_requests.send_signal)
    logs = _list(requests.iterate_logs)
    artifacts = _call(scope_requests.list_artifacts)
    timeline = _list(timeline_requests.iterate_timeline)


class ApprovalApi(_Api[C]):
    """Nodes that wait for a person."""

    list = _call(message_requests.list_approvals)
    iterate = _list(message_requests.iterate_approvals)
    decide = _call(message_requests.decide_approval)


class WorkflowApi(_Api[C]):
    """Saved workflows."""

    list = _call(requests.list_workflows)
    iterate = _list(requests.iterate_workflows)
    get = _call(requests.get_workflow)
    create = _call(requests.create_workflow)
    save = _call(requests.save_workflow)
    delete = _call(requests.delete_workflow)
    validate = _call(requests.validate_workflow)
    drafts = _list(version_requests.iterate_drafts)
    draft = _call(version_requests.get_draft)
    save_draft = _call(version_requests.save_draft)
    discard_draft = _call(version_requests.discard_draft)
    publish = _call(version_requests.publish_draft)
    versions = _list(version_requests.iterate_versions)
    restore = _call(version_requests.restore_version)
    diff = _call(version_requests.diff_workflow)
    pins = _call(pin_requests.list_pins)
    pin = _call(pin_requests.pin_result)
    unpin = _call(pin_requests.unpin_result)


class TriggerApi(_Api[C]):
    """Triggers of saved workflows."""

    list = _call(trigger_requests.list_triggers)
    iterate = _list(trigger_requests.iterate_triggers)
    of_workflow = _call(trigger_requests.list_workflow_triggers)
    get = _call(trigger_requests.get_trigger)
    enable = _call(trigger_requests.enable_trigger)
    disable = _call(trigger_requests.disable_trigger)
    run = _call(trigger_requests.run_trigger)
    history = _call(trigger_requests.list_trigger_history)
    iterate_history = _list(trigger_requests.iterate_trigger_history)


class WorkerApi(_Api[C]):
    """Workers: list them, and give them commands."""

    list = _call(requests.list_workers)
    iterate = _list(requests.iterate_workers)
    get = _call(requests.get_worker)
    command = _call(requests.command_worker)


class PoolApi(_Api[C]):
    """HTTP worker pools."""

    list = _call(pool_requests.list_pools)
    iterate = _list(pool_requests.iterate_pools)
    get = _call(pool_requests.get_pool)
    put = _call(pool_requests.put_pool)
    delete = _call(pool_requests.delete_pool)


class SecretApi(_Api[C]):
    """Secrets, without their values."""

    list = _call(secret_requests.list_secrets)
    iterate = _list(secret_requests.iterate_secrets)
    put = _call(secret_requests.put_secret)
    delete = _call(secret_requests.delete_secret)
    rotate_key = _call(secret_requests.rotate_secrets_key)


class PackageApi(_Api[C]):
    """Packages: publish them, withdraw them, choose the version that counts."""

    list = _call(requests.list_packages)
    iterate = _list(requests.iterate_packages)
    get = _call(requests.get_package)
    version = _call(requests.get_package_version)
    publish = _call(requests.publish_package)
    yank = _call(requests.yank_package)
    unyank = _call(requests.unyank_package)
    activate = _call(requests.activate_package)
    start_rollout = _call(requests.start_rollout)
    rollouts = _call(requests.list_rollouts)
    roll_back = _call(requests.roll_back)


class AuditApi(_Api[C]):
    """Who did what."""

    list = _call(audit_requests.list_audit)
    iterate = _list(audit_requests.iterate_audit)
    verify = _call(audit_requests.verify_audit)


class CatalogApi(_Api[C]):
    """The node types that workflows can use."""

    list = _call(requests.list_node_types)
    iterate = _list(requests.iterate_node_types)
    get = _call(requests.get_node_type)


class ResourceApi(_Api[C]):
    """What workers keep, and the artifacts among it."""

    list = _call(requests.list_resources)
    iterate = _list(requests.iterate_resources)
    get = _call(requests.get_resource)
    extend = _call(requests.extend_resource)
    close = _call(requests.close_resource)
    share = _call(requests.share_artifact)
    download = _fetch(requests.download_artifact)


class TokenApi(_Api[C]):
    """API tokens."""

    create = _call(access_requests.create_token)
    list = _call(access_requests.list_tokens)
    iterate = _list(access_requests.iterate_tokens)
    revoke = _call(access_requests.revoke_token)


class UserApi(_Api[C]):
    """Users who log in with a password."""

    create = _call(access_requests.create_user)
    list = _call(access_requests.list_users)
    iterate = _list(access_requests.iterate_users)
    get = _call(access_requests.get_user)
    change = _call(access_requests.change_user)
    delete = _call(access_requests.delete_user)


class TenantApi(_Api[C]):
    """Tenants, for an admin of the site."""

    create = _call(access_requests.create_tenant)
    list = _call(access_requests.list_tenants)
    iterate = _list(access_requests.iterate_tenants)
    get = _call(access_requests.get_tenant)
    change = _call(access_requests.change_tenant)
    suspend = _call(access_requests.suspend_tenant)
    resume = _call(access_requests.resume_tenant)
    lanes = _call(access_requests.get_lanes)
    set_lanes = _call(access_requests.set_lanes)


class DiscoveryApi(_Api[C]):
    """What serves here, what comes with it, and where something is."""

    about = _call(discovery_requests.get_about)
    examples = _call(discovery_requests.list_examples)
    example = _call(discovery_requests.get_example)
    search = _call(discovery_requests.search)
