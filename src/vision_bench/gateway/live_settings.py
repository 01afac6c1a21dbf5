"""The settings of live streams, a part of the gateway's."""

from __future__ import annotations

import ipaddress
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import Field, field_validator
from pydantic_settings import BaseSettings, NoDecode

from vision_bench.live.allowed import AllowedHosts

Names = Annotated[tuple[str, ...], NoDecode]


class LiveSettings(BaseSettings):
    """Every one begins with LIVE_. Off by default: without LIVE_ENABLED there are no streams and no route for them."""

    live_enabled: bool = False
    """Serve /v1beta: streams of frames, and questions about them."""

    live_ttl_seconds: Annotated[int, Field(ge=5)] = 300
    """A stream's lease, from its creation or its last keepalive."""

    live_streams: Annotated[int, Field(ge=1)] = 32
    """Streams at once. Together they hold at most LIVE_STREAMS times LIVE_RING_BYTES."""

    live_streams_per_key: Annotated[int, Field(ge=1)] = 8
    """Streams of one API key at once."""

    live_ring_bytes: Annotated[int, Field(ge=64 * 1024)] = 64 * 1024 * 1024
    """Frames that one stream holds, as JPEG, the newest."""

    live_retention_seconds: Annotated[int, Field(ge=1)] = 600
    """Frames that are older go, whatever room there is."""

    live_max_frame_bytes: Annotated[int, Field(ge=1024, le=16 * 1024 * 1024)] = 4 * 1024 * 1024
    """One frame as JPEG. At most 16 MiB, which is the longest message that uvicorn takes."""

    live_max_pixels: Annotated[int, Field(ge=1)] = 1920 * 1080
    """Width times height of one frame. Larger ones are dropped."""

    live_max_fps: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 60.0
    """Frames a second that a stream takes. More are dropped."""

    live_max_segment_frames: Annotated[int, Field(ge=1)] = 64
    """Frames that the references of one question may choose, together."""

    live_ice_addresses: Names = ()
    """Addresses of this machine that cameras reach over WebRTC, separated by commas. None: all but loopback ones."""

    live_public_url: str | None = None
    """How callers reach the gateway, such as https://video.example.org. None: as the request's Host header says."""

    live_pull_hosts: Names = ()
    """Hosts, addresses and networks that streams may be pulled from, separated by commas. None: nothing is pulled."""

    live_pull_folder: Path | None = None
    """A folder whose video files may be pulled as if they were cameras. None: no file is."""

    live_passthrough_urls: Names = ()
    """Those of VLLM_BASE_URL that pass questions on to somebody else's models."""

    @field_validator("live_ice_addresses", "live_pull_hosts", "live_passthrough_urls", mode="before")
    @classmethod
    def _split_names(cls, value: Any) -> Any:
        if not isinstance(value, str):
            return value
        return tuple(name.strip() for name in value.split(",") if name.strip())

    @field_validator("live_passthrough_urls")
    @classmethod
    def _without_slash(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(url.rstrip("/") for url in value)

    @field_validator("live_ice_addresses")
    @classmethod
    def _addresses(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for address in value:
            try:
                ipaddress.ip_address(address)
            except ValueError:
                raise ValueError(f"{address!r} is no IP address") from None
        return value

    @field_validator("live_pull_hosts")
    @classmethod
    def _pull_hosts(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        AllowedHosts(value)  # says what is wrong with an entry
        return value

    @field_validator("live_public_url")
    @classmethod
    def _origin(cls, value: str | None) -> str | None:
        if value is None:
            return None
        parts = urlsplit(value)
        if parts.scheme not in {"http", "https"} or not parts.hostname or parts.query or parts.fragment or "@" in value:
            raise ValueError("must be an http:// or https:// address without user name, query and fragment")
        return value.rstrip("/")
