"""The ways in which a run is shown while it goes on."""
