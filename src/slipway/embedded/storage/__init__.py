"""What the server keeps: objects, their history and their watchers."""
