/** The texts of the tour. */
export const tour = {
  button: "Get started",
  title: "Get started",
  finished: "You have seen it all",
  done: "(done)",
  close: "Close for good",
  toWorkflows: "Go to workflows",
  steps: {
    open: { title: "Open an example", hint: "Choose one from the list of workflows, or under Examples." },
    run: { title: "Run it", hint: "Press Run at the top, or Ctrl Enter. The graph shows what happens." },
    look: { title: "Look at what a step did", hint: "Open the run, and click a step." },
    save: {
      title: "Change it, and save a version",
      hint: "Edit a step at the right, then press Save version.",
    },
    find: { title: "Find everything with Ctrl K", hint: "Workflows, runs, workers, packages and commands." },
  },
} as const;
