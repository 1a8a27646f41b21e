"""The work of one manager divided over several processes: whose an object is, who has which share, and what of it each keeps."""
