"""What every API of ours stands on: strict decoding, Go-compatible YAML, durations, quantities, field paths, versions."""
