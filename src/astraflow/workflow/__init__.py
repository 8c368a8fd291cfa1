"""Definition and manifest types, bindings, validation, and the planner: definition -> `Plan`."""
