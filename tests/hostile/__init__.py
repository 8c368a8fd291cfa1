"""Workers that lie, flood, stall and die, written without the product's protocol code, against a real scheduler."""
