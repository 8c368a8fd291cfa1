import { inspectorTexts } from "./inspector";
import { step } from "./stepSettings";

/** The texts of the inspector and of forms. */
export const forms = {
  ...inspectorTexts,
  required: "Required",
  choose: "Choose…",
  addItem: "Type and press Enter",
  addRow: "Add a row",
  row: (number: number): string => `Row ${number}`,
  rowTools: (name: string) => ({
    up: `Move ${name} up`,
    down: `Move ${name} down`,
    remove: `Remove ${name}`,
  }),
  pair: {
    name: "Name",
    value: (name: string): string => (name === "" ? "Value" : `Value of ${name}`),
    add: (label: string): string => `Add to ${label}`,
    remove: (name: string): string => (name === "" ? "Remove the pair" : `Remove ${name}`),
  },
  clear: (label: string): string => `Clear ${label}`,
  reset: (label: string): string => `Reset ${label}`,
  toExpression: (label: string): string => `Use an expression for ${label}`,
  toFixedValue: (label: string): string => `Use a fixed value for ${label}`,
  expressionOf: (label: string): string => `Expression for ${label}`,
  preview: {
    lastRun: "Last run:",
    later: "Evaluated when it runs",
    tooLarge: "The value is too large to be shown here",
    empty: "(empty text)",
    nothing: "Names of inputs and steps, or a function",
    secret: "The worker is given the secret; its value is not shown",
    noRun: "There is no run yet to read values from",
    missing: (name: string): string => `The last run has no ${name}`,
  },
  wiredTo: (source: string): string => `Comes from ${source}`,
  unknownComponent: (name: string): string =>
    `The control “${name}” is not known here, so that the schema decides.`,
  otherType: (value: string): string =>
    `The value ${value.length > 40 ? `${value.slice(0, 40)}…` : value} is of another type, so that it is shown as JSON.`,
  notInList: (value: string): string => `${value} (not in the list)`,
  notJson: (message: string): string => `This is not JSON: ${message}`,
  useAsText: "Use as text",
  viewOf: (label: string): string => `View of ${label}`,
  openLarge: (label: string): string => `Open ${label} in a large editor`,
  pickColour: (label: string): string => `Pick ${label} from the screen`,
  asForm: "Form",
  asJson: "JSON",
  stray: "Other values",
  strayHelp: "The step type does not describe them.",
  notSet: "Not set",
  noResult: "No result yet",
  isDefault: "(default)",
  emptyText: "(empty text)",
  hidden: "(hidden)",
  yes: "Yes",
  no: "No",
  count: {
    items: (count: number): string => (count === 1 ? "1 item" : `${count} items`),
    fields: (count: number): string => (count === 1 ? "1 field" : `${count} fields`),
    characters: (count: number): string => `${count} characters`,
  },
  chooseWorkflow: "Choose a workflow",
  noWorkflow: "No saved workflow has this name",
  step,
  usable: {
    title: "Values from before",
    help: "Drag a value to a field. With the keyboard: go to the field first, then choose a value here and press Enter.",
    none: "The steps before this one gave nothing in the last run.",
    insert: (label: string): string => `Insert into ${label}`,
  },
  unknownZone: "This browser does not know this time zone. The scheduler checks the name.",
  secret: {
    choose: "Choose a secret",
    none: "Name of a secret",
    missing: (name: string): string => `There is no secret “${name}” yet. Add it in Settings before a run.`,
    plain: "A plain text is stored in the workflow. Choose a secret in its place.",
  },
  file: {
    choose: "Choose a file that a worker keeps",
    help: (accept: readonly string[]): string =>
      accept.length === 0
        ? "A reference to a file of an earlier run."
        : `A reference to a file of an earlier run: ${accept.join(", ")}.`,
  },
} as const;
