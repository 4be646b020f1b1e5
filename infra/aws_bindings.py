"""cdktf's bindings of the AWS provider, loaded per service.

The package's own ``__init__`` imports each of its 2,000 modules, which takes 14 s of CPU. An empty package replaces it, and a module is
loaded on first access: ``aws.s3_bucket.S3Bucket(...)``. No other module imports the bindings.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from types import ModuleType
from typing import Any

PACKAGE = "cdktf_cdktf_provider_aws"


class _LazyPackage(ModuleType):
    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return importlib.import_module(f"{PACKAGE}.{name}")


def _lazy_package() -> ModuleType:
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or spec.submodule_search_locations is None:
        raise ModuleNotFoundError(f"No module named '{PACKAGE}'", name=PACKAGE)
    package = _LazyPackage(PACKAGE, spec.loader.__doc__ if spec.loader else None)
    package.__path__ = list(spec.submodule_search_locations)
    package.__spec__ = spec
    return package


# The modules are typed as Any: otherwise mypy would read all 2,000 of them.
aws: Any = sys.modules.setdefault(PACKAGE, _lazy_package())
