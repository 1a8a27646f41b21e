"""A Deployment behind a Service, and a client that asks it all along and writes down every question without an answer."""

from __future__ import annotations

import json
from typing import Any

from e2e.labcli import LabCommands

# A web server that every lab has: CoreDNS answers OK at /health.
MANIFESTS = """apiVersion: v1
kind: ConfigMap
metadata:
  name: server
data:
  Corefile: |
    .:1053 {{
      health :8080
    }}
---
apiVersion: apps/v1
kind: {kind}
metadata:
  name: server
spec:
{replicas}  selector:
    matchLabels: {{app: server}}
  template:
    metadata:
      labels: {{app: server}}
    spec:
{tolerations}      containers:
      - name: server
        image: {image}
        args: [-conf, /etc/server/Corefile]
        readinessProbe:
          httpGet: {{path: /health, port: 8080}}
          periodSeconds: 1
        volumeMounts:
        - {{name: config, mountPath: /etc/server}}
      volumes:
      - name: config
        configMap: {{name: server}}
---
apiVersion: v1
kind: Service
metadata:
  name: server
spec:
  selector: {{app: server}}
  ports:
  - port: 80
    targetPort: 8080
"""

KINDS = {
    "Deployment": {"replicas": "  replicas: 2\n", "tolerations": ""},
    "DaemonSet": {"replicas": "", "tolerations": "      tolerations:\n      - operator: Exists\n"},
}

# Five questions a second; each failure with its time and reason, and the number of questions at the end.
_CLIENT = """
import json, os, sys, time, urllib.request
url, results = sys.argv[1:]
asked, failures = 0, []
while True:
    asked += 1
    began = time.time()
    try:
        assert urllib.request.urlopen(url, timeout=2).read() == b"OK"
    except Exception as error:
        failures.append({"time": began, "reason": str(error)})
    with open(results + ".new", "w") as file:
        json.dump({"asked": asked, "failures": failures}, file)
    os.replace(results + ".new", results)
    time.sleep(max(0.0, began + 0.2 - time.time()))
"""


def deploy(lab: LabCommands, kind: str = "Deployment") -> str:
    """The Service's URL, once all of its Pods are ready: two of a Deployment, one on every node of a DaemonSet."""
    image = lab.kubectl("-n kube-system get deployment coredns -o jsonpath='{.spec.template.spec.containers[0].image}'")
    lab.kubectl("apply -f -", stdin=MANIFESTS.format(image=image, **KINDS[kind], kind=kind))
    lab.kubectl(f"rollout status {kind.lower()}/server --timeout=120s")
    return f"http://{lab.kubectl('get service server -o jsonpath={.spec.clusterIP}')}/health"


def start_asking(lab: LabCommands, host: str, url: str) -> None:
    lab.on(host, "cat > /srv/ask.py", stdin=_CLIENT)
    lab.on(host, f"systemd-run --quiet --unit=ask python3 /srv/ask.py {url} /srv/asked.json")


def stop_asking(lab: LabCommands, host: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(lab.on(host, "systemctl stop ask; cat /srv/asked.json"))
    return found
