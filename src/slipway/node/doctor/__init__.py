"""What is wrong with this node and why, with the commands that would mend it.  Read-only."""
