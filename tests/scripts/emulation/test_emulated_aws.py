from __future__ import annotations

import http.client
import os
import signal
import socket
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from penstock.scripts.emulation.emulated_aws import EmulatedAws
from penstock.scripts.errors import EmulatorDied, EmulatorNotReady, PortInUse

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

pytestmark = pytest.mark.emulated

# moto accepts any signature; the scope selects the service.
SIGNED = "AWS4-HMAC-SHA256 Credential=emulated/20261121/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=0"


@pytest.fixture(scope="module")
def aws(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmulatedAws]:
    with EmulatedAws(log=tmp_path_factory.mktemp("aws") / "aws.log", account="123456780000") as running:
        yield running


def _s3(aws: EmulatedAws) -> S3Client:
    return boto3.client(
        "s3",
        endpoint_url=aws.endpoint,
        region_name=aws.region,
        aws_access_key_id="emulated",
        aws_secret_access_key="emulated",
        config=Config(s3={"addressing_style": "path"}, retries={"total_max_attempts": 1}),
    )


@pytest.fixture
def bucket(aws: EmulatedAws, request: pytest.FixtureRequest) -> str:
    name = f"b{abs(hash(request.node.name))}"
    _s3(aws).create_bucket(Bucket=name)
    return name


def _code(call: Callable[[], object]) -> tuple[int, str]:
    with pytest.raises(ClientError) as raised:
        call()
    response = raised.value.response
    return response["ResponseMetadata"]["HTTPStatusCode"], response["Error"]["Code"]


def _winners(calls: list[Callable[[], object]]) -> Counter[str]:
    """The results of concurrent calls."""
    # A list: two threads may add at the same time.
    outcomes: list[str] = []
    together = threading.Barrier(len(calls))

    def run(call: Callable[[], object]) -> None:
        together.wait()
        try:
            call()
        except ClientError as error:
            outcomes.append(error.response["Error"]["Code"])
        else:
            outcomes.append("won")

    threads = [threading.Thread(target=run, args=(call,)) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return Counter(outcomes)


def test_it_is_the_account_that_was_asked_for(aws: EmulatedAws) -> None:
    own = aws.environment()
    sts = boto3.client(
        "sts",
        endpoint_url=own["AWS_ENDPOINT_URL"],
        region_name=own["AWS_REGION"],
        aws_access_key_id=own["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=own["AWS_SECRET_ACCESS_KEY"],
    )
    assert sts.get_caller_identity()["Account"] == "123456780000"


def test_the_users_own_aws_is_hidden_from_what_runs_in_its_environment(aws: EmulatedAws) -> None:
    base = {"PATH": "/bin", "AWS_PROFILE": "production", "AWS_SESSION_TOKEN": "real", "AWS_ENDPOINT_URL_S3": "https://real"}
    laid = aws.environment(base)
    assert laid["PATH"] == "/bin"
    assert laid["AWS_ENDPOINT_URL"] == aws.endpoint
    assert not {"AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_ENDPOINT_URL_S3"} & set(laid)
    assert laid["AWS_SHARED_CREDENTIALS_FILE"] == laid["AWS_CONFIG_FILE"] == os.devnull


def test_a_port_in_use_is_named_with_how_to_choose_another(aws: EmulatedAws, tmp_path: Path) -> None:
    with pytest.raises(PortInUse) as raised:
        EmulatedAws(log=tmp_path / "log", port=aws.port, port_option="--aws-port").start()
    assert str(aws.port) in raised.value.path
    assert "--aws-port" in raised.value.fix
    assert raised.value.exit_code == 5


def test_an_emulator_that_dies_is_told_with_the_end_of_its_log(tmp_path: Path) -> None:
    with EmulatedAws(log=tmp_path / "log") as own:
        own.check()
        os.kill(own.pid, signal.SIGKILL)
        while own.alive():
            os.sched_yield()
        with pytest.raises(EmulatorDied) as raised:
            own.check()
    assert "code -9" in raised.value.given
    assert "ready on port" in raised.value.given


def test_an_emulator_that_does_not_listen_in_time_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(EmulatorNotReady) as raised:
        EmulatedAws(log=tmp_path / "log", start_limit_s=0).start()
    assert "within 0 s" in raised.value.need


def test_a_log_of_an_earlier_run_does_not_mislead(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("penstock emulated aws ready on port 1\n")
    with EmulatedAws(log=log) as own:
        assert own.port != 1


def test_a_connection_is_kept_open_over_many_requests(aws: EmulatedAws, bucket: str) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", aws.port)
    sockets = set()
    for method, body in (("PUT", b"x" * 100_000), ("HEAD", None), ("GET", None), ("DELETE", None), ("GET", None)):
        connection.request(method, f"/{bucket}/key", body=body, headers={"Authorization": SIGNED})
        answer = connection.getresponse()
        answer.read()
        assert connection.sock is not None, method
        sockets.add(connection.sock.getsockname())
    connection.close()
    assert len(sockets) == 1


def test_a_client_that_waits_for_100_continue_is_told_once(aws: EmulatedAws, bucket: str) -> None:
    head = f"PUT /{bucket}/key HTTP/1.1\r\nHost: localhost\r\nAuthorization: {SIGNED}\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n"
    with socket.create_connection(("127.0.0.1", aws.port)) as connection, connection.makefile("rb") as answers:
        connection.sendall(head.encode())
        assert answers.readline() == b"HTTP/1.1 100 Continue\r\n"
        assert answers.readline() == b"\r\n"
        connection.sendall(b"body")
        assert answers.readline() == b"HTTP/1.1 200 OK\r\n"


def test_an_upload_that_is_cut_short_leaves_no_object(aws: EmulatedAws, bucket: str) -> None:
    for length in ("Content-Length: 1000\r\n\r\n", "Transfer-Encoding: chunked\r\n\r\n3e8\r\n"):
        head = f"PUT /{bucket}/key HTTP/1.1\r\nHost: localhost\r\nAuthorization: {SIGNED}\r\n{length}half"
        with socket.create_connection(("127.0.0.1", aws.port)) as connection:
            connection.sendall(head.encode())
            connection.shutdown(socket.SHUT_WR)
            assert connection.recv(1) == b""
    assert _code(lambda: _s3(aws).head_object(Bucket=bucket, Key="key")) == (404, "404")


def test_a_body_in_chunks_is_read_whole(aws: EmulatedAws, bucket: str) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", aws.port)
    connection.request("PUT", f"/{bucket}/key", body=iter([b"one ", b"two"]), headers={"Authorization": SIGNED}, encode_chunked=True)
    assert connection.getresponse().status == 200
    connection.close()
    assert _s3(aws).get_object(Bucket=bucket, Key="key")["Body"].read() == b"one two"


def test_of_conditional_writes_at_the_same_time_exactly_one_wins(aws: EmulatedAws, bucket: str) -> None:
    clients = [_s3(aws) for _ in range(4)]
    for number in range(20):

        def put(client: S3Client, key: str = f"key-{number}") -> Callable[[], object]:
            return lambda: client.put_object(Bucket=bucket, Key=key, Body=os.urandom(100_000), IfNoneMatch="*")

        assert _winners([put(client) for client in clients]) == {"won": 1, "PreconditionFailed": 3}


def test_of_conditional_completions_at_the_same_time_exactly_one_wins(aws: EmulatedAws, bucket: str) -> None:
    clients = [_s3(aws) for _ in range(4)]
    for number in range(20):
        calls = [_completion(client, bucket, f"key-{number}") for client in clients]
        assert _winners(calls) == {"won": 1, "PreconditionFailed": 3}


def _completion(client: S3Client, bucket: str, key: str) -> Callable[[], object]:
    upload = client.create_multipart_upload(Bucket=bucket, Key=key)["UploadId"]
    tag = client.upload_part(Bucket=bucket, Key=key, UploadId=upload, PartNumber=1, Body=os.urandom(100_000))["ETag"]
    return lambda: client.complete_multipart_upload(
        Bucket=bucket, Key=key, UploadId=upload, MultipartUpload={"Parts": [{"PartNumber": 1, "ETag": tag}]}, IfNoneMatch="*"
    )


def test_an_upload_that_is_gone_is_no_such_upload(aws: EmulatedAws, bucket: str) -> None:
    s3 = _s3(aws)
    upload = s3.create_multipart_upload(Bucket=bucket, Key="key")["UploadId"]
    tag = s3.upload_part(Bucket=bucket, Key="key", UploadId=upload, PartNumber=1, Body=b"x")["ETag"]
    s3.abort_multipart_upload(Bucket=bucket, Key="key", UploadId=upload)
    parts = {"Parts": [{"PartNumber": 1, "ETag": tag}]}
    gone = (404, "NoSuchUpload")
    assert _code(lambda: s3.complete_multipart_upload(Bucket=bucket, Key="key", UploadId=upload, MultipartUpload=parts)) == gone  # type: ignore[arg-type]
    assert _code(lambda: s3.upload_part(Bucket=bucket, Key="key", UploadId=upload, PartNumber=1, Body=b"x")) == gone
    assert _code(lambda: s3.abort_multipart_upload(Bucket=bucket, Key="key", UploadId=upload)) == gone


def test_a_tls_only_bucket_takes_requests_unless_they_say_that_they_came_without_tls(aws: EmulatedAws, bucket: str) -> None:
    s3 = _s3(aws)
    arn = f"arn:aws:s3:::{bucket}"
    deny = f'"Effect": "Deny", "Principal": "*", "Action": "s3:*", "Resource": ["{arn}", "{arn}/*"]'
    condition = '"Condition": {"Bool": {"aws:SecureTransport": "false"}}'
    s3.put_bucket_policy(Bucket=bucket, Policy=f'{{"Version": "2012-10-17", "Statement": [{{{deny}, {condition}}}]}}')
    s3.put_object(Bucket=bucket, Key="key", Body=b"x")
    assert s3.get_object(Bucket=bucket, Key="key")["Body"].read() == b"x"
    connection = http.client.HTTPConnection("127.0.0.1", aws.port)
    connection.request("GET", f"/{bucket}/key", headers={"Authorization": SIGNED, "X-Forwarded-Proto": "http"})
    assert connection.getresponse().status == 403
    connection.close()
    s3.delete_bucket_policy(Bucket=bucket)
