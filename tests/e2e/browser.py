"""A real Chromium without a window, driven by its DevTools protocol: pages are opened, looked at, typed into and photographed."""

from __future__ import annotations

import asyncio
import itertools
import os
import re
import shutil
from base64 import b64decode
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
from support.waiting import eventually

PROGRAM = shutil.which("chromium") or shutil.which("chromium-browser")
_STARTED = 30.0
_ANSWERED = 30.0


class Page:
    """A tab.  ``complaints`` are what its console, its network and its policies had to say against it."""

    def __init__(self, browser: Browser, session: str) -> None:
        self._browser, self._session = browser, session
        self.complaints: list[str] = []

    async def call(self, method: str, **parameters: Any) -> Any:
        return await self._browser.call(method, parameters, self._session)

    async def evaluate(self, expression: str) -> Any:
        """What an expression of JavaScript gives, promises awaited."""
        answer = await self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True, userGesture=True)
        if "exceptionDetails" in answer:
            raise AssertionError(f"{expression}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    async def until(self, expression: str, seconds: float = 20.0) -> None:
        """Wait until an expression holds."""
        await eventually(lambda: self.evaluate(f"Boolean({expression})"), f"{expression}; {self.complaints}", seconds)

    async def open(self, url: str) -> None:
        await self.call("Page.navigate", url=url)

    async def size(self, width: int, height: int, *, mobile: bool = False) -> None:
        await self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=mobile)

    async def colours(self, scheme: str) -> None:
        await self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    async def press(self, key: str, text: str = "", *, shift: bool = False) -> None:
        codes = {"Enter": 13, "Tab": 9, "Escape": 27, "ArrowDown": 40, "ArrowUp": 38, "PageDown": 34, "End": 35, "Home": 36, " ": 32}
        common = {"key": key, "code": key, "windowsVirtualKeyCode": codes.get(key, 0), "modifiers": 8 if shift else 0}
        await self.call("Input.dispatchKeyEvent", type="keyDown", text=text or ("\r" if key == "Enter" else ""), **common)
        await self.call("Input.dispatchKeyEvent", type="keyUp", **common)

    async def type(self, text: str) -> None:
        await self.call("Input.insertText", text=text)

    async def worked(self, expressions: Sequence[str]) -> list[float]:
        """Evaluate one after the other; for how many seconds of a processor the page's own thread has worked for each.

        What else runs on this machine makes it wait, and is not counted.
        """
        await self.call("Performance.enable", timeDomain="threadTicks")
        spent = [await self._spent()]
        for each in expressions:
            await self.evaluate(each)
            spent.append(await self._spent())
        await self.call("Performance.disable")
        return [after - before for before, after in itertools.pairwise(spent)]

    async def _spent(self) -> float:
        metrics = {each["name"]: each["value"] for each in (await self.call("Performance.getMetrics"))["metrics"]}
        return float(metrics["TaskDuration"])

    async def photograph(self, path: Path, *, whole: bool = False) -> None:
        answer = await self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(b64decode(answer["data"]))

    def _heard(self, method: str, parameters: dict[str, Any]) -> None:
        if method == "Runtime.exceptionThrown":
            details = parameters["exceptionDetails"]
            self.complaints.append(f"exception: {details.get('exception', {}).get('description') or details['text']}")
        elif method == "Runtime.consoleAPICalled" and parameters["type"] in ("error", "warning", "assert"):
            self.complaints.append(f"console: {[each.get('value') or each.get('description') for each in parameters['args']]}")
        elif method == "Log.entryAdded" and parameters["entry"]["level"] in ("error", "warning"):
            if "ERR_NETWORK_CHANGED" in parameters["entry"]["text"]:
                # An interface of this machine came or went, as a lab's do; the page has to live with that, and does.
                return
            self.complaints.append(f"{parameters['entry']['source']}: {parameters['entry']['text']} {parameters['entry'].get('url', '')}")
        elif method == "Audits.issueAdded" and "contentSecurityPolicyIssueDetails" in parameters["issue"]["details"]:
            self.complaints.append(f"policy: {parameters['issue']['details']['contentSecurityPolicyIssueDetails']}")


class Browser:
    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._numbers = itertools.count(1)
        self._answers: dict[int, asyncio.Future[Any]] = {}
        self._pages: dict[str, Page] = {}

    async def page(self) -> Page:
        """A new tab with a session of its own: no storage is shared with the others."""
        context = (await self.call("Target.createBrowserContext", {}))["browserContextId"]
        target = (await self.call("Target.createTarget", {"url": "about:blank", "browserContextId": context}))["targetId"]
        session = (await self.call("Target.attachToTarget", {"targetId": target, "flatten": True}))["sessionId"]
        page = self._pages[session] = Page(self, session)
        for domain in ("Page", "Runtime", "Log", "Audits"):
            await page.call(f"{domain}.enable")
        await page.size(1360, 900)
        return page

    async def call(self, method: str, parameters: dict[str, Any], session: str = "") -> Any:
        number = next(self._numbers)
        answer = self._answers[number] = asyncio.get_running_loop().create_future()
        message = {"id": number, "method": method, "params": parameters, **({"sessionId": session} if session else {})}
        await self._socket.send_json(message)
        async with asyncio.timeout(_ANSWERED):
            return await answer

    async def listen(self) -> None:
        async for message in self._socket:
            said = message.json()
            if "id" in said:
                answer = self._answers.pop(said["id"])
                if answer.done():
                    continue
                if "error" in said:
                    answer.set_exception(AssertionError(said["error"]["message"]))
                else:
                    answer.set_result(said["result"])
            elif said.get("sessionId") in self._pages:
                self._pages[said["sessionId"]]._heard(said["method"], said["params"])


@asynccontextmanager
async def chromium(folder: Path) -> AsyncIterator[Browser]:
    """One that trusts every certificate, and keeps what it keeps in a folder."""
    assert PROGRAM is not None
    flags = ["--headless=new", "--remote-debugging-port=0", f"--user-data-dir={folder}", "--ignore-certificate-errors", "--disable-gpu"]
    flags += ["--no-first-run", "--disable-extensions", "--disable-background-networking", "--disable-dev-shm-usage", "--mute-audio"]
    flags += ["--no-sandbox"] if os.geteuid() == 0 else []
    process = await asyncio.create_subprocess_exec(
        PROGRAM, *flags, "about:blank", stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE
    )
    try:
        url = await asyncio.wait_for(_address(process), _STARTED)
        async with aiohttp.ClientSession() as session, session.ws_connect(url, max_msg_size=0) as socket:
            browser = Browser(socket)
            listening = asyncio.create_task(browser.listen())
            try:
                yield browser
            finally:
                listening.cancel()
    finally:
        process.terminate()
        await process.wait()


async def _address(process: asyncio.subprocess.Process) -> str:
    assert process.stderr is not None
    said = []
    async for line in process.stderr:
        said.append(line.decode(errors="replace"))
        found = re.search(r"DevTools listening on (ws://\S+)", said[-1])
        if found:
            return found[1]
    raise AssertionError(f"Chromium has not started: {''.join(said)}")
