"""Webhooks over real TLS on the loopback: what an API server sends, and what it gets."""

from __future__ import annotations

import asyncio
import ssl
from base64 import b64decode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slipway.api.cluster.kinds import KUBEADM_CONFIG, Kind
from slipway.api.machinery.errors import OperatorError
from slipway.api.machinery.patches import jsonpatch
from slipway.runtime.webhook import admission, certificates
from slipway.runtime.webhook.admission import AdmissionRequest, Defaulter, Problem, Validator, Verdict
from slipway.runtime.webhook.server import Folder, Pair, WebhookServer

NOW = datetime.now(UTC)
_SET = certificates.renewed(None, ["localhost", "127.0.0.1"], NOW)
_OTHER = certificates.renewed(None, ["localhost", "127.0.0.1"], NOW)
_WIDGET = Kind("e.test.slipway.io", "v1", "Widget", "widgets")


class _Given:
    """A source of certificates whose content a test changes, or makes fail."""

    def __init__(self) -> None:
        self.value: Pair | OperatorError = Pair(_SET.certificate, _SET.key)

    async def pair(self) -> Pair:
        if isinstance(self.value, OperatorError):
            raise self.value
        return self.value


def _validate(request: AdmissionRequest) -> Verdict:
    size = ((request.object or {}).get("spec") or {}).get("size")
    if size == "boom":
        raise RuntimeError("boom")
    if size == "refused":
        raise OperatorError("sizes cannot be looked up")
    if request.operation == "DELETE":
        return Verdict(warnings=[f"{(request.old or {})['metadata']['name']} goes"])
    if isinstance(size, int):
        return Verdict(warnings=["w" * 300] if size > 10 else [])
    return Verdict([Problem("spec.size", "FieldValueInvalid", f'spec.size: Invalid value: "{size}": must be a number')])


def _default(request: AdmissionRequest) -> dict[str, Any]:
    manifest = request.object or {}
    manifest.setdefault("spec", {}).setdefault("size", 3)
    return manifest


def _convert(manifest: dict[str, Any], desired: str) -> dict[str, Any]:
    if desired.endswith("v9"):
        raise OperatorError(f"there is no {desired}")
    return {**manifest, "apiVersion": desired, "metadata": {"name": "changed", "labels": {"was": manifest["apiVersion"].partition("/")[2]}}}


@asynccontextmanager
async def _served(source: Any, **options: float) -> AsyncIterator[WebhookServer]:
    server = WebhookServer(source, address="127.0.0.1", port=0, **options)
    server.add(Validator(_WIDGET, _validate), Defaulter(_WIDGET, _default))
    server.add_conversion(_convert)
    stop = asyncio.Event()
    task = asyncio.create_task(server.run(stop))
    try:
        async with asyncio.timeout(10):
            while server.ready() and not task.done():
                await asyncio.sleep(0.01)
        if task.done():
            await task
        yield server
    finally:
        stop.set()
        await asyncio.wait_for(task, 10)


async def _post(server: WebhookServer, path: str, document: object, authorities: bytes = _SET.authorities) -> tuple[int, Any]:
    context = ssl.create_default_context(cadata=authorities.decode())
    async with (
        aiohttp.ClientSession() as session,
        session.post(
            f"https://localhost:{server.port}{path}",
            data=document if isinstance(document, bytes) else msgspec.json.encode(document),
            headers={"Content-Type": "application/json"},
            ssl=context,
        ) as answer,
    ):
        return answer.status, msgspec.json.decode(await answer.read())


def _review(operation: str = "CREATE", **request: Any) -> dict[str, Any]:
    """As kube-apiserver 1.35 sends it."""
    return {
        "kind": "AdmissionReview",
        "apiVersion": "admission.k8s.io/v1",
        "request": {
            "uid": "705ab4f5-6393-11e8-b7cc-42010a800002",
            "kind": {"group": _WIDGET.group, "version": "v1", "kind": "Widget"},
            "resource": {"group": _WIDGET.group, "version": "v1", "resource": "widgets"},
            "name": "w",
            "namespace": "n",
            "operation": operation,
            "userInfo": {"username": "admin"},
            "object": None,
            "oldObject": None,
            "dryRun": False,
            "options": {"apiVersion": "meta.k8s.io/v1", "kind": "CreateOptions"},
            **request,
        },
    }


def _widget(size: object) -> dict[str, Any]:
    return {"apiVersion": _WIDGET.api_version, "kind": "Widget", "metadata": {"name": "w"}, "spec": {"size": size}}


def test_paths_and_names_are_those_of_cluster_apis_managers() -> None:
    """bootstrap/kubeadm/config/webhook/manifests.yaml, 1.14.2."""
    validator, defaulter = Validator(KUBEADM_CONFIG, _validate), Defaulter(KUBEADM_CONFIG, _default)
    assert validator.path == "/validate-bootstrap-cluster-x-k8s-io-v1beta2-kubeadmconfig"
    assert defaulter.path == "/mutate-bootstrap-cluster-x-k8s-io-v1beta2-kubeadmconfig"
    assert validator.name == "validation.kubeadmconfig.bootstrap.cluster.x-k8s.io"
    assert defaulter.name == "default.kubeadmconfig.bootstrap.cluster.x-k8s.io"


@pytest.mark.asyncio
async def test_validation() -> None:
    path = Validator(_WIDGET, _validate).path
    async with _served(_Given()) as server:
        assert await _post(server, path, _review(object=_widget(3))) == (
            200,
            {
                "apiVersion": "admission.k8s.io/v1",
                "kind": "AdmissionReview",
                "response": {"uid": "705ab4f5-6393-11e8-b7cc-42010a800002", "allowed": True},
            },
        )
        _, refused = await _post(server, path, _review(object=_widget("x")))
        _, warned = await _post(server, path, _review(object=_widget(11)))
        _, deleted = await _post(server, path, _review("DELETE", oldObject=_widget(3)))
    response = refused["response"]
    assert response["allowed"] is False
    assert response["status"] == {
        "metadata": {},
        "status": "Failure",
        "code": 422,
        "reason": "Invalid",
        "message": 'Widget.e.test.slipway.io "w" is invalid: spec.size: Invalid value: "x": must be a number',
        "details": {
            "name": "w",
            "group": "e.test.slipway.io",
            "kind": "Widget",
            "causes": [{"reason": "FieldValueInvalid", "message": 'Invalid value: "x": must be a number', "field": "spec.size"}],
        },
    }
    assert warned["response"]["allowed"] is True
    assert warned["response"]["warnings"] == ["w" * 256]
    assert deleted["response"]["warnings"] == ["w goes"]


@pytest.mark.asyncio
async def test_defaulting_answers_with_a_json_patch() -> None:
    given = {"apiVersion": _WIDGET.api_version, "kind": "Widget", "metadata": {"name": "w"}}
    path = Defaulter(_WIDGET, _default).path
    async with _served(_Given()) as server:
        _, answer = await _post(server, path, _review(object=given))
        _, complete = await _post(server, path, _review(object=_widget(1)))
        _, deletion = await _post(server, path, _review("DELETE", oldObject=given))
    response = answer["response"]
    assert response["patchType"] == "JSONPatch"
    assert jsonpatch.apply(given, msgspec.json.decode(b64decode(response["patch"]))) == {**given, "spec": {"size": 3}}
    assert complete["response"] == {"uid": complete["response"]["uid"], "allowed": True}
    assert deletion["response"]["allowed"] is True


@pytest.mark.asyncio
async def test_an_error_of_ours_is_not_the_users() -> None:
    path = Validator(_WIDGET, _validate).path
    async with _served(_Given()) as server:
        _, failed = await _post(server, path, _review(object=_widget("boom")))
        _, refused = await _post(server, path, _review(object=_widget("refused")))
    assert failed["response"]["allowed"] is False
    assert failed["response"]["status"]["code"] == 500
    assert "boom" not in failed["response"]["status"]["message"]
    assert refused["response"]["status"]["code"] == 400
    assert refused["response"]["status"]["message"] == "sizes cannot be looked up"


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("document", "message"),
    [
        (b"rubbish", "the body is not JSON"),
        ({"kind": "Pod"}, "the body is not an AdmissionReview"),
        ({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1beta1"}, "only admission.k8s.io/v1 is answered"),
        ({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1"}, "has no request with a uid"),
    ],
)
async def test_what_is_no_review_gets_a_status(document: object, message: str) -> None:
    async with _served(_Given()) as server:
        code, answer = await _post(server, Validator(_WIDGET, _validate).path, document)
    assert code == 400
    assert (answer["kind"], answer["code"], answer["reason"]) == ("Status", 400, "BadRequest")
    assert message in answer["message"]


def _conversion(desired: str, *objects: Any) -> dict[str, Any]:
    request = {"uid": "u1", "desiredAPIVersion": desired, "objects": list(objects)}
    return {"kind": "ConversionReview", "apiVersion": "apiextensions.k8s.io/v1", "request": request}


@pytest.mark.asyncio
async def test_conversion_keeps_the_metadata_but_for_labels_and_annotations() -> None:
    """The API server refuses anything else: apiextensions' validateConvertedObject and restoreObjectMeta."""
    given = {**_widget(1), "metadata": {"name": "w", "uid": "7", "annotations": {"a": "b"}}}
    already = {**_widget(2), "apiVersion": "e.test.slipway.io/v2"}
    async with _served(_Given()) as server:
        _, answer = await _post(server, "/convert", _conversion("e.test.slipway.io/v2", given, already))
    assert answer["response"] == {
        "uid": "u1",
        "result": {"metadata": {}, "status": "Success"},
        "convertedObjects": [
            {
                "apiVersion": "e.test.slipway.io/v2",
                "kind": "Widget",
                "metadata": {"name": "w", "uid": "7", "labels": {"was": "v1"}},
                "spec": {"size": 1},
            },
            already,
        ],
    }


@pytest.mark.asyncio
async def test_a_conversion_that_fails_says_why() -> None:
    async with _served(_Given()) as server:
        _, answer = await _post(server, "/convert", _conversion("e.test.slipway.io/v9", _widget(1)))
        code, bad = await _post(server, "/convert", {"kind": "ConversionReview", "apiVersion": "apiextensions.k8s.io/v1"})
    assert answer["response"] == {
        "uid": "u1",
        "result": {"metadata": {}, "status": "Failure", "message": "there is no e.test.slipway.io/v9"},
    }
    assert (code, bad["reason"]) == (400, "BadRequest")


@pytest.mark.asyncio
async def test_a_page_of_a_large_list_is_converted() -> None:
    objects = [{**_widget("x" * 10_000), "metadata": {"name": f"w{number}"}} for number in range(500)]
    async with _served(_Given()) as server:
        _, answer = await _post(server, "/convert", _conversion("e.test.slipway.io/v2", *objects))
    assert [item["metadata"]["name"] for item in answer["response"]["convertedObjects"]] == [f"w{number}" for number in range(500)]


async def _until(server: WebhookServer, authorities: bytes) -> None:
    """Until a client that trusts ``authorities`` alone is served."""
    async with asyncio.timeout(10):
        while True:
            try:
                await _post(server, "/convert", _conversion("e.test.slipway.io/v2"), authorities)
                return
            except aiohttp.ClientConnectorCertificateError:
                await asyncio.sleep(0.02)


@pytest.mark.asyncio
async def test_a_new_certificate_is_shown_without_a_restart_and_connections_go_on() -> None:
    source = _Given()
    async with _served(source, look=0.05) as server:
        url = f"https://localhost:{server.port}/convert"
        body = msgspec.json.encode(_conversion("e.test.slipway.io/v2"))
        context = ssl.create_default_context(cadata=_SET.authorities.decode())
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=1)) as session:
            async with session.post(url, data=body, ssl=context) as answer:
                await answer.read()
            source.value = Pair(_OTHER.certificate, _OTHER.key)
            await _until(server, _OTHER.authorities)
            async with session.post(url, data=body, ssl=context) as answer:
                assert answer.status == 200, "the old connection still stands"
        with pytest.raises(aiohttp.ClientConnectorCertificateError):
            await _post(server, "/convert", {}, _SET.authorities)


@pytest.mark.asyncio
@pytest.mark.parametrize("wrong", [Pair(_SET.certificate, _OTHER.key), Pair(b"", b""), OperatorError("no Secret today")])
async def test_a_certificate_that_cannot_be_used_leaves_the_old_one(wrong: Pair | OperatorError, caplog: pytest.LogCaptureFixture) -> None:
    source = _Given()
    async with _served(source, look=0.02) as server:
        source.value = wrong
        async with asyncio.timeout(10):
            while "could not be renewed" not in caplog.text:
                await asyncio.sleep(0.02)
        assert server.ready() == ""
        assert (await _post(server, "/convert", _conversion("e.test.slipway.io/v2")))[0] == 200


@pytest.mark.asyncio
async def test_it_is_not_ready_before_there_is_a_certificate() -> None:
    source = _Given()
    source.value = OperatorError("no Secret today")
    server = WebhookServer(source, address="127.0.0.1", port=0, retry=0.02)
    stop = asyncio.Event()
    task = asyncio.create_task(server.run(stop))
    async with asyncio.timeout(10):
        while server.ready() != "no Secret today":
            await asyncio.sleep(0.01)
        source.value = Pair(_SET.certificate, _SET.key)
        while server.ready():
            await asyncio.sleep(0.01)
        stop.set()
        await task
    assert server.ready()


@pytest.mark.asyncio
@pytest.mark.parametrize("served", [False, True], ids=["before it serves", "while it serves"])
async def test_a_source_that_does_not_answer_does_not_hold_up_the_end(served: bool) -> None:
    class Stuck(_Given):
        asked = 0

        async def pair(self) -> Pair:
            self.asked += 1
            if self.asked > served:
                await asyncio.Event().wait()
            return await super().pair()

    source = Stuck()
    server = WebhookServer(source, address="127.0.0.1", port=0, look=0.01)
    stop = asyncio.Event()
    task = asyncio.create_task(server.run(stop))
    async with asyncio.timeout(5):
        while source.asked <= served:
            await asyncio.sleep(0.01)
        stop.set()
        await task


@pytest.mark.asyncio
async def test_a_port_that_is_taken_is_an_error_that_says_so() -> None:
    async with _served(_Given()) as first:
        second = WebhookServer(_Given(), address="127.0.0.1", port=first.port)
        with pytest.raises(OperatorError, match=f"cannot serve webhooks on port {first.port}.*--webhook-port"):
            await asyncio.wait_for(second.run(asyncio.Event()), 10)


@pytest.mark.asyncio
async def test_a_folder_is_read_again(tmp_path: Path) -> None:
    (tmp_path / "tls.crt").write_bytes(_SET.certificate)
    (tmp_path / "tls.key").write_bytes(_SET.key)
    async with _served(Folder(tmp_path), look=0.05) as server:
        await _until(server, _SET.authorities)
        # Between the two writes the pair does not fit, and the old one stays.
        (tmp_path / "tls.crt").write_bytes(_OTHER.certificate)
        (tmp_path / "tls.key").write_bytes(_OTHER.key)
        await _until(server, _OTHER.authorities)


@pytest.mark.asyncio
async def test_a_folder_without_a_certificate_is_named(tmp_path: Path) -> None:
    with pytest.raises(OperatorError, match=f"cannot read the webhooks' certificate {tmp_path}/tls.crt: No such file"):
        await Folder(tmp_path).pair()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({}, {"a": 1}),
        ({"a": 1}, {}),
        ({"a": 1}, {"a": True}),
        ({"a": [1, 2]}, {"a": [1, 3]}),
        ({"a": [1, 2]}, {"a": [1]}),
        ({"a": {"b/c": 1, "d~e": 2}}, {"a": {"b/c": 2, "f": None}}),
        ({"a": [{"b": 1}, {"c": 2}]}, {"a": [{"b": 1, "x": "y"}, {"c": [2]}]}),
        ({"a": None}, {"a": {}}),
    ],
)
def test_a_json_patch_makes_what_it_is_to_make_of_examples(before: Any, after: Any) -> None:
    operations = admission.json_patch(before, after)
    assert jsonpatch.equal(jsonpatch.apply(before, operations), after)
    assert admission.json_patch(after, after) == []


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.text("a~/b0", max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("a~/b0", max_size=2), inner, max_size=3),
    max_leaves=12,
)
_OBJECTS = st.dictionaries(st.text("a~/b0", max_size=2), _JSON, max_size=4)


@given(_OBJECTS, _OBJECTS)
def test_a_json_patch_makes_what_it_is_to_make(before: dict[str, Any], after: dict[str, Any]) -> None:
    assert jsonpatch.equal(jsonpatch.apply(before, admission.json_patch(before, after)), after)
