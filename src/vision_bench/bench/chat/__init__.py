"""Vision chat on clips, frames or text: what is asked, how it is sent and stamped, and what the stamps say."""
