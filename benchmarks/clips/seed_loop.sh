#!/usr/bin/env bash
# The plain way to cut clips: one ffmpeg a clip, one after the other. It is what `vision-bench prepare` is compared with.
# Run at the root of a work tree whose data/raw holds sources; CLIPS (100) and START (600) narrow the range.
cd "$(git rev-parse --show-toplevel)" || exit 1
TARGETS=(
    "baseball baseball.mp4"
    "docu docu.mp4"
    "drama drama.mp4"
    "entertain entertain.mp4"
    "esports lol.mp4"
    "hist_drama hist_drama.mp4"
    "news news.mp4"
)
first=${START:-600}
for target in "${TARGETS[@]}"; do
    read -r category name <<< "$target"
    base="${name%.mp4}"
    source="data/raw/$category/$name"
    folder="data/clips/$category/$base"
    [ -f "$source" ] || { echo "! source not found, skipping: $source"; continue; }
    mkdir -p "$folder"
    echo "> cutting $category/$base"
    for i in $(seq 0 $((${CLIPS:-100} - 1))); do
        start=$((first + i * 6)) end=$((first + i * 6 + 6))
        clip=$(printf "%04d_%04d-%04d" $((i + 1)) "$start" "$end")
        ffmpeg -nostdin -y -ss "$start" -i "$source" -t 6 \
            -c:v libopenh264 -b:v 1500k -c:a aac -movflags +faststart \
            "$folder/$clip.mp4"
    done
done
