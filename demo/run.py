"""Shows the node tool at work, without root: a whole ``init --dry-run``, phase by phase, with all that it makes.

It reads the event stream of ``slipway init -o json``, as any program could.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

CLUSTER = Path(__file__).with_name("cluster.yaml")


def main() -> int:
    slipway = Path(sys.executable).with_name("slipway")
    with tempfile.TemporaryDirectory(prefix="slipway-demo-") as folder:
        command = [
            str(slipway),
            "init",
            "--dry-run",
            "--ignore-preflight-errors=all",
            "--upload-certs",
            "-o",
            "json",
            "--config",
            str(CLUSTER),
        ]
        print("$ slipway init --dry-run --upload-certs --config demo/cluster.yaml\n")
        began = time.perf_counter()
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, "KUBEADM_INIT_DRYRUN_DIR": folder}) as process:
            assert process.stdout is not None
            for line in process.stdout:
                _show(json.loads(line))
        if process.returncode != 0:
            return process.returncode
        elapsed = time.perf_counter() - began
        print("\nCertificates")
        for path in sorted(Path(folder).rglob("*.crt")):
            print(f"  {path.relative_to(folder)!s:30} {_certificate(path)}")
        print("\nOther files")
        for path in sorted(path for path in Path(folder).rglob("*") if path.is_file() and path.suffix not in (".crt", ".key")):
            print(f"  {path.relative_to(folder)!s:30} {path.stat().st_size:>6} bytes")
        print(f"\nA control plane of Kubernetes v1.35.4, computed in {elapsed:.2f} s. Nothing on this machine was changed.")
    return 0


def _show(event: dict[str, Any]) -> None:
    kind = event["event"]
    if kind == "finished":
        print(f"  {event['seconds'] * 1000:7.1f} ms  {event['phase']}")
    elif kind == "skipped":
        print(f"        –     {event['phase']} (skipped: {event['reason']})")
    elif kind == "failed":
        print(f"  {event['seconds'] * 1000:7.1f} ms  {event['phase']} FAILED: {event['reason']}")
    elif kind == "message" and event["text"].startswith("[dryrun] Would perform action"):
        action, resource = re.findall(r'action (\w+) on resource "([\w]+)"', event["text"])[0]
        print(f"              · {action} {resource}")
    elif kind == "output":
        for name in re.findall(r"^metadata:\n(?:  .*\n)*?  name: (\S+)", event["text"], re.MULTILINE):
            print(f"                  {name}")


def _certificate(path: Path) -> str:
    from cryptography import x509

    certificate = x509.load_pem_x509_certificate(path.read_bytes())
    days = (certificate.not_valid_after_utc - certificate.not_valid_before_utc).days
    return f"{certificate.subject.rfc4514_string():62} {days:>5} days"


if __name__ == "__main__":
    sys.exit(main())
