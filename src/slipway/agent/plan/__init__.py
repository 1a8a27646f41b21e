"""Plans: what comes next (``decision``), how one is run (``runner``), what is remembered (``journal``) and what is told (``report``)."""
