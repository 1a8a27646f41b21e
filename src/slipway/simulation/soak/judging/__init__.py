"""What must hold, and how it is seen from outside: every write judged in the order of the API server, and what is left at rest."""
