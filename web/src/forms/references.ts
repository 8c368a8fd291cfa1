/** Values that stand for something else: a secret, or what a worker keeps. */

import type { Json } from "../model/json/tree";
import { isFields } from "./schema";

/** The name of the secret that a value refers to. */
export function secretName(value: Json | undefined): string {
  if (typeof value === "string") return /^=\s*secrets\.(\w+)\s*$/.exec(value)?.[1] ?? "";
  const reference = isFields(value) ? value.secretRef : undefined;
  return isFields(reference) && typeof reference.name === "string" ? reference.name : "";
}

/** The resource that a value refers to. */
export function resourceName(value: Json | undefined): string {
  const reference = isFields(value) ? value.resourceRef : undefined;
  return isFields(reference) && typeof reference.resourceId === "string" ? reference.resourceId : "";
}
