"""Real processes under real faults: killed, frozen, cut off, and then asked whether the promises held."""
