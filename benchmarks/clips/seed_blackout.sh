#!/usr/bin/env bash
# The plain way to black out the first clip of each source that seed_loop.sh has cut; its sound is copied.
cd "$(git rev-parse --show-toplevel)" || exit 1
for folder in data/clips/*/*/; do
    scene=${folder#data/clips/}
    scene=${scene%/}
    black="data/blackout/$scene"
    clips=("$folder"*.mp4)
    first="${clips[0]}"
    [ -f "$first" ] || { echo "! no clip, skipping: $folder"; continue; }
    mkdir -p "$black"
    echo "> blacking out $scene: $(basename "$first")"
    ffmpeg -nostdin -y -i "$first" \
        -vf "drawbox=0:0:iw:ih:color=black:t=fill" \
        -c:v libopenh264 -b:v 300k -c:a copy \
        "$black/$(basename "$first")"
done
