"""The commands with which other nodes join, and the text in which ``init`` shows them."""

from __future__ import annotations

from slipway.api.machinery.errors import OperatorError
from slipway.host.progress import WITHHELD


def worker(server: str, pins: list[str], token: str, *, show_token: bool = True) -> str:
    """The lines end as kubeadm's do, with a blank where nothing follows."""
    host_port = server.replace("https://", "")
    hashes = "".join(f"--discovery-token-ca-cert-hash {pin} " for pin in pins)
    return f"kubeadm join {host_port} --token {token if show_token else WITHHELD} \\\n\t{hashes}"


def control_plane(
    server: str, pins: list[str], token: str, certificate_key: str, *, show_token: bool = True, show_certificate_key: bool = True
) -> str:
    key = (
        f"--certificate-key {certificate_key if show_certificate_key else WITHHELD}" if certificate_key or not show_certificate_key else ""
    )
    return f"{worker(server, pins, token, show_token=show_token)}\\\n\t--control-plane {key}"


def one_line(command: str) -> str:
    """A command without the line breaks that it is shown with."""
    return " ".join(command.replace("\\\n", " ").split())


def pins_of(ca_pem: bytes, path: str) -> list[str]:
    from slipway.credentials import x509

    try:
        return x509.public_key_pins(ca_pem)
    except ValueError as error:
        raise OperatorError(f"no CA certificates found in kubeconfig {path}: {error}") from error


def farewell(*, admin_conf: str, join_worker: str, join_control_plane: str, uploaded: bool) -> str:
    """What ``init`` ends with; ``join_control_plane`` is empty where the cluster has no endpoint for all control planes."""
    return "".join(
        (
            _STARTED.format(admin_conf=admin_conf),
            (_SHARED if uploaded else _COPIED).format(command=join_control_plane) if join_control_plane else "",
            f"Then you can join any number of worker nodes by running the following on each as root:\n\n{join_worker}\n",
        )
    )


_STARTED = """
Your Kubernetes control-plane has initialized successfully!

To start using your cluster, you need to run the following as a regular user:

  mkdir -p $HOME/.kube
  sudo cp -i {admin_conf} $HOME/.kube/config
  sudo chown $(id -u):$(id -g) $HOME/.kube/config

Alternatively, if you are the root user, you can run:

  export KUBECONFIG=/etc/kubernetes/admin.conf

You should now deploy a pod network to the cluster.
Run "kubectl apply -f [podnetwork].yaml" with one of the options listed at:
  https://kubernetes.io/docs/concepts/cluster-administration/addons/

"""
_SHARED = """\
You can now join any number of control-plane nodes running the following command on each as root:

  {command}

Please note that the certificate-key gives access to cluster sensitive data, keep it secret!
As a safeguard, uploaded-certs will be deleted in two hours; If necessary, you can use
"kubeadm init phase upload-certs --upload-certs" to reload certs afterward.

"""
_COPIED = """\
You can now join any number of control-plane nodes by copying certificate authorities
and service account keys on each node and then running the following as root:

  {command}

"""
