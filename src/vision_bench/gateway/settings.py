"""The gateway's settings: environment and ``.env`` as one frozen object, checked once at the start."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import AliasChoices, Field, SecretStr, ValidationError, field_validator, model_validator
from pydantic_settings import NoDecode, SettingsConfigDict

from vision_bench.errors import InvalidSettings
from vision_bench.gateway.live_settings import LiveSettings
from vision_bench.gateway.media_hosts import HostList
from vision_bench.gateway.otlp import checked

_BLANKS = " \t\r\n"
"""What stands around a key in a file or a secret's mount, and is not the key's. Not all that strip() knows: to it some
letters of UTF-8 read as Latin-1 are blanks."""

Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class Settings(LiveSettings):
    """Every setting has the name of its environment variable, in lower case.

    Real environment variables win over ``.env``; an empty value counts as not set.
    """

    model_config = SettingsConfigDict(env_file=".env", env_ignore_empty=True, extra="ignore", frozen=True)

    vllm_base_url: str
    """The /v1 endpoint of vLLM, without a slash at its end; commas separate several servers with one model.
    It has no default: a guess would hide a mistake."""

    vllm_concurrency: Annotated[int, Field(ge=1)] = 4
    """Calls at once to each vLLM, over all routes."""

    max_batch_items: Annotated[int, Field(ge=1)] = 128
    """Items in one /chat/batch request."""

    vllm_timeout_seconds: Seconds = 600.0
    """One call, from its permit to its last byte."""

    vllm_acquire_timeout_seconds: Seconds = 300.0
    """Wait for a permit."""

    vllm_api_key: SecretStr | None = None
    """Sent to vLLM as a bearer token. Never logged."""

    gateway_api_keys: Annotated[tuple[SecretStr, ...], NoDecode] = ()
    """Bearer tokens that callers must show, separated by commas. None: the gateway is open."""

    gateway_origins: Annotated[tuple[str, ...], NoDecode] = ()
    """Origins of web pages that may use a gateway without keys besides its own page, such as
    https://video.example.org, separated by commas."""

    gateway_max_body_bytes: Annotated[
        int, Field(ge=1, validation_alias=AliasChoices("gateway_max_body_bytes", "max_body_bytes"))
    ] = 256 * 1024 * 1024
    """A request's body. 256 MiB is 128 clips of 1.5 MB as base64. MAX_BODY_BYTES, its first name, still works."""

    gateway_buffer_bytes: Annotated[int, Field(ge=1)] = 512 * 1024 * 1024
    """All bodies together. Past it, requests wait unread."""

    gateway_max_header_bytes: Annotated[int, Field(ge=1024)] = 64 * 1024
    """A request's line and headers together."""

    gateway_upload_idle_seconds: Seconds = 30.0
    """The longest pause in an upload that has begun. While it stands still it holds room that others wait for."""

    gateway_upload_timeout_seconds: Seconds = 600.0
    """One upload, from its first byte to its last."""

    gateway_idle_seconds: Seconds = 75.0
    """A connection without a request, or with half a head of one. Longer than callers keep idle connections, so that
    they close them and never write into one that we just closed."""

    gateway_shutdown_grace_seconds: Seconds = 30.0
    """What runs gets this long to finish when the gateway is told to stop; then it is cancelled."""

    gateway_key_requests_per_minute: Annotated[int, Field(ge=1)] | None = None
    """Requests of one key of GATEWAY_API_KEYS; a batch counts its items. None: no limit."""

    gateway_media_domains: Annotated[tuple[str, ...], NoDecode] | None = None
    """Hosts that media URLs in a body may name, separated by commas (``.example.org``: all below it); ``none``: no
    remote URL. None, not set: bodies are not looked into, unless one of the next two is set; then no remote URL."""

    gateway_max_fps: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    """The most frames a second that a body may ask for. None: any number."""

    gateway_max_num_frames: Annotated[int, Field(ge=1)] | None = None
    """The most frames that a body may ask for. None: any number."""

    gateway_log_format: Literal["text", "json"] = "text"
    """One line a request: for people, or an object for a log store."""

    gateway_otlp_endpoint: str | None = None
    """The collector that is sent spans, OTLP over HTTP, without /v1/traces. None: OpenTelemetry's own variables say
    whether there is one."""

    realtime_base_url: str | None = None
    """The /v1 endpoint of a server of generated video, which the page at / drives. None: there is none."""

    realtime_api_key: SecretStr | None = None
    """Sent to that server as a bearer token. Never logged, never shown to the page."""

    @property
    def upstream_urls(self) -> tuple[str, ...]:
        """The /v1 endpoint of every vLLM."""
        return tuple(self.vllm_base_url.split(","))

    @property
    def page_origins(self) -> tuple[str, ...]:
        """Whose pages may use the gateway without a key: those named, and its own at LIVE_PUBLIC_URL."""
        own = () if self.live_public_url is None else (self.live_public_url,)
        return tuple(_as_browsers_say(origin) for origin in (*self.gateway_origins, *own))

    @field_validator("vllm_base_url")
    @classmethod
    def _endpoints(cls, value: str) -> str:
        urls = [cls._endpoint(url.strip()) for url in value.split(",") if url.strip()]
        if not urls:
            raise ValueError("must be an http:// or https:// address such as http://127.0.0.1:8000/v1")
        if len(set(urls)) < len(urls):
            raise ValueError("names a server twice; give every server once")
        return ",".join(urls)

    @field_validator("realtime_base_url")
    @classmethod
    def _realtime_endpoint(cls, value: str | None) -> str | None:
        return None if value is None else cls._endpoint(value)

    @staticmethod
    def _endpoint(value: str) -> str:
        try:
            parts = urlsplit(value)
            usable = parts.scheme in {"http", "https"} and parts.hostname and parts.port != 0
            (parts.hostname or "").encode("idna")  # as the system's resolver will: no empty label, none over 63 letters
        except ValueError:  # a port that is no number, an IPv6 address without its bracket
            usable = False
        if not usable:
            raise ValueError("must be an http:// or https:// address such as http://127.0.0.1:8000/v1")
        if not _is_visible_ascii(value) or "\\" in value:  # it stands in the head of every request to vLLM
            raise ValueError("must be ASCII without blanks; write other letters as %XX, of a host as xn--")
        if parts.username or parts.password:
            raise ValueError("must hold no user name or password; put the key into VLLM_API_KEY")
        if parts.query or parts.fragment:
            raise ValueError("must end with the path, usually /v1")
        return value.rstrip("/")

    @field_validator("vllm_api_key", "realtime_api_key", mode="before")
    @classmethod
    def _one_header(cls, value: Any) -> Any:
        if not isinstance(value, str):
            return value
        key = value.strip(_BLANKS)
        if not key or not _is_visible_ascii(key):
            raise ValueError("must be one key of visible ASCII letters, for it is sent in a header")
        return key

    @field_validator("gateway_api_keys", mode="before")
    @classmethod
    def _split_keys(cls, value: Any) -> Any:
        if isinstance(value, str):
            keys = tuple(key for part in value.split(",") if (key := part.strip(_BLANKS)))
            if not keys:
                raise ValueError("is set but holds no key, which would leave the gateway open; unset it to mean that")
            if any(ord(letter) < 0x20 or letter == "\x7f" for key in keys for letter in key):
                raise ValueError("a key holds a line end or another control character; separate keys by commas")
            return keys
        return value

    @field_validator("gateway_media_domains", mode="before")
    @classmethod
    def _split_domains(cls, value: Any) -> Any:
        if not isinstance(value, str):
            return value
        names = tuple(name.strip().lower().rstrip(".") for name in value.split(",") if name.strip())
        if not names:
            raise ValueError("is set but names no host; write none to allow no remote URL, or unset it")
        return () if names == ("none",) else names

    @field_validator("gateway_media_domains")
    @classmethod
    def _hosts(cls, value: tuple[str, ...] | None) -> tuple[str, ...] | None:
        HostList(value or ())  # says what is wrong with an entry
        return value

    @field_validator("gateway_origins", mode="before")
    @classmethod
    def _split_origins(cls, value: Any) -> Any:
        if not isinstance(value, str):
            return value
        return tuple(origin.strip().lower().rstrip("/") for origin in value.split(",") if origin.strip())

    @field_validator("gateway_origins")
    @classmethod
    def _origins(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for origin in value:
            parts = urlsplit(origin)
            # A browser's extension has an origin, too; "null" is everybody's.
            if not parts.scheme or not parts.netloc or "@" in origin or origin != f"{parts.scheme}://{parts.netloc}":
                raise ValueError(f"{origin!r} is no origin; write scheme and host, such as https://video.example.org")
        return value

    @field_validator("gateway_otlp_endpoint")
    @classmethod
    def _collector(cls, value: str | None) -> str | None:
        if value is not None and "@" in checked(value):
            raise ValueError("must hold no user name or password; put them into OTEL_EXPORTER_OTLP_HEADERS")
        return value

    @model_validator(mode="after")
    def _passthrough_is_an_upstream(self) -> Self:
        for url in self.live_passthrough_urls:
            if url not in self.upstream_urls:
                raise ValueError(f"LIVE_PASSTHROUGH_URLS names {url!r}, which is not in VLLM_BASE_URL; add it there")
        return self

    @model_validator(mode="after")
    def _limit_of_something(self) -> Self:
        if self.gateway_key_requests_per_minute is not None and not self.gateway_api_keys:
            raise ValueError(
                f"GATEWAY_KEY_REQUESTS_PER_MINUTE={self.gateway_key_requests_per_minute} limits keys, and there are "
                "none; set GATEWAY_API_KEYS, or unset it"
            )
        return self

    @model_validator(mode="after")
    def _room_for_one(self) -> Self:
        if self.gateway_buffer_bytes < self.gateway_max_body_bytes:
            raise ValueError(
                f"GATEWAY_BUFFER_BYTES={self.gateway_buffer_bytes} is less than "
                f"GATEWAY_MAX_BODY_BYTES={self.gateway_max_body_bytes}: one body must fit; raise it, or lower the other"
            )
        return self


def load_settings(**overrides: Any) -> Settings:
    """Settings from the environment and ``.env``; ``overrides`` that are not None win.

    Raises:
        InvalidSettings: one line that names each setting, its value (never a secret's) and the remedy.
    """
    try:
        return Settings(**{name: value for name, value in overrides.items() if value is not None})
    except UnicodeDecodeError as problem:
        raise InvalidSettings(
            f".env is not UTF-8 ({problem.reason} at byte {problem.start}); save it as UTF-8"
        ) from None
    except OSError as problem:
        raise InvalidSettings(f".env cannot be read ({problem.strerror}); make it readable, or remove it") from problem
    except ValidationError as problem:
        raise InvalidSettings("; ".join(_describe(error) for error in problem.errors())) from problem


def _describe(error: Any) -> str:
    if not error["loc"]:
        return str(error["msg"]).removeprefix("Value error, ")
    name = str(error["loc"][0])
    if error["type"] == "missing":
        remedy = "; set it to vLLM's /v1 endpoint, such as http://127.0.0.1:8000/v1" if name == "vllm_base_url" else ""
        return f"{name.upper()} is not set{remedy}"
    message = str(error["msg"]).removeprefix("Value error, ")
    is_secret = name.endswith(("api_key", "api_keys")) or "@" in str(error["input"])
    shown = "" if is_secret else f"={error['input']!r}"
    return f"{name.upper()}{shown}: {message[0].lower()}{message[1:]}"


def _is_visible_ascii(text: str) -> bool:
    return all("!" <= letter <= "~" for letter in text)


def _as_browsers_say(url: str) -> str:
    """The origin of ``url``, without the port that its scheme has anyway."""
    parts = urlsplit(url.lower())
    return f"{parts.scheme}://{parts.netloc.removesuffix({'http': ':80', 'https': ':443'}.get(parts.scheme, '-'))}"
