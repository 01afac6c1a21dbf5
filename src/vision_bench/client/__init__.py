"""What a user's program calls: the gateway client and the analysis of many clips."""
