"""HTTP workers as strangers write them: from the text of ADR-023 alone, against a real scheduler."""
