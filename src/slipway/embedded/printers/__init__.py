"""Tables, as kubectl shows them."""
