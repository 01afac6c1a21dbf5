"""Files and frames: what a file holds, how it is cut, decoded, encoded and synthesised."""
