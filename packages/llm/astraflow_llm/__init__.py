"""Chat with language models over the protocol that most of their servers speak."""
