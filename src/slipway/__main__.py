"""``python -m slipway`` is the ``slipway`` program."""

from slipway.cli.main import entry

if __name__ == "__main__":
    entry()
