#!/usr/bin/env bash
# Cut a source that lies in data/raw into clips, and black out the first one. The source is not touched.
#
#   script/prepare_data.sh <category> <file>     e.g. script/prepare_data.sh baseball baseball.mp4
#
# DATA_DIR moves data/. Further options go to `vision-bench prepare` (--start, --end, --length, --encoder, --jobs, ...).
set -euo pipefail
if [ $# -lt 2 ]; then
    echo "usage: $0 <category> <file> [options of vision-bench prepare]" >&2
    exit 2
fi
category=$1 file=$2
shift 2
cd "$(dirname "$0")/.."
program=.venv/bin/vision-bench
[ -x "$program" ] || program=vision-bench
exec "$program" prepare --category "$category" "$@" -- "${DATA_DIR:-data}/raw/$category/$file"
