"""Records what google/go-attestation, which elemental-operator attests hosts with, makes of TPMs; needs Go and swtpm.

Both ways: attestation keys of our software TPM, honest and forged ones, are judged by go-attestation, which challenges the
honest ones; and a host by go-attestation on swtpm registers, and is challenged by us.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from base64 import b64encode
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from support import tpms
from support.swtpm import software_device

from slipway.credentials.tpm import attestation
from slipway.credentials.tpm.device import TPMDevice
from slipway.credentials.tpm.software import SoftwareTPM
from slipway.lab.programs.cache import cache_root

VERSION = "v0.6.1"
HERE = Path(__file__).parent
GOLDEN = HERE.parent / f"golden/tpm/go-attestation-{VERSION}.json"
SECRETS = (b"\x0d" * 32, b"\x16" * 32)
"""Two whose keys are found early, so that the tests that derive them are short."""


def oracle() -> Path:
    work = cache_root() / "build/goattestation" / VERSION
    work.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(HERE / "goattestation/main.go", work / "main.go")
    (work / "go.mod").write_text(f"module oracle\n\ngo 1.24\n\nrequire github.com/google/go-attestation {VERSION}\n")
    environment = {**os.environ, "CGO_ENABLED": "0", "GOWORK": "off"}
    subprocess.run(["go", "mod", "tidy"], cwd=work, env=environment, check=True, stderr=subprocess.DEVNULL)
    subprocess.run(["go", "build", "-p", "1", "-o", "oracle", "."], cwd=work, env=environment, check=True)
    return work / "oracle"


def judged(program: Path) -> list[dict[str, Any]]:
    """Registrations of ours, and what go-attestation says of each."""
    one, other = map(SoftwareTPM, SECRETS)
    rows = [
        {"name": "honest", "secret": SECRETS[0].hex(), "AK": one.attestation_key()},
        {"name": "the attestation key of another host", "secret": SECRETS[0].hex(), "AK": other.attestation_key()},
        *({"name": name, "secret": SECRETS[0].hex(), "AK": made()} for name, made in {**tpms.FORGERIES, **tpms.STRICTER}.items()),
    ]
    questions = [json.dumps({"EK": one.endorsement_pem.decode(), "AK": row["AK"]}) for row in rows]
    done = subprocess.run([str(program), "judge"], input="\n".join(questions), capture_output=True, text=True, check=True)
    return [{**row, **json.loads(line)} for row, line in zip(rows, done.stdout.splitlines(), strict=True)]


def registered(program: Path) -> dict[str, Any]:
    """A host by go-attestation, and what its TPM says to challenges of ours."""
    with tempfile.TemporaryDirectory() as folder, software_device(Path(folder), "startup-clear") as path:
        # Before go-attestation leaves its keys in the TPM.
        with TPMDevice(path) as device:
            ours = attestation.verify(device.endorsement_pem, device.attestation_key()).hash
        host = subprocess.Popen([str(program), "host", path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert host.stdin is not None
        assert host.stdout is not None
        row: dict[str, Any] = json.loads(host.stdout.readline())
        key = attestation.read_endorsement(row["EK"].encode())
        secret = attestation.new_secret()
        foreign = SoftwareTPM(SECRETS[0])
        challenges = {
            "ours": attestation.challenge(key, row["AK"], secret),
            "about another attestation key": attestation.challenge(key, foreign.attestation_key(), secret),
            "for another endorsement key": attestation.challenge(attestation.read_endorsement(foreign.endorsement_pem), row["AK"], secret),
        }
        row["ours"] = ours
        row["challenges"] = []
        for name, (credential, seed) in challenges.items():
            blobs = {"Credential": b64encode(credential).decode(), "Secret": b64encode(seed).decode()}
            host.stdin.write(json.dumps(blobs) + "\n")
            host.stdin.flush()
            outcome = json.loads(host.stdout.readline())
            row["challenges"].append({"name": name, "secret": b64encode(secret).decode(), **outcome})
        host.stdin.close()
        host.wait()
    return row


def main() -> None:
    program = oracle()
    recorded = {"judged": judged(program), "registered": registered(program)}
    GOLDEN.parent.mkdir(exist_ok=True)
    GOLDEN.write_text(json.dumps(recorded, indent=1) + "\n")


if __name__ == "__main__":
    main()
