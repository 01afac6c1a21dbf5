"""What /docs shows of the routes: a request and an answer for each, and every error with its status."""

from __future__ import annotations

from typing import Any

from vision_bench.wire.chat import error_body

OpenApi = dict[int | str, dict[str, Any]]

_FREE_OBJECT = {"type": "object", "additionalProperties": True}

_CHAT_BODY = {
    "model": "qwen",
    "messages": [
        {
            "role": "user",
            "content": [
                {"type": "video_url", "video_url": {"url": "data:video/mp4;base64,AAAAIGZ0eXA..."}},
                {"type": "text", "text": "Analyze the video and audio in this clip in Korean."},
            ],
        }
    ],
    "temperature": 0.3,
    "max_tokens": 1024,
    "media_io_kwargs": {"video": {"fps": 2.0}},
    "mm_processor_kwargs": {"use_audio_in_video": True},
    "chat_template_kwargs": {"enable_thinking": False},
}

_TEXT_BODY = {
    "model": "qwen",
    "messages": [{"role": "user", "content": "Introduce yourself in one Korean sentence."}],
}

_CHAT_ANSWER = {
    "id": "chatcmpl-6da1b40a",
    "object": "chat.completion",
    "created": 1780911130,
    "model": "qwen",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": '{"scene": "..."}'}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 3633, "completion_tokens": 341, "total_tokens": 3974},
}

_LINES = (
    '{"id":"0002_0606-0612","status":200,"elapsed_ms":3104,"body":{"id":"chatcmpl-6da1b40a-1","choices":["..."]}}\n'
    '{"id":"0001_0600-0606","status":500,"elapsed_ms":0,"error":"upstream_timeout: vLLM took longer than 600 s; ..."}\n'
)


def _request(schema: dict[str, Any], values: dict[str, Any]) -> dict[str, Any]:
    shown = {name: {"value": value} for name, value in values.items()}
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema, "examples": shown}}}}


def _error(
    code: int, type: str, description: str, message: str, param: str | None = None
) -> dict[int | str, dict[str, Any]]:
    example = error_body(message, type=type, code=code, param=param)
    return {code: {"description": description, "content": {"application/json": {"example": example}}}}


_TOO_LARGE = _error(413, "too_large", "The body is over GATEWAY_MAX_BODY_BYTES", "the body is 600000000 bytes, ...")
_NO_KEY = _error(401, "unauthorized", "GATEWAY_API_KEYS is set and no key was sent", "send Authorization: Bearer ...")

_UPLOAD: OpenApi = {
    **_error(
        408, "upload_timeout", "The body stands still, or takes too long", "no byte of the body came for 30 s ..."
    ),
    **_error(
        429, "rate_limited", "The key has used up its requests a minute; see Retry-After", "this key has used ..."
    ),
    **_error(431, "headers_too_large", "The head is over GATEWAY_MAX_HEADER_BYTES", "the head of the request is ..."),
}

HEALTHZ: OpenApi = {200: {"description": "Up", "content": {"application/json": {"example": {"ok": True}}}}}

_SERVER = {
    "address": "http://127.0.0.1:8000/v1",
    "reachable": True,
    "has_model": True,
    "set_aside": False,
    "models": ["qwen"],
    "last_error": None,
}
_GONE = {
    **_SERVER,
    "reachable": False,
    "has_model": False,
    "models": None,
    "last_error": "vLLM cannot be reached at http://127.0.0.1:8000/v1 (ECONNREFUSED); ...",
}

READYZ: OpenApi = {
    200: {
        "description": "Ready",
        "content": {"application/json": {"example": {"ready": True, "upstreams": [_SERVER]}}},
    },
    503: {
        "description": "No vLLM lists a model",
        "content": {"application/json": {"example": {"ready": False, "upstreams": [_GONE]}}},
    },
}

CHAT_REQUEST = _request(_FREE_OBJECT, {"clip and prompt": _CHAT_BODY, "text only": _TEXT_BODY})

CHAT: OpenApi = {
    200: {
        "description": "vLLM's answer as it is",
        "content": {
            "application/json": {"example": _CHAT_ANSWER},
            "text/event-stream": {
                "example": 'data: {"choices":[{"index":0,"delta":{"content":"안"}}]}\n\ndata: [DONE]\n\n'
            },
        },
    },
    **_error(
        400,
        "media_not_allowed",
        "Media rules are set and the body breaks one",
        "messages[0].content[0].video_url.url: the host 'example.org' is not in GATEWAY_MEDIA_DOMAINS",
        "messages[0].content[0].video_url.url",
    ),
    **_NO_KEY,
    **_UPLOAD,
    **_TOO_LARGE,
    **_error(502, "connect_failed", "vLLM cannot be reached, or broke off", "vLLM cannot be reached at ..."),
    **_error(
        503, "acquire_timeout", "No permit came free in time; see Retry-After", "no permit came free in 300 s ..."
    ),
    **_error(504, "upstream_timeout", "vLLM took too long", "vLLM took longer than 600 s; ..."),
    "default": {
        "description": "Any other status of vLLM's, as it is; its errors with the statuses above pass as they are too",
        "content": {
            "application/json": {"example": error_body("boom", type="InternalServerError", code=500, param=None)},
            "text/plain": {},
            "text/html": {},
        },
    },
}

_MODEL = {
    "id": "qwen",
    "object": "model",
    "created": 1780911000,
    "owned_by": "vllm",
    "max_model_len": 16384,
    "root": "qwen",
    "parent": None,
}

_NO_LIST = {
    **_NO_KEY,
    **_error(502, "connect_failed", "No vLLM can be reached", "vLLM cannot be reached at ..."),
    **_error(504, "upstream_timeout", "No list in 10 s", "http://127.0.0.1:8000/v1 sent no model list in 10 s"),
    "default": {
        "description": "vLLM's own refusal of the list, with its status",
        "content": {"application/json": {"example": error_body("Unauthorized", type="http_error", code=401)}},
    },
}

MODELS: OpenApi = {
    200: {
        "description": "The models of every vLLM",
        "content": {"application/json": {"example": {"object": "list", "data": [_MODEL]}}},
    },
    **_NO_LIST,
}

MODEL_REQUEST = {"parameters": [{"name": "model_id", "in": "path", "required": True, "schema": {"type": "string"}}]}

MODEL: OpenApi = {
    200: {"description": "The model", "content": {"application/json": {"example": _MODEL}}},
    **_error(404, "model_not_found", "No such model", "the model 'nope' does not exist; there are: qwen", "model"),
    **_NO_LIST,
}

BATCH_REQUEST = _request(
    {
        "type": "object",
        "required": ["items"],
        "properties": {
            "items": {
                "type": "array",
                "items": {
                    "type": "object",
                    "required": ["id", "body"],
                    "properties": {
                        "id": {"type": "string", "description": "Yours, different for every item; usually the clip"},
                        "body": {**_FREE_OBJECT, "description": "A /chat body, without stream"},
                    },
                },
            }
        },
    },
    {
        "two items": {
            "items": [{"id": "0001_0600-0606", "body": _CHAT_BODY}, {"id": "0002_0606-0612", "body": _TEXT_BODY}]
        }
    },
)

BATCH: OpenApi = {
    200: {
        "description": "One line an item, in the order of completion",
        "headers": {"X-Batch-Total": {"description": "Number of items", "schema": {"type": "integer"}}},
        "content": {"application/x-ndjson": {"example": _LINES}},
    },
    **_error(400, "invalid_request", "A malformed body", "items[1].id: is missing", "items[1].id"),
    **_NO_KEY,
    **_UPLOAD,
    **_error(413, "too_many_items", "Over MAX_BATCH_ITEMS or GATEWAY_MAX_BODY_BYTES", "129 items, ...", "items"),
}

_METRICS_PAGE = """\
# HELP vision_bench_gateway_permits_in_use Calls that are running.
# TYPE vision_bench_gateway_permits_in_use gauge
vision_bench_gateway_permits_in_use{upstream="http://127.0.0.1:8000/v1"} 3.0
"""

METRICS: OpenApi = {
    200: {"description": "Prometheus' text format", "content": {"text/plain": {"example": _METRICS_PAGE}}},
    **_NO_KEY,
}
