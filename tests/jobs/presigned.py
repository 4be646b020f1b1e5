"""AWS's signature of a presigned request, computed independently from its documentation, to compare a token of MSK's signer with."""

from __future__ import annotations

import hashlib
import hmac
from urllib.parse import parse_qsl, quote, urlencode, urlparse

# The signer adds these after it has signed.
_UNSIGNED = ("X-Amz-Signature", "User-Agent")


def signature(url: str, secret: str) -> str:
    """The expected signature of a presigned GET.

    Args:
        url: URL with its query; its own signature is ignored.
        secret: the secret access key.
    """
    parts = urlparse(url)
    query = {name: value for name, value in parse_qsl(parts.query) if name not in _UNSIGNED}
    canonical = "\n".join(
        [
            "GET",
            parts.path,
            urlencode(sorted(query.items()), quote_via=quote, safe="-_.~"),
            f"host:{parts.netloc}\n",
            "host",
            hashlib.sha256(b"").hexdigest(),
        ]
    )
    scope = query["X-Amz-Credential"].split("/", 1)[1]
    text = "\n".join(["AWS4-HMAC-SHA256", query["X-Amz-Date"], scope, hashlib.sha256(canonical.encode()).hexdigest()])
    key = f"AWS4{secret}".encode()
    for part in scope.split("/"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()
