"""librdkafka's security settings in the words of the Java client; reads PEM files, and quotes none in an error."""

from __future__ import annotations

from collections.abc import Mapping

from airflow_provider_mzshare.errors import BadConnection

_LOGIN_MODULES = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}
# A quoted JAAS value ends at a line end and takes C escapes.
_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n", "\r": r"\r"})
_PEM_LIMIT = 4 << 20


def sasl(values: Mapping[str, str]) -> dict[str, str]:
    if "sasl.mechanism" not in values:
        return {}
    mechanism = values["sasl.mechanism"]
    user, password = (values[key].translate(_ESCAPES) for key in ("sasl.username", "sasl.password"))
    line = f'{_LOGIN_MODULES[mechanism]} required username="{user}" password="{password}";'
    return {"sasl.mechanism": mechanism, "sasl.jaas.config": line}


def tls(name: str, values: Mapping[str, str]) -> dict[str, str]:
    """PEM texts, not files: Java wants key and certificate in one file, and executors may lack the file."""
    options: dict[str, str] = {}
    if authorities := _pem(name, values, "ssl.ca"):
        options |= {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": authorities}
    if key := _pem(name, values, "ssl.key"):
        options |= {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.certificate.chain": _pem(name, values, "ssl.certificate"),
            "ssl.keystore.key": _plain_key(name, key, values.get("ssl.key.password")),
        }
    algorithm = values.get("ssl.endpoint.identification.algorithm")
    if algorithm:
        options["ssl.endpoint.identification.algorithm"] = "" if algorithm == "none" else algorithm
    return options


def _plain_key(name: str, pem: str, password: str | None) -> str:
    """PKCS#8, not encrypted: Java reads no other form, and before Java 19 none of today's encryptions."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives import serialization

    encrypted = "ENCRYPTED" in pem
    if encrypted and password is None:
        raise BadConnection(f"connection {name!r}: the private key is encrypted and 'ssl.key.password' is missing")
    try:
        key = serialization.load_pem_private_key(pem.encode(), password.encode() if encrypted and password else None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        reason = "'ssl.key.password' does not open it" if encrypted else "it is not a PEM private key"
        raise BadConnection(f"connection {name!r}: the private key cannot be read: {reason}") from None
    form = serialization.PrivateFormat.PKCS8
    return key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption()).decode()


def _pem(name: str, values: Mapping[str, str], what: str) -> str:
    if inline := values.get(f"{what}.pem"):
        return inline
    key = f"{what}.location"
    path = values.get(key)
    if not path:
        return ""
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read(_PEM_LIMIT + 1)
    except (OSError, UnicodeDecodeError) as problem:
        reason = problem.strerror if isinstance(problem, OSError) else "it is not text"
        raise BadConnection(f"connection {name!r}: the file of {key!r} cannot be read: {reason}") from None
    if "-----BEGIN " not in text or len(text) > _PEM_LIMIT:
        raise BadConnection(f"connection {name!r}: the file of {key!r} is not a PEM file")
    return text
