"""What a site has agreed on with its OpenID Connect issuer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from astraflow.core.security.oidc import GroupRoles, OidcFlows

if TYPE_CHECKING:
    from astraflow.scheduler.oidc_issuer import OidcIssuer


class OidcTerms:
    """What a site has agreed on with its issuer."""

    def __init__(
        self, issuer: OidcIssuer, roles: GroupRoles, groups_claim: str, flows: OidcFlows
    ) -> None:
        self.issuer = issuer
        self.roles = roles
        self.groups_claim = groups_claim
        self.flows = flows
