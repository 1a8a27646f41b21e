"""``certs generate-csr``: keys and requests for a certificate authority that is somewhere else."""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING

from slipway.api.kubeadm import addresses
from slipway.api.machinery.errors import OperatorError
from slipway.credentials import keys
from slipway.kube import kubeconfig
from slipway.node import kubeconfigs, paths
from slipway.node.pki import specs, store

if TYPE_CHECKING:
    from slipway.credentials.profile import Profile
    from slipway.node.context import NodeContext
    from slipway.node.kubeconfigs import KubeconfigSpec


def generate(ctx: NodeContext, directory: str = paths.KUBERNETES_DIR) -> None:
    """Make the keys and requests of every certificate, and kubeconfig files that wait for theirs.

    Requests for etcd's certificates are made with an external etcd too, as kubeadm does it.  Nothing is written
    unless everything can be.
    """
    leaves = [spec for spec in specs.CERTIFICATES if spec.ca]
    folder = ctx.config.cluster.certificates_dir
    for spec in leaves:
        _refuse_existing(ctx, f"key or CSR {folder}/{spec.base_name}", store.key_path(ctx, spec.base_name), _path(folder, spec.base_name))
    for file in kubeconfigs.KUBECONFIGS:
        path = posixpath.join(directory, file.file_name)
        _refuse_existing(ctx, f"kube config: {path}", path)
        _refuse_existing(ctx, f"csr: {path}", f"{path}.key", _path(directory, file.file_name))
    ctx.keys.expect(ctx.config.cluster.key_algorithm, len(leaves) + len(kubeconfigs.KUBECONFIGS))

    ctx.progress.say(f"generating keys and CSRs in {folder}")
    for spec in leaves:
        wanted = specs.profile(spec, ctx.config, ctx.release)
        request, private = _request(ctx, wanted)
        ctx.host.make_dir(posixpath.dirname(store.key_path(ctx, spec.base_name)), 0o755)
        ctx.host.write(store.key_path(ctx, spec.base_name), private)
        ctx.host.write(_path(folder, spec.base_name), request)
        ctx.progress.say(f"  {spec.base_name}")
    ctx.progress.say(f"generating keys and CSRs in {directory}")
    for file in kubeconfigs.KUBECONFIGS:
        _write_kubeconfig(ctx, file, directory)
        ctx.progress.say(f"  {file.file_name}")


def _write_kubeconfig(ctx: NodeContext, file: KubeconfigSpec, directory: str) -> None:
    """A kubeconfig with a key and without certificates, and the request for its client certificate."""
    wanted = kubeconfigs.profile(file, ctx.config)
    request, private = _request(ctx, wanted)
    # kubeadm does not apply ControlPlaneKubeletLocalMode here: the kubelet's file leads to the cluster's endpoint.
    url = addresses.local_api_url(ctx.config.local_api_endpoint) if file.local else addresses.control_plane_url(ctx.config)
    partial = kubeconfig.document(
        server=url,
        cluster=ctx.config.cluster.cluster_name,
        user=wanted.common_name,
        ca=b"",
        credentials={"client-key-data": kubeconfig.encoded(private)},
    )
    ctx.host.write(posixpath.join(directory, file.file_name), kubeconfig.text(partial, ctx.release).encode())
    ctx.host.write(_path(directory, file.file_name), request)


def _request(ctx: NodeContext, wanted: Profile) -> tuple[bytes, bytes]:
    """The request and its key, as PEM."""
    from slipway.credentials import x509

    key = ctx.keys.take(ctx.config.cluster.key_algorithm)
    return x509.pem(x509.request(wanted, key)), keys.private_pem(key)


def _path(folder: str, base_name: str) -> str:
    return posixpath.join(folder, f"{base_name}.csr")


def _refuse_existing(ctx: NodeContext, what: str, *candidates: str) -> None:
    if any(ctx.host.exists(path) for path in candidates):
        raise OperatorError(f"file already exists: {what}; move it away to have a new one made")
