"""Signs tokens as an OpenID provider does."""

import json
import time
from pathlib import Path
from typing import Any, Final

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

ISSUER: Final = "https://issuer.example/realm"
AUDIENCE: Final = "connect"
RSA_KEY: Final = rsa.generate_private_key(65537, 2048)
EC_KEY: Final = ec.generate_private_key(ec.SECP256R1())


def jwks(**keys: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey) -> dict[str, Any]:
    """The public keys by their ids, as a provider serves them."""
    found = []
    for key_id, key in keys.items():
        public: dict[str, Any]
        if isinstance(key, rsa.RSAPrivateKey):
            public = RSAAlgorithm.to_jwk(key.public_key(), as_dict=True) | {"alg": "RS256"}
        else:
            public = ECAlgorithm.to_jwk(key.public_key(), as_dict=True) | {"alg": "ES256"}
        found.append({**public, "kid": key_id, "use": "sig"})
    return {"keys": found}


def jwks_file(folder: Path) -> str:
    """The URL of a file with RSA_KEY as `one`."""
    file = folder / "jwks.json"
    file.write_text(json.dumps(jwks(one=RSA_KEY)))
    return file.as_uri()


def token(*roles: str, key: Any = RSA_KEY, headers: dict[str, Any] | None = None, **claims: Any) -> str:
    """Valid for a minute; a claim of None is left out."""
    algorithm = "ES256" if isinstance(key, ec.EllipticCurvePrivateKey) else "RS256"
    said = {"iss": ISSUER, "aud": AUDIENCE, "sub": "mia", "exp": time.time() + 60, "roles": list(roles)}
    given = {name: value for name, value in (said | claims).items() if value is not None}
    return jwt.encode(given, key, algorithm, {"kid": "one"} if headers is None else headers)
