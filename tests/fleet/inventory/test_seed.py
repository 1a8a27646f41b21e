"""Images with which hosts register: what is in them, how long they are kept, and that they are made once."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from fleet.inventory.management import SPACE, Management, condition

from slipway.api.cluster.kinds import MACHINE_REGISTRATION, SECRET, SEED_IMAGE
from slipway.api.cluster.meta import Condition
from slipway.api.elemental.registration import MachineRegistration, MachineRegistrationStatus
from slipway.api.elemental.seedimage import SeedImage, SeedImageSpec, SeedImageStatus
from slipway.api.machinery.errors import OperatorError
from slipway.api.machinery.yaml import goyaml
from slipway.credentials import tls
from slipway.fleet.inventory.registration.server import RegistrationServer
from slipway.fleet.inventory.seed import content, iso, storage
from slipway.fleet.inventory.seed.reconciler import Moment, Step, decide
from slipway.kube.aio import PatchType
from slipway.kube.errors import UnreachableError

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
REGISTERED = MachineRegistration(status=MachineRegistrationStatus(registration_url="https://x/elemental/registration/t"))
CONFIG = {"elemental": {"registration": {"url": "https://x", "ca-cert": "PEM"}}}


def image(state: str = "", *, url: str = "", retrigger: bool = False, minutes: int = 60, completed: str = "") -> SeedImage:
    conditions = [Condition(type="SeedImageReady", status="True", last_transition_time=completed)] if completed else []
    return SeedImage(
        spec=SeedImageSpec(retrigger_build=retrigger, cleanup_after_minutes=minutes),
        status=SeedImageStatus(state=state, download_url=url, conditions=conditions),
    )


@pytest.mark.parametrize(
    ("given", "registration", "wanted"),
    [
        (image(), None, Moment(Step.WAIT)),
        (image(), MachineRegistration(), Moment(Step.WAIT)),
        (image(), REGISTERED, Moment(Step.INITIALIZE)),
        (image("NotStarted"), REGISTERED, Moment(Step.INITIALIZE)),
        (image("Initialized"), REGISTERED, Moment(Step.BUILD)),
        (image("Started"), REGISTERED, Moment(Step.BUILD)),
        (image("Started"), None, Moment(Step.WAIT)),
        (image("Failed"), REGISTERED, Moment(Step.REST)),
        (image("Completed", url="u", completed="2026-01-01T11:30:00Z"), REGISTERED, Moment(Step.KEEP, NOW + timedelta(minutes=30))),
        (image("Completed", url="u", completed="2026-01-01T11:00:00Z"), REGISTERED, Moment(Step.CLEAN_UP)),
        (image("Completed", url="u", completed="2020-01-01T11:00:00Z", minutes=0), REGISTERED, Moment(Step.REST)),
        (image("Completed", completed="2020-01-01T11:00:00Z"), REGISTERED, Moment(Step.REST)),
        (image("Completed", url="u", retrigger=True), REGISTERED, Moment(Step.RESTART)),
        (image("Failed", retrigger=True), None, Moment(Step.RESTART)),
    ],
)
def test_what_is_next(given: SeedImage, registration: MachineRegistration | None, wanted: Moment) -> None:
    assert decide(given, registration, NOW) == wanted


def test_a_seed_registers_the_host_and_keeps_what_the_operator_wants_at_the_first_boot() -> None:
    files = content.files(CONFIG, {"users": [{"name": "root"}], "runcmd": ["true"], "write_files": [{"path": "/a"}]})
    assert files["user-data"].startswith(b"#cloud-config\n")
    given = goyaml.load(files["user-data"].decode())[0].value
    assert given["users"] == [{"name": "root"}]
    assert given["runcmd"] == ["true", ["systemctl", "enable", "--now", "slipway-agent.service"]]
    assert [each["path"] for each in given["write_files"]] == ["/a", "/oem/registration/config.yaml"]
    assert goyaml.load(given["write_files"][1]["content"])[0].value == CONFIG
    assert given["write_files"][1]["permissions"] == "0600"


def test_another_seed_is_another_instance() -> None:
    one, other = content.files(CONFIG, {}), content.files(CONFIG, {"hostname": "x"})
    assert one["meta-data"] != other["meta-data"]


@pytest.mark.parametrize("field", ["write_files", "runcmd"])
def test_a_cloud_config_that_is_none_is_told(field: str) -> None:
    with pytest.raises(OperatorError, match=f"spec.cloud-config.{field} is to be a list"):
        content.files(CONFIG, {field: "x"})


@pytest.mark.asyncio
async def test_the_image_can_be_read_back_and_has_the_label_that_cloud_init_looks_for(tmp_path: Path) -> None:
    if not shutil.which("xorriso"):
        pytest.skip("xorriso is not installed here, with which the image is made and read back")
    files = content.files(CONFIG, {})
    (tmp_path / "seed.iso").write_bytes(await iso.build(files))
    read = ["xorriso", "-osirrox", "on", "-indev", str(tmp_path / "seed.iso"), "-extract", "/", str(tmp_path / "out")]
    told = subprocess.run(read, capture_output=True, text=True, check=True)
    assert {each.name: each.read_bytes() for each in (tmp_path / "out").iterdir()} == files
    assert "Volume id    : 'cidata'" in told.stderr


@pytest.mark.asyncio
async def test_a_missing_tool_is_told_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(OperatorError, match="neither xorriso nor genisoimage is installed where the manager runs"):
        await iso.build({})


@pytest.fixture
def builds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program that stands for xorriso, which is not on every machine: it puts the files one after the other, and notes each time."""
    folder = tmp_path / "bin"
    folder.mkdir()
    program = folder / "xorriso"
    program.write_text(f"""#!/bin/sh
echo "$@" >> {tmp_path}/builds
while [ "$1" != -output ]; do shift; done
cat "$3"/* > "$2"
""")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    return tmp_path / "builds"


async def _seed(management: Management, **spec: Any) -> None:
    spec = {"registrationRef": {"name": "all"}, **spec}
    await management.client.create(SEED_IMAGE, {"metadata": {"name": "boot", "namespace": SPACE}, "spec": spec})


async def _state(management: Management, state: str) -> dict[str, Any]:
    return await management.when(SEED_IMAGE, "boot", lambda found: found.get("status", {}).get("state") == state, f"the image is {state}")


async def _download(url: str, serving: RegistrationServer) -> tuple[int, bytes]:
    context = tls.client_context(url, ca=serving.authorities)
    async with aiohttp.ClientSession() as session, session.get(url, ssl=context) as answer:
        return answer.status, await answer.read()


@pytest.mark.asyncio
async def test_an_image_is_made_once_its_registration_is_there_and_can_be_downloaded(management: Management, builds: Path) -> None:
    serving = await management.start()
    await _seed(management)
    waiting = await management.told("boot", "SeedImageReady", "SeedImageBuildNotStarted", SEED_IMAGE)
    assert waiting["message"] == "Waiting for the MachineRegistration all of this namespace to be there and Ready"
    registration = await management.registration()
    status = (await _state(management, "Completed"))["status"]
    folder, _, file = status["downloadURL"].rpartition("/")
    assert folder == f"https://127.0.0.1:{serving.port}/elemental/seedimage/{status['downloadToken']}"
    assert file.startswith("all-20")
    assert file.endswith("Z.iso")
    assert status["checksumURL"] == status["downloadURL"] + ".sha256"
    code, got = await _download(status["downloadURL"], serving)
    assert (code, registration["status"]["registrationURL"].encode() in got) == (200, True)
    assert await _download(status["checksumURL"], serving) == (200, f"{hashlib.sha256(got).hexdigest()}  {file}\n".encode())
    assert (await _download(f"{folder}/other.iso", serving))[0] == 404


@pytest.mark.asyncio
async def test_an_image_is_not_made_again_by_itself(management: Management, builds: Path) -> None:
    await management.start()
    await management.registration()
    await _seed(management)
    first = (await _state(management, "Completed"))["status"]
    change = {"spec": {"machineName": "other", "config": {"elemental": {"registration": {"no-smbios": True}}}}}
    await management.client.patch(MACHINE_REGISTRATION, "all", SPACE, change, type=PatchType.MERGE)
    await management.client.patch(SEED_IMAGE, "boot", SPACE, {"spec": {"cloud-config": {"hostname": "x"}}}, type=PatchType.MERGE)
    await management.client.patch(SEED_IMAGE, "boot", SPACE, {"spec": {"retriggerBuild": True}}, type=PatchType.MERGE)
    again = await management.when(
        SEED_IMAGE,
        "boot",
        lambda found: found["status"].get("state") == "Completed" and found["status"]["downloadToken"] != first["downloadToken"],
    )
    assert again["spec"].get("retriggerBuild", False) is False
    assert len(builds.read_text().splitlines()) == 2


@pytest.mark.asyncio
async def test_an_image_is_cleaned_up_after_its_time(management: Management, builds: Path) -> None:
    serving = await management.start()
    await management.registration()
    await _seed(management, cleanupAfterMinutes=1)
    found = await _state(management, "Completed")
    url = found["status"]["downloadURL"]
    long_ago = {**condition(found, "SeedImageReady"), "lastTransitionTime": "2020-01-01T00:00:00Z"}
    await management.client.patch(
        SEED_IMAGE, "boot", SPACE, {"status": {"conditions": [long_ago]}}, type=PatchType.MERGE, subresource="status"
    )
    told = await management.told("boot", "SeedImageReady", "SeedImageCleanedUp", SEED_IMAGE)
    assert "Set spec.retriggerBuild" in told["message"]
    assert (await _download(url, serving))[0] == 404
    assert not (await management.client.get(SECRET, "boot-seed", SPACE)).get("data")


@pytest.mark.asyncio
async def test_an_image_that_cannot_be_made_has_failed_with_a_sentence(management: Management, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    await management.start()
    await management.registration()
    await _seed(management)
    await _state(management, "Failed")
    told = await management.told("boot", "SeedImageReady", "SeedImageBuildFailed", SEED_IMAGE)
    assert told["message"].endswith("install one of them, then set spec.retriggerBuild")


@pytest.mark.asyncio
async def test_a_tool_that_fails_is_told_with_what_it_printed(builds: Path, management: Management) -> None:
    program = builds.parent / "bin" / "xorriso"
    program.write_text("#!/bin/sh\necho no space left; exit 5\n")
    await management.start()
    await management.registration()
    await _seed(management)
    told = await management.told("boot", "SeedImageReady", "SeedImageBuildFailed", SEED_IMAGE)
    assert told["message"].endswith("could not make the image (exit code 5): no space left")


@pytest.mark.asyncio
async def test_an_image_that_the_api_server_did_not_take_is_made_again(
    builds: Path, management: Management, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored, lost = storage.store, [UnreachableError("the connection was lost")]

    async def store(*given: Any) -> None:
        if lost:
            raise lost.pop()
        await stored(*given)

    monkeypatch.setattr(storage, "store", store)
    await management.start()
    await management.registration()
    await _seed(management)
    await _state(management, "Completed")
    assert len(builds.read_text().splitlines()) == 2
