#!/usr/bin/env bash
# Call a running gateway with curl, as the documentation of the API shows it.
#
#   script/curl_examples.sh chat      one clip and a prompt to /chat
#   script/curl_examples.sh batch     the clip and its neighbours to /chat/batch, one line each as they finish
#
# GATEWAY (http://127.0.0.1:8001) says where. CLIP names another clip, DATA_DIR another data folder, MODEL another
# model than qwen, BATCH another number of clips than 4. Bodies are written to runs/curl/: a clip as base64 is too long
# for a command line.
set -euo pipefail
if [ $# -ne 1 ] || { [ "$1" != chat ] && [ "$1" != batch ]; }; then
    echo "usage: $0 chat | batch" >&2
    exit 2
fi
command -v curl >/dev/null || { echo "curl is missing: install it (apt-get install curl)" >&2; exit 4; }
here=$PWD
cd "$(dirname "$0")/.."
python=.venv/bin/python
[ -x "$python" ] || python=python3
gateway=${GATEWAY:-http://127.0.0.1:8001}
clip=${CLIP:-${DATA_DIR:-data}/clips/baseball/baseball/0001_0600-0606.mp4}
[ -f "$clip" ] || { [ -n "${CLIP:-}" ] && [ -f "$here/$clip" ] && clip=$here/$clip; } || {
    echo "no clip at $clip: cut some (script/prepare_data.sh baseball baseball.mp4) or set CLIP=" >&2
    exit 2
}

body=runs/curl/$1.json
mkdir -p runs/curl
"$python" - "$1" "$clip" "$body" "${MODEL:-qwen}" "${BATCH:-4}" <<'PY'
import base64, json, pathlib, sys

kind, clip, out, model, count = sys.argv[1:]
PROMPT = "Analyze the video and audio in this clip in Korean."

def chat_body(path):
    data = base64.b64encode(path.read_bytes()).decode()
    return {
        "model": model,
        "messages": [{"role": "user", "content": [
            {"type": "video_url", "video_url": {"url": f"data:video/mp4;base64,{data}"}},
            {"type": "text", "text": PROMPT},
        ]}],
        "temperature": 0.3,
        "max_tokens": 1024,
        "mm_processor_kwargs": {"use_audio_in_video": True},
        "chat_template_kwargs": {"enable_thinking": False},
    }

first = pathlib.Path(clip)
if kind == "chat":
    body = chat_body(first)
else:
    clips = [path for path in sorted(first.parent.glob("*.mp4")) if path.name >= first.name][: int(count)]
    body = {"items": [{"id": path.stem, "body": chat_body(path)} for path in clips]}
pathlib.Path(out).write_text(json.dumps(body, ensure_ascii=False), encoding="utf-8")
PY

# Expect: (empty) spares the second that curl waits for "100 Continue" before it sends a large body.
call=(curl -sS --fail-with-body -X POST -H "Content-Type: application/json" -H "Expect:" --data-binary "@$body")
if [ "$1" = chat ]; then
    echo "POST $gateway/chat < $body" >&2
    "${call[@]}" -w '\n' "$gateway/chat"
else
    echo "POST $gateway/chat/batch < $body" >&2
    "${call[@]}" --no-buffer "$gateway/chat/batch"
fi
