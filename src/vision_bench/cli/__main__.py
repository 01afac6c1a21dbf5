"""``python -m vision_bench.cli``: the command without its installed script."""

from vision_bench.cli.main import main

main()
