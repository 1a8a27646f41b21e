"""What works in the background: namespaces, garbage collection, and the loop that they run in."""
