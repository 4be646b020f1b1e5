"""One client a process and environment."""

from __future__ import annotations

import os
import warnings
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import pytest
from botocore.loaders import JSONFileLoader

from penstock.jobs.storage.objects import Objects
from penstock.jobs.storage.s3 import client, shared_client

ENVIRONMENT = {
    "AWS_REGION": "eu-central-1",
    "AWS_ENDPOINT_URL": "http://127.0.0.1:1",
    "AWS_ACCESS_KEY_ID": "a",
    "AWS_SECRET_ACCESS_KEY": "b",
}


@pytest.fixture(autouse=True)
def _anywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)


def test_all_folders_of_a_process_share_a_client() -> None:
    one, other = (Objects(f"s3a://checkpoints/{name}") for name in ("one", "other"))
    assert one._s3 is other._s3 is shared_client()


def test_another_environment_has_another_client(monkeypatch: pytest.MonkeyPatch) -> None:
    before = shared_client()
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:2")
    assert (before.meta.endpoint_url, shared_client().meta.endpoint_url) == ("http://127.0.0.1:1", "http://127.0.0.1:2")


def test_a_forked_process_has_a_client_of_its_own() -> None:
    """Two processes would read each other's answers from one connection."""
    before, (reading, writing) = shared_client(), os.pipe()
    with warnings.catch_warnings():
        # Python 3.12 and later warn of a fork beside other threads, which pytest-xdist has; nothing of them is used.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        try:
            os.write(writing, b"own" if shared_client() is not before else b"shared")
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    try:
        assert os.read(reading, 10) == b"own"
    finally:
        os.close(reading)
        os.close(writing)


def test_clients_that_threads_make_at_once_read_the_model_of_s3_once(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    load = JSONFileLoader.load_file

    def counted(loader: JSONFileLoader, path: str) -> Any:
        read.append(path)
        return load(loader, path)

    monkeypatch.setattr(JSONFileLoader, "load_file", counted)
    # A session of its own: those of other tests have the model already.
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:3")
    together = Barrier(4)

    def made(timeout_s: int) -> tuple[str, int]:
        together.wait(30)
        own = client(attempts=1, timeout_s=timeout_s)
        # botocore sets the attributes of a Config from its arguments, which its types do not say.
        config: Any = own.meta.config
        return own.meta.endpoint_url, config.read_timeout

    with ThreadPoolExecutor(4) as threads:
        clients = list(threads.map(made, range(1, 5)))
    assert clients == [("http://127.0.0.1:3", timeout_s) for timeout_s in range(1, 5)]
    assert sum("/s3/" in path and path.endswith("service-2") for path in read) == 1
