"""Real-time video understanding and generation, served and measured."""
