"""Settings: names, defaults, and one clear line for what is wrong."""

from __future__ import annotations

import errno
import re
from pathlib import Path
from typing import Any

import pytest

from vision_bench.errors import InvalidSettings
from vision_bench.gateway.settings import Settings, load_settings

BASE = "http://127.0.0.1:8000/v1"


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No setting of the machine leaks in, and .env is looked for in an empty folder."""
    monkeypatch.chdir(tmp_path)
    for name in Settings.model_fields:
        monkeypatch.delenv(name.upper(), raising=False)


def test_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    """The names and defaults of the original experiment; our own extras are off."""
    monkeypatch.setenv("VLLM_BASE_URL", BASE + "/")
    settings = load_settings()
    assert settings.vllm_base_url == BASE
    assert settings.vllm_concurrency == 4
    assert settings.max_batch_items == 128
    assert settings.vllm_timeout_seconds == 600
    assert settings.vllm_acquire_timeout_seconds == 300
    assert settings.gateway_max_body_bytes == 268_435_456
    assert settings.gateway_buffer_bytes == 536_870_912
    assert settings.vllm_api_key is None
    assert settings.gateway_api_keys == ()


def test_the_environment_wins_over_the_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """.env in the working folder is read, an environment variable beats it, an argument beats both."""
    (tmp_path / ".env").write_text(f"VLLM_BASE_URL={BASE}\nVLLM_CONCURRENCY=2\nMAX_BATCH_ITEMS=3\nUNRELATED=x\n")
    monkeypatch.setenv("VLLM_CONCURRENCY", "7")
    settings = load_settings(max_batch_items=5, vllm_concurrency=None)
    assert (settings.vllm_concurrency, settings.max_batch_items) == (7, 5)


def test_an_empty_value_is_not_set(monkeypatch: pytest.MonkeyPatch) -> None:
    """VLLM_CONCURRENCY= leaves the default; VLLM_BASE_URL= is missing."""
    monkeypatch.setenv("VLLM_CONCURRENCY", "")
    assert load_settings(vllm_base_url=BASE).vllm_concurrency == 4
    monkeypatch.setenv("VLLM_BASE_URL", "")
    with pytest.raises(InvalidSettings, match="VLLM_BASE_URL is not set"):
        load_settings()


def test_keys_are_a_list_and_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys are split at commas; neither printing the settings nor an error shows one."""
    monkeypatch.setenv("GATEWAY_API_KEYS", " hunter1, ,hunter2,")
    monkeypatch.setenv("VLLM_API_KEY", "hunter3")
    settings = load_settings(vllm_base_url=BASE)
    assert [key.get_secret_value() for key in settings.gateway_api_keys] == ["hunter1", "hunter2"]
    assert not re.search("hunter1|hunter2|hunter3", repr(settings))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("VLLM_BASE_URL", "ftp://host/v1"),
        ("VLLM_BASE_URL", "localhost:8000/v1"),
        ("VLLM_BASE_URL", "http://"),
        ("VLLM_BASE_URL", "http://host:port/v1"),
        ("VLLM_BASE_URL", "http://host:99999/v1"),
        ("VLLM_BASE_URL", "http://[::1/v1"),
        ("VLLM_BASE_URL", "http://a..b/v1"),
        ("VLLM_BASE_URL", f"http://{'a' * 64}.example/v1"),
        ("VLLM_BASE_URL", "http://host/v 1"),
        ("VLLM_BASE_URL", "http://host/v1\n/x"),
        ("VLLM_BASE_URL", "http://host/비전"),
        ("VLLM_BASE_URL", "http://비전.example/v1"),
        ("VLLM_BASE_URL", "http://host\\evil/v1"),
        ("VLLM_BASE_URL", "http://host/v1?key=1"),
        ("VLLM_CONCURRENCY", "0"),
        ("VLLM_CONCURRENCY", "-1"),
        ("VLLM_CONCURRENCY", "four"),
        ("VLLM_CONCURRENCY", "1.5"),
        ("MAX_BATCH_ITEMS", "0"),
        ("VLLM_TIMEOUT_SECONDS", "0"),
        ("VLLM_TIMEOUT_SECONDS", "nan"),
        ("VLLM_TIMEOUT_SECONDS", "inf"),
        ("VLLM_ACQUIRE_TIMEOUT_SECONDS", "-3"),
        ("GATEWAY_MAX_BODY_BYTES", "256MB"),
        ("VLLM_BASE_URL", "http://a/v1,ftp://b/v1"),
        ("VLLM_BASE_URL", "http://a/v1,http://a/v1/"),
        ("VLLM_BASE_URL", ","),
        ("GATEWAY_MAX_HEADER_BYTES", "10"),
        ("GATEWAY_KEY_REQUESTS_PER_MINUTE", "0"),
        ("GATEWAY_MAX_FPS", "0"),
        ("GATEWAY_MAX_FPS", "inf"),
        ("GATEWAY_MAX_NUM_FRAMES", "1.5"),
        ("GATEWAY_LOG_FORMAT", "xml"),
        ("GATEWAY_OTLP_ENDPOINT", "collector:4317"),
    ],
)
def test_a_wrong_value_is_one_line_with_name_and_value(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    """The message names the variable and holds what stands in it, on one line."""
    monkeypatch.setenv("VLLM_BASE_URL", BASE)
    monkeypatch.setenv(name, value)
    with pytest.raises(InvalidSettings) as caught:
        load_settings()
    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith(f"{name}={value!r}: ")


def test_credentials_in_the_address_are_refused_unseen(monkeypatch: pytest.MonkeyPatch) -> None:
    """http://user:password@host is refused, because the address is logged and shown; the message hides them."""
    monkeypatch.setenv("VLLM_BASE_URL", "http://me:hunter2@host/v1")
    with pytest.raises(InvalidSettings, match="VLLM_API_KEY") as caught:
        load_settings()
    assert "hunter2" not in str(caught.value)


def test_credentials_of_the_collector_are_refused_unseen(monkeypatch: pytest.MonkeyPatch) -> None:
    """They belong into the standard's variable for headers."""
    monkeypatch.setenv("GATEWAY_OTLP_ENDPOINT", "http://me:hunter2@host:4318")
    with pytest.raises(InvalidSettings, match="OTEL_EXPORTER_OTLP_HEADERS") as caught:
        load_settings(vllm_base_url=BASE)
    assert "hunter2" not in str(caught.value)


def test_all_faults_are_named_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two wrong values are one message."""
    monkeypatch.setenv("VLLM_CONCURRENCY", "0")
    with pytest.raises(InvalidSettings, match=r"VLLM_BASE_URL is not set.*; VLLM_CONCURRENCY='0'"):
        load_settings()


def test_the_example_file_is_complete_and_valid() -> None:
    """.env.example names every setting, with its default."""
    path = Path(__file__).parents[3] / ".env.example"
    settings = Settings(_env_file=path)
    named = re.findall(r"^([A-Z_]+)=", path.read_text(), re.MULTILINE)
    assert sorted(named) == sorted(name.upper() for name in Settings.model_fields)
    assert settings == Settings(_env_file=None, vllm_base_url=settings.vllm_base_url)


def test_the_first_name_of_the_body_limit_still_works(monkeypatch: pytest.MonkeyPatch) -> None:
    """MAX_BODY_BYTES is read where GATEWAY_MAX_BODY_BYTES is not set."""
    monkeypatch.setenv("VLLM_BASE_URL", BASE)
    monkeypatch.setenv("MAX_BODY_BYTES", "1000")
    assert load_settings().gateway_max_body_bytes == 1000
    monkeypatch.setenv("GATEWAY_MAX_BODY_BYTES", "2000")
    assert load_settings().gateway_max_body_bytes == 2000


def test_the_buffer_holds_one_body(monkeypatch: pytest.MonkeyPatch) -> None:
    """A body that never fits would wait for ever: one line says which two settings disagree."""
    monkeypatch.setenv("VLLM_BASE_URL", BASE)
    monkeypatch.setenv("GATEWAY_BUFFER_BYTES", "1000")
    with pytest.raises(InvalidSettings, match=r"^GATEWAY_BUFFER_BYTES=1000 is less than GATEWAY_MAX_BODY_BYTES=268"):
        load_settings()


def test_several_servers_are_separated_by_commas(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spaces, empty places and slashes at the end do not matter."""
    monkeypatch.setenv("VLLM_BASE_URL", "http://a:1/v1/, http://b:2/v1,,")
    assert load_settings().upstream_urls == ("http://a:1/v1", "http://b:2/v1")
    assert load_settings(vllm_base_url=BASE).upstream_urls == (BASE,)


@pytest.mark.parametrize(
    ("value", "domains"),
    [
        ("", None),
        ("none", ()),
        ("Example.org., media.example.org", ("example.org", "media.example.org")),
    ],
)
def test_media_domains(monkeypatch: pytest.MonkeyPatch, value: str, domains: tuple[str, ...] | None) -> None:
    """Not set is off; ``none`` is a list without a host, which is not the same."""
    monkeypatch.setenv("VLLM_BASE_URL", BASE)
    monkeypatch.setenv("GATEWAY_MEDIA_DOMAINS", value)
    assert load_settings().gateway_media_domains == domains


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"gateway_api_keys": " , "}, "GATEWAY_API_KEYS: is set but holds no key"),
        ({"gateway_origins": "null"}, "'null' is no origin; write scheme and host"),
        ({"gateway_origins": "https://a.example, b.example"}, "'b.example' is no origin"),
        ({"gateway_origins": "https://a.example/page"}, "'https://a.example/page' is no origin"),
        ({"gateway_origins": "*"}, r"'\*' is no origin"),
        ({"gateway_key_requests_per_minute": 5}, "limits keys, and there are none"),
    ],
)
def test_a_door_left_open_by_mistake_is_refused(settings: dict[str, Any], reason: str) -> None:
    """Keys that are none, a limit of nothing, and what is no page's origin or everybody's."""
    with pytest.raises(InvalidSettings, match=reason):
        load_settings(vllm_base_url="http://x/v1", **settings)


@pytest.mark.parametrize("value", ["key\n", "key\r\n", " key\t"])
def test_the_line_end_of_a_file_is_not_part_of_a_key(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    """A key that was read from a file, or from a secret's mount, often brings one with it."""
    monkeypatch.setenv("VLLM_API_KEY", value)
    monkeypatch.setenv("GATEWAY_API_KEYS", value)
    settings = load_settings(vllm_base_url=BASE)
    assert settings.vllm_api_key is not None
    assert settings.vllm_api_key.get_secret_value() == "key"
    assert [key.get_secret_value() for key in settings.gateway_api_keys] == ["key"]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("VLLM_API_KEY", "hunter\n2"),
        ("VLLM_API_KEY", "hunter 2"),
        ("VLLM_API_KEY", "hunter비밀"),
        ("VLLM_API_KEY", " "),
        ("GATEWAY_API_KEYS", "hunter1\nhunter2"),
        ("GATEWAY_API_KEYS", "hunter1,hunter\x7f2"),
    ],
)
def test_a_key_that_no_header_can_hold_stops_the_start(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    """Else every call would fail, or every caller be refused. The line names the setting and not the key."""
    monkeypatch.setenv(name, value)
    with pytest.raises(InvalidSettings, match=f"^{name}: ") as problem:
        load_settings(vllm_base_url=BASE)
    assert "hunter" not in str(problem.value)


def test_a_file_in_another_encoding_is_one_line(tmp_path: Path) -> None:
    """As editors on Windows write it: the place and the remedy, and nothing of the file, which holds keys."""
    (tmp_path / ".env").write_bytes(f"VLLM_BASE_URL={BASE}\nVLLM_API_KEY=hunter # 비밀\n".encode("cp949"))
    with pytest.raises(InvalidSettings, match=r"^\.env is not UTF-8 \(.* at byte 61\); save it as UTF-8$") as problem:
        load_settings()
    assert problem.value.__cause__ is None, "which would hold the file"


def test_a_file_that_cannot_be_read_is_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Of another user's, say."""

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    (tmp_path / ".env").write_text(f"VLLM_BASE_URL={BASE}\n")
    monkeypatch.setattr("builtins.open", refuse)
    with pytest.raises(InvalidSettings, match=r"^\.env cannot be read \(Permission denied\); make it readable"):
        load_settings()


def test_origins_are_read_as_browsers_say_them() -> None:
    """In lower case, without the scheme's own port; the page at LIVE_PUBLIC_URL is the gateway's own."""
    settings = Settings(
        _env_file=None,
        vllm_base_url="http://x/v1",
        gateway_origins="https://Video.example.org:443/, http://box.example:8001 ,chrome-extension://abc",
        live_public_url="http://GPU.example.com:80/video",
    )
    assert settings.page_origins == (
        "https://video.example.org",
        "http://box.example:8001",
        "chrome-extension://abc",
        "http://gpu.example.com",
    )
    assert Settings(_env_file=None, vllm_base_url="http://x/v1").page_origins == ()
