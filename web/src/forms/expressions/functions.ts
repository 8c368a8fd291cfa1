/**
 * The functions of expressions. The scheduler has them; a test holds this table to the page that is made from its own
 * (`docs/reference/expressions.md`).
 */

export interface ExpressionFunction {
  readonly name: string;
  /** `?` marks an argument that may be left out, `…` one that may be repeated. */
  readonly takes: string;
  readonly help: string;
}

export const FUNCTIONS: readonly ExpressionFunction[] = [
  {
    name: "default",
    takes: "value, otherwise",
    help: "the first argument, or the second if the first is missing or null",
  },
  { name: "len", takes: "value", help: "how many characters, items or members" },
  { name: "str", takes: "value", help: "a string as it is, any other value as JSON" },
  { name: "int", takes: "value", help: "the integer of a number or a string; cuts the fraction off" },
  { name: "float", takes: "text", help: "the number of a string" },
  { name: "bool", takes: "value", help: "false for null, 0, and what is empty" },
  { name: "round", takes: "number, digits?", help: "to an integer, or to a number of digits" },
  { name: "floor", takes: "number", help: "the integer below" },
  { name: "ceil", takes: "number", help: "the integer above" },
  { name: "abs", takes: "number", help: "without its sign" },
  { name: "min", takes: "values…", help: "the smallest of an array, or of the arguments" },
  { name: "max", takes: "values…", help: "the largest of an array, or of the arguments" },
  { name: "sum", takes: "numbers", help: "of an array of numbers" },
  { name: "any", takes: "items", help: "whether an item is true" },
  { name: "all", takes: "items", help: "whether all items are true" },
  { name: "sorted", takes: "items, by?", help: 'in order; of objects, by a member: sorted(users, "name")' },
  { name: "reversed", takes: "items", help: "from the last to the first" },
  { name: "unique", takes: "items", help: "each item once" },
  { name: "flatten", takes: "arrays", help: "the items of the arrays in an array" },
  {
    name: "range",
    takes: "first, last?, step?",
    help: "the integers from 0, or from the first argument, to before the last",
  },
  { name: "keys", takes: "object", help: "the names of the members of an object" },
  { name: "values", takes: "object", help: "the members of an object" },
  { name: "merge", takes: "objects…", help: "one object of several; the last has the last word" },
  {
    name: "get",
    takes: "value, path, otherwise?",
    help: 'what a path leads to, or the third argument: get(x, "a.b.0", 1)',
  },
  { name: "lower", takes: "text", help: "in small letters" },
  { name: "upper", takes: "text", help: "in capitals" },
  { name: "trim", takes: "text", help: "without white space around it" },
  { name: "lines", takes: "text", help: "an array of the lines" },
  {
    name: "split",
    takes: "text, separator?",
    help: "an array of the parts between white space, or a separator",
  },
  { name: "join", takes: "items, separator?", help: "one string of an array, with a separator" },
  { name: "replace", takes: "text, old, new", help: "replace(text, old, new), everywhere" },
  { name: "starts_with", takes: "text, beginning", help: "whether it begins with another" },
  { name: "ends_with", takes: "text, ending", help: "whether it ends with another" },
  { name: "json", takes: "value", help: "the JSON of a value, as a string" },
  { name: "parse_json", takes: "text", help: "the value of JSON in a string" },
  { name: "type", takes: "value", help: "null, boolean, number, string, array or object" },
  { name: "sha256", takes: "text", help: "the SHA-256 of a string, in hexadecimal digits" },
  { name: "base64", takes: "text", help: "a string in base64" },
  { name: "from_base64", takes: "text", help: "the string of base64" },
  { name: "seconds", takes: "time", help: "an RFC 3339 time as seconds since 1970" },
  { name: "time", takes: "seconds", help: "seconds since 1970 as an RFC 3339 time in UTC" },
];
