"""The web app in a real Chromium, used as a person uses it."""
