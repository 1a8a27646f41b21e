"""The ways in which people see a fleet: text for any terminal, a picture that is drawn anew, a page."""
