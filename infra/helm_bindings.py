"""cdktf's bindings of the Helm provider. Nothing else imports them."""

from __future__ import annotations

from typing import Any

import cdktf_cdktf_provider_helm as _bindings

helm: Any = _bindings
