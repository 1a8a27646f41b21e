"""Which hosts are reached through a proxy: the rows of UseProxyTests in Go's x/net/http/httpproxy, at port 80."""

from __future__ import annotations

import traceback

import pytest

from slipway.api.machinery.errors import OperatorError
from slipway.kube import proxies

NO_PROXY = (
    "foobar.com, .barbaz.net, *.wildcard.io, 192.168.1.1, 192.168.1.2:81, 192.168.1.3:80, 10.0.0.0/30, 2001:db8::52:0:1, "
    "[2001:db8::52:0:2]:443, [2001:db8::52:0:3]:80, 2002:db8:a::45/64"
)


@pytest.mark.parametrize(
    ("host", "proxied"),
    [
        ("localhost", False),
        ("127.0.0.1", False),
        ("127.0.0.2", False),
        ("::1", False),
        ("::2", True),
        ("192.168.1.1", False),
        ("192.168.1.2", True),
        ("192.168.1.3", False),
        ("192.168.1.4", True),
        ("10.0.0.2", False),
        ("2001:db8::52:0:1", False),
        ("2001:db8::52:0:2", True),
        ("2001:db8::52:0:3", False),
        ("2002:db8:a::123", False),
        ("fe80::424b:c8be:1643:a1b6", True),
        ("barbaz.net", True),
        ("www.barbaz.net", False),
        ("foobar.com", False),
        ("www.foobar.com", False),
        ("foofoobar.com", True),
        ("baz.com", True),
        ("localhost.net", True),
        ("local.localhost", True),
        ("barbarbaz.net", True),
        ("wildcard.io", True),
        ("nested.wildcard.io", False),
        ("awildcard.io", True),
    ],
)
def test_exceptions_are_those_of_go(host: str, proxied: bool) -> None:
    environment = {"HTTPS_PROXY": "proxy:3128", "NO_PROXY": NO_PROXY}
    assert proxies.proxy_for(host, environment, 80) == ("http://proxy:3128" if proxied else None)


def test_everything_may_be_exempt() -> None:
    assert proxies.proxy_for("a.example", {"https_proxy": "http://p", "no_proxy": "*"}) is None


def test_an_exception_may_be_for_one_port() -> None:
    environment = {"HTTPS_PROXY": "http://p", "NO_PROXY": "api.example:6443"}
    assert proxies.proxy_for("api.example", environment, 6443) is None
    assert proxies.proxy_for("api.example", environment) == "http://p"


def test_without_a_proxy_every_connection_is_direct() -> None:
    assert proxies.proxy_for("a.example", {"HTTP_PROXY": "http://p"}) is None


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://proxy:3128", "http://proxy:3128"),
        ("http://user:secret@proxy:3128", "http://xxxxx@proxy:3128"),
        ("http://secret@proxy:3128/path", "http://xxxxx@proxy:3128/path"),
        ("user:secret@proxy:3128", "xxxxx@proxy:3128"),
        ("http://user:se@cr/et@proxy", "http://xxxxx@proxy"),
        ("http://user:secret://@proxy", "http://xxxxx@proxy"),
    ],
)
def test_user_name_and_password_are_not_shown(url: str, shown: str) -> None:
    assert proxies.redacted(url) == shown


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("https://user:hunter2@proxy:3128", 'the proxy "https://xxxxx@proxy:3128", and only http:// proxies are supported'),
        ("user:hunter2@proxy:3128", 'the proxy "xxxxx@proxy:3128", and only http:// proxies are supported'),
        ("http://user:hun/ter2@proxy:3128", 'the proxy "http://xxxxx@proxy:3128", which is not a URL of the form http://host:port'),
        ("http://user:hunter2@proxy:99999", 'the proxy "http://xxxxx@proxy:99999", which is not a URL of the form http://host:port'),
        ("http://user:hunter2@[::1", 'the proxy "http://xxxxx@[::1", which is not a URL of the form http://host:port'),
    ],
)
def test_a_proxy_that_cannot_be_used_is_named_without_its_password(url: str, message: str) -> None:
    with pytest.raises(OperatorError) as caught:
        proxies.parse(url, "https://api:6443")
    assert caught.value.message == f"connections to https://api:6443 go through {message}"
    assert "hun" not in "".join(traceback.format_exception(caught.value))


def test_a_proxy_is_told_who_asks() -> None:
    made = proxies.parse("http://us%65r:p%40ss@[2001:db8::1]:3128", "https://api:6443")
    assert (made.host, made.port) == ("2001:db8::1", 3128)
    assert made.headers == {"Proxy-Authorization": "Basic dXNlcjpwQHNz"}
