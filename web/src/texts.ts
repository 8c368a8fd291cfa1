/** The English texts of the app, in one place. Sentence case; verbs on buttons. */
export const texts = {
  product: "AstraFlow",
  skipToContent: "Skip to content",
  nav: {
    label: "Sections",
    workflows: "Workflows",
    runs: "Runs",
    workers: "Workers",
    packages: "Packages",
    settings: "Settings",
  },
  live: {
    live: "Live",
    connecting: "Connecting…",
    reconnecting: (seconds: number): string => `Reconnecting… (${seconds} s)`,
    offlineSince: (time: string): string => `Offline since ${time}`,
  },
  theme: {
    switchToDark: "Switch to the dark theme",
    switchToLight: "Switch to the light theme",
  },
  pages: {
    workflows: {
      title: "Workflows",
      empty: "No workflows yet",
      hint: "A workflow is a graph of steps that runs on your workers.",
    },
    runs: { title: "Runs", empty: "No runs yet", hint: "A run appears here as soon as a workflow starts." },
    workers: {
      title: "Workers",
      empty: "No workers yet",
      hint: "Start one on any machine that can reach this scheduler:",
    },
    packages: {
      title: "Packages",
      empty: "No packages yet",
      hint: "A package brings step types and the code that runs them.",
    },
    settings: {
      title: "Settings",
      empty: "Nothing to set yet",
      hint: "Schedules, webhooks, secrets, users and tokens will be here.",
    },
  },
  workerCommand: (url: string): string => `astra worker --scheduler-url ${url}`,
  copy: "Copy",
  copied: "Copied",
  notFound: { title: "There is no such page", back: "Go to workflows" },
  failed: { title: "This page could not be shown", retry: "Try again" },
} as const;
