"""What a write goes through, and what the kinds that are built in are like."""
