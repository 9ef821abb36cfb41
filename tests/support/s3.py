"""A real S3 server on a loopback port: S3Proxy on a folder. Its conditional puts are hard links, so they are atomic."""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Mapping
from pathlib import Path
from uuid import uuid4

import pyarrow.fs as pafs

from airflow_provider_mzshare.compute import jars
from airflow_provider_mzshare.compute.java import java_program
from airflow_provider_mzshare.embedded.process import LOOPBACK, ServerProcess, free_ports

SERVER = jars.Jar(
    organisation="org.gaul",
    module="s3proxy",
    revision="4.1.0",
    classifier="jar-with-dependencies",
    file="s3proxy-4.1.0-jar-with-dependencies.jar",
    sha256="a4d025969aaf796616ed4b1e2491d87d455ce84bb28cb9db086b2e6aaa68b48d",
    size=54_955_934,
)
"""Only tests need it: it is not in the package's list (docs/decisions/0026-an-s3-server-for-tests.md)."""
KEY_ID, SECRET = "tests", "only-for-tests"


class S3Server:
    """A server with a bucket. Its objects are in ``folder`` and survive a stop.

    :param folder: made if it is not there.
    :param jar_folder: where jars are kept; the server's is fetched if it is not there.
    """

    def __init__(self, folder: Path, jar_folder: Path) -> None:
        self.folder, self._jars = folder, jar_folder
        self.port = free_ports(1)[0]
        self.bucket = "warehouse"
        self._process: ServerProcess | None = None

    @property
    def endpoint(self) -> str:
        return f"http://{LOOPBACK}:{self.port}"

    def environment(self, endpoint: str | None = None) -> dict[str, str]:
        """What clients of this server read from their environment. :param endpoint: where they go instead."""
        return {
            "AWS_ENDPOINT_URL": endpoint or self.endpoint,
            "AWS_ALLOW_HTTP": "true",
            "AWS_ACCESS_KEY_ID": KEY_ID,
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_REGION": "us-east-1",
            # Nobody is to look for keys or for the region elsewhere.
            "AWS_EC2_METADATA_DISABLED": "true",
        }

    def new_root(self) -> str:
        """A warehouse in which nothing is."""
        return f"s3://{self.bucket}/{uuid4().hex}"

    def start(self) -> S3Server:
        jars.bring([SERVER], self._jars)
        objects = self.folder / "objects"
        objects.mkdir(parents=True, exist_ok=True)
        settings = {
            "s3proxy.endpoint": self.endpoint,
            "s3proxy.authorization": "aws-v4",
            "s3proxy.identity": KEY_ID,
            "s3proxy.credential": SECRET,
            "jclouds.provider": "filesystem-nio2",
            "jclouds.filesystem.basedir": str(objects),
        }
        file = self.folder / "s3proxy.conf"
        file.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        command = [str(java_program()), "-Xmx256m", "-XX:TieredStopAtLevel=1", "-DLOG_LEVEL=warn"]
        self._process = ServerProcess(
            "S3Proxy",
            [*command, "-jar", str(self._jars / SERVER.file), "--properties", str(file)],
            log=self.folder / "s3proxy.log",
            env=_without_aws(os.environ),
        )
        self._process.wait_until(self._answers, 60)
        self._filesystem().create_dir(self.bucket)
        return self

    def stop(self) -> None:
        """``start`` goes on with the same objects on the same port."""
        if self._process:
            self._process.stop()
        self._process = None

    def remove(self) -> None:
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _answers(self) -> bool:
        try:
            socket.create_connection((LOOPBACK, self.port), 1).close()
        except OSError:
            return False
        return True

    def _filesystem(self) -> pafs.S3FileSystem:
        return pafs.S3FileSystem(
            access_key=KEY_ID,
            secret_key=SECRET,
            endpoint_override=f"{LOOPBACK}:{self.port}",
            scheme="http",
            region="us-east-1",
            allow_bucket_creation=True,
        )


def _without_aws(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if not name.startswith("AWS_")}
