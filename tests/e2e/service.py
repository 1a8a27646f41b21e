"""A Deployment behind a Service, and a client that asks it all along and writes down every question without an answer."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any, Self

from e2e.labcli import LabCommands

from slipway.workload import alive

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

# What is to outlive the replacement of every node: two Pods on two nodes, one of which is always there.  The program is in an image that
# every OS image has, whatever its version, and answers a moment longer than it has to: who asks learns late that a Pod is going.
LASTING = """apiVersion: apps/v1
kind: Deployment
metadata:
  name: lasting
spec:
  replicas: 2
  selector:
    matchLabels: {{app: lasting}}
  template:
    metadata:
      labels: {{app: lasting}}
    spec:
      affinity:
        podAntiAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
          - labelSelector: {{matchLabels: {{app: lasting}}}}
            topologyKey: kubernetes.io/hostname
      containers:
      - name: server
        image: {image}
        imagePullPolicy: Never
        command: [/usr/bin/python3, -I, -c]
        args:
        - |
          import http.server, os, signal, threading
          class Answer(http.server.BaseHTTPRequestHandler):
              def do_GET(self):
                  self.send_response(200)
                  self.send_header("Content-Length", "2")
                  self.end_headers()
                  self.wfile.write(b"OK")
              def log_message(self, *words):
                  pass
          signal.signal(signal.SIGTERM, lambda *_: threading.Timer(5, os._exit, [0]).start())
          http.server.ThreadingHTTPServer(("", 8080), Answer).serve_forever()
        readinessProbe:
          httpGet: {{path: /health, port: 8080}}
          periodSeconds: 1
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: lasting
spec:
  minAvailable: 1
  selector:
    matchLabels: {{app: lasting}}
---
apiVersion: v1
kind: Service
metadata:
  name: lasting
spec:
  selector: {{app: lasting}}
  ports:
  - port: 80
    targetPort: 8080
"""

# Five questions a second; each failure with its time and reason, the number of questions and the longest time between two answers.
_CLIENT = """
import json, os, sys, time, urllib.request
url, results = sys.argv[1:]
asked, failures, longest, answered = 0, [], 0.0, time.time()
while True:
    asked += 1
    began = time.time()
    try:
        assert urllib.request.urlopen(url, timeout=2).read() == b"OK"
        longest, answered = max(longest, time.time() - answered), time.time()
    except Exception as error:
        failures.append({"time": began, "reason": str(error)})
    with open(results + ".new", "w") as file:
        json.dump({"asked": asked, "failures": failures, "longest": max(longest, time.time() - answered)}, file)
    os.replace(results + ".new", results)
    time.sleep(max(0.0, began + 0.2 - time.time()))
"""


def deploy(lab: LabCommands, kind: str = "Deployment") -> str:
    """The Service's URL, once all of its Pods are ready: two of a Deployment, one on every node of a DaemonSet."""
    image = lab.kubectl("-n kube-system get deployment coredns -o jsonpath='{.spec.template.spec.containers[0].image}'")
    lab.kubectl("apply -f -", stdin=MANIFESTS.format(image=image, **KINDS[kind], kind=kind))
    lab.kubectl(f"rollout status {kind.lower()}/server --timeout=120s")
    return f"http://{lab.kubectl('get service server -o jsonpath={.spec.clusterIP}')}/health"


def deploy_lasting(lab: LabCommands, host: str = "host-1") -> str:
    """The URL of a Service that a drain must not take the last Pod of, once it is there."""
    lab.kubectl("apply -f -", host=host, stdin=LASTING.format(image=alive.DEFAULT_IMAGE))
    lab.kubectl("rollout status deployment/lasting --timeout=180s", host=host)
    return f"http://{lab.kubectl('get service lasting -o jsonpath={.spec.clusterIP}', host=host)}/health"


def start_asking(lab: LabCommands, host: str, url: str) -> None:
    lab.on(host, "cat > /srv/ask.py", stdin=_CLIENT)
    lab.on(host, f"systemd-run --quiet --unit=ask python3 /srv/ask.py {url} /srv/asked.json")


def stop_asking(lab: LabCommands, host: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(lab.on(host, "systemctl stop ask; cat /srv/asked.json"))
    return found


class Asking:
    """Hosts that all ask a Service while the block runs; afterwards ``asked`` and ``failures`` of all, and the worst ``longest`` of one."""

    def __init__(self, lab: LabCommands, hosts: Collection[str], url: str) -> None:
        self._lab, self._hosts, self._url = lab, hosts, url
        self.asked, self.longest = 0, 0.0
        self.failures: list[dict[str, Any]] = []

    def __enter__(self) -> Self:
        for host in self._hosts:
            start_asking(self._lab, host, self._url)
        return self

    def __exit__(self, *_: object) -> None:
        for host in self._hosts:
            found = stop_asking(self._lab, host)
            self.asked += found["asked"]
            self.failures += [{"host": host, **failure} for failure in found["failures"]]
            self.longest = max(self.longest, found["longest"])
