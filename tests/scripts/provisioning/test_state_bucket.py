from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from penstock.infra.environment import Environment
from penstock.infra.environment_file import load
from penstock.scripts.provisioning import state_bucket
from penstock.scripts.provisioning.aws_access import AwsAccess
from penstock.scripts.provisioning.errors import BucketOfAnother

TAKEN = "<Error><Code>BucketAlreadyExists</Code><Message>taken</Message></Error>"


@contextmanager
def s3(answers: Mapping[str, tuple[int, Mapping[str, str], str]]) -> Iterator[AwsAccess]:
    """An S3 with one response per method; it records the requests' headers."""

    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            assert self.command != "HEAD" or self.headers["x-amz-expected-bucket-owner"] == "000000000000"
            status, headers, body = answers[self.command]
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body.encode())

        do_HEAD = do_PUT = answer  # noqa: N815

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        data = load("local").at(f"http://127.0.0.1:{server.server_port}").model_dump(by_alias=True, exclude_none=True)
        data["spec"]["state"] = {"bucket": "the-state"}
        try:
            yield AwsAccess(Environment.model_validate(data))
        finally:
            server.shutdown()
            thread.join()


def test_a_bucket_that_another_account_owns_is_refused_before_anything_is_set() -> None:
    with s3({"HEAD": (403, {}, "")}) as access:
        for use in (state_bucket.bootstrap, state_bucket.check):
            with pytest.raises(BucketOfAnother) as raised:
                use(access)
            assert raised.value.given == "the-state: S3 returns 403"
            assert raised.value.exit_code == 2


def test_a_name_that_somebody_took_meanwhile_is_refused() -> None:
    with s3({"HEAD": (404, {}, ""), "PUT": (409, {}, TAKEN)}) as access:
        with pytest.raises(BucketOfAnother) as raised:
            state_bucket.bootstrap(access)
        assert "BucketAlreadyExists" in raised.value.given


def test_a_bucket_in_another_region_is_refused() -> None:
    with s3({"HEAD": (200, {"x-amz-bucket-region": "eu-west-1"}, "")}) as access:
        with pytest.raises(BucketOfAnother) as raised:
            state_bucket.check(access)
        assert raised.value.given == "the-state: it is in eu-west-1"
